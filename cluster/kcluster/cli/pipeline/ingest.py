"""`kcluster pipeline ingest`: topics of a running cluster to a table, exactly once.

Owns: options, the counter, how losses and refusals are told.  Never: the job (pipeline/ingest/).
Exit: 0 done, 1 something is lost or it could not go on, 2 bad input.
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

from kcluster.cli.pipeline.audit import refuse

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
        refuse(f"{param.opts[0]} {value}: no time; it is 60s, 500ms, 10m or 1h")
    return round(float(match[1]) * _UNITS_MS[match[2]])


@click.command("ingest", help="Topics of a running cluster to a table, each record exactly once.")
@click.option("--bootstrap", metavar="HOST:PORT,...", required=True, help="Brokers to begin with.")
@click.option("--topics", metavar="T,...", required=True, help="What to read.")
@click.option("--out", metavar="DIR", required=True, help="The table: DIR/records, DIR/losses.")
@click.option("--source", default="kcluster", show_default=True, help="Or kafka: the connector.")
@click.option("--jars", metavar="DIR", help="The connector's jars; else Spark fetches them.")
@click.option("--packages", metavar="G:A:V,...", help="More for Spark to fetch: Delta, Iceberg.")
@click.option(
    "--format", "format_", default="parquet", show_default=True, help="Or delta, iceberg."
)
@click.option("--checkpoint", metavar="DIR", default="", help="Instead of DIR/checkpoint/RUN.")
@click.option("--run", default="ingest", show_default=True, help="Column run; one checkpoint each.")
@click.option(
    "--once", "until", flag_value="once", help="What is there now (AvailableNow), and end."
)
@click.option("--until-idle", "until", flag_value="idle", help="End when nothing came for 3 s.")
@click.option("--for", "for_ms", metavar="60s", callback=_milliseconds, help="End after that time.")
@click.option("--max-offsets-per-trigger", "max_offsets", metavar="N", type=int, help="A batch.")
@click.option("--starting", default="earliest", show_default=True, help="Or latest; of a new run.")
@click.option("--every", "every_ms", default="500ms", show_default=True, callback=_milliseconds,
              help="From batch to batch, at least.")  # fmt: skip
@click.option("--fail-on-data-loss/--no-fail-on-data-loss", default=True, show_default=True,
              help="End when offsets are gone, or go on; both are told.")  # fmt: skip
@click.option("--kafka", "more", metavar="NAME=VALUE", multiple=True,
              help="Of the source, such as kafka.isolation.level=read_committed.")  # fmt: skip
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Spark's own warnings too.")
def command(
    topics: str, jars: str | None, packages: str | None, format_: str, until: str | None,
    more: tuple[str, ...], master: str, verbose: bool, **given: Any,
) -> None:  # fmt: skip
    """Reads on until --once, --until-idle or --for; Ctrl-C ends it too, and loses nothing."""
    from kcluster.pipeline.ingest.options import IngestError, IngestOptions
    from kcluster.pipeline.ingest.view import Cluster

    options = IngestOptions(
        topics=tuple(topic.strip() for topic in topics.split(",") if topic.strip()),
        format=format_, until=until or "stopped", kafka=dict(map(_pair, more)), **given,
    )  # fmt: skip
    try:
        options.check()
        # Topics of a run that goes on may be gone by now; the job tells what that means.
        goes_on = "://" in options.out or (Path(options.out) / f"runs/{options.run}").exists()
        Cluster(options.bootstrap, options.places).check(may_be_gone=goes_on)
    except IngestError as error:
        refuse(str(error))
    _ingest(_session(options, jars, packages, master, verbose), options)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        refuse(f"--kafka {text}: it is NAME=VALUE")
    return name, value


def _session(
    options: IngestOptions, jars: str | None, packages: str | None, master: str, verbose: bool
) -> SparkSession:
    """A session that has what source and format need."""
    from kcluster.pipeline.ingest.jars import session_settings
    from kcluster.pipeline.ingest.options import IngestError
    from kcluster.pipeline.session import SessionError, open_session

    try:
        settings = session_settings(options.source, options.format, jars, packages)
        if not verbose:
            # A batch that fails is told by us, in one line.
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
        return open_session(master, settings, verbose)
    except (IngestError, SessionError) as error:
        refuse(str(error))


def _ingest(spark: SparkSession, options: IngestOptions) -> None:
    from kcluster.pipeline.ingest.job import ingest
    from kcluster.pipeline.ingest.options import BadInput, DataLoss, IngestError
    from kcluster.pipeline.progress import Progress

    def tell(lost: Lost) -> None:
        print(f"kcluster: {lost}", file=sys.stderr, flush=True)

    stopping = _stops()
    try:
        with Progress("ingest", unit="records") as progress:
            done = ingest(
                spark, options, lambda counts: progress.update(counts.rows), tell,
                lambda counts: stopping.is_set(),
            )  # fmt: skip
    except DataLoss:
        sys.exit(1)  # each range was told
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


def _stops() -> threading.Event:
    """Set by Ctrl-C or SIGTERM, once: Spark's own handler would break off its talk with Java."""
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    return stopping
