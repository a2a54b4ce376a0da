"""`kcluster pipeline ingest`: read topics of a running cluster into a table, exactly once.

Owns: the verb's options, the counter, how losses and refusals are shown.  Never: ingests
(pipeline/ingest/).
Exit codes: 0 done, 1 offsets are lost or the job could not go on, 2 bad input.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kcluster.cli.click_tools import refuse_both
from kcluster.cli.spark_job import refuse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcluster.pipeline.ingest.options import IngestOptions
    from kcluster.pipeline.source.losses import Lost

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def _milliseconds(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """`60s`, `500ms`, `10m`."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *(ms|s|m|h)", value)
    if match is None:
        refuse(f"{param.opts[0]} {value}: not a time like 60s, 500ms, 10m or 1h")
    return round(float(match[1]) * _UNITS_MS[match[2]])


@click.command("ingest")
@click.option(
    "--bootstrap", metavar="HOST:PORT,...", required=True, help="Brokers to connect to first."
)
@click.option("--topics", metavar="T,...", required=True, help="The topics to read.")
@click.option("--out", metavar="DIR", required=True, help="The table: DIR/records and DIR/losses.")
@click.option(
    "--source", default="kcluster", show_default=True, help="kcluster, or kafka: the connector."
)
@click.option("--jars", metavar="DIR", help="The connector's jars.  [default: Spark fetches them]")
@click.option("--packages", metavar="G:A:V,...", help="More packages for Spark: Delta, Iceberg.")
@click.option(
    "--format", "format_", default="parquet", show_default=True, help="parquet, delta or iceberg."
)
@click.option("--checkpoint", metavar="DIR", default="", help="[default: DIR/checkpoint/RUN]")
@click.option("--run", default="ingest", show_default=True, help="The run's name, in column run.")
@click.option(
    "--once", "until", flag_value="once", help="Read what exists now (AvailableNow), then end."
)
@click.option("--until-idle", "until", flag_value="idle", help="End after 3 s without a record.")
@click.option("--for", "for_ms", metavar="60s", callback=_milliseconds, help="End after this time.")
@click.option("--max-offsets-per-trigger", "max_offsets", metavar="N", type=int, help="Per batch.")
@click.option(
    "--starting", default="earliest", show_default=True, help="earliest or latest; for a new run."
)
@click.option(
    "--isolation",
    default="read_uncommitted",
    show_default=True,
    help="read_committed: without records of aborted and open transactions.",
)
@click.option(
    "--every",
    "every_ms",
    default="500ms",
    show_default=True,
    callback=_milliseconds,
    help="The minimum time between two batches.",
)
@click.option(
    "--fail-on-data-loss/--no-fail-on-data-loss",
    default=True,
    show_default=True,
    help="End when offsets are lost; they are always reported.",
)
@click.option(
    "--kafka",
    "more",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the source: kafka.client.id=shop.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own warnings.")
@click.option("-q", "--quiet", is_flag=True, help="Show only the last line, and what was lost.")
def command(
    topics: str,
    jars: str | None,
    packages: str | None,
    format_: str,
    until: str | None,
    more: tuple[str, ...],
    master: str,
    verbose: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Read topics of a running cluster into a table, each record exactly once.

    Ends by --once, --until-idle or --for; Ctrl-C ends it too, and nothing is lost.
    """
    from kcluster.pipeline.ingest.options import IngestError, IngestOptions
    from kcluster.pipeline.ingest.view import ClusterView

    refuse_both(verbose, quiet)
    options = IngestOptions(
        topics=tuple(topic.strip() for topic in topics.split(",") if topic.strip()),
        format=format_,
        until=until or "stopped",
        kafka=dict(map(_pair, more)),
        **settings,
    )
    try:
        options.check()
        # The topics of a resumed run may be deleted by now; the job reports what that means.
        is_resumed = "://" in options.out or (Path(options.out) / f"runs/{options.run}").exists()
        ClusterView(options.bootstrap, options.unique_topics).check(may_be_gone=is_resumed)
    except IngestError as error:
        refuse(str(error))
    _ingest(_session(options, jars, packages, master, verbose), options, quiet)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        refuse(f"--kafka {text}: write NAME=VALUE")
    return name, value


def _session(
    options: IngestOptions, jars: str | None, packages: str | None, master: str, verbose: bool
) -> SparkSession:
    """A session with the packages that source and format need."""
    from kcluster.pipeline.ingest.jars import session_settings
    from kcluster.pipeline.ingest.options import IngestError
    from kcluster.pipeline.session import SessionError, open_session

    try:
        settings = session_settings(options.source, options.format, jars, packages)
        if not verbose:
            # A failed batch is reported below, in one line.
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
        return open_session(master, settings, verbose)
    except (IngestError, SessionError) as error:
        refuse(str(error))


def _ingest(spark: SparkSession, options: IngestOptions, quiet: bool) -> None:
    from kcluster.pipeline.ingest.job import ingest
    from kcluster.pipeline.ingest.options import BadInput, IngestDataLoss, IngestError
    from kcluster.pipeline.progress import Progress

    def on_lost(lost: Lost) -> None:
        print(f"kcluster: {lost}", file=sys.stderr, flush=True)

    stopping = _stop_on_signals()
    try:
        with Progress("ingest", unit="records", is_quiet=quiet) as progress:
            done = ingest(
                spark,
                options,
                lambda counts: progress.update(counts.rows),
                on_lost,
                lambda counts: stopping.is_set(),
            )
    except IngestDataLoss:
        sys.exit(1)  # each range has been reported
    except (BadInput, OSError) as error:
        refuse(str(error))
    except IngestError as error:
        print(f"kcluster: {error}", file=sys.stderr)
        sys.exit(1)
    rate = done.rows / done.seconds if done.seconds else 0.0
    ranges = "range" if len(done.losses) == 1 else "ranges"
    lost = f"; {len(done.losses)} {ranges} lost" if done.losses else ""
    print(
        f"{done.rows:,} records in {done.batches:,} batches, {done.seconds:,.1f} s"
        f" ({rate:,.0f}/s) to {options.out}{lost}"
    )


def _stop_on_signals() -> threading.Event:
    """Set by the first Ctrl-C or SIGTERM.  Spark's own handler would interrupt a call to Java."""
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    return stopping
