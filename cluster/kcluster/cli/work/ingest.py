"""The work of `kcluster pipeline ingest`.

Owns: the counter, the form of losses and refusals.  Never: ingests (pipeline/ingest/).
Kafka: no counterpart.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from kcluster.cli.click_tools import refuse_both
from kcluster.cli.spark_job import refuse
from kcluster.json_types import JsonObject
from kcluster.pipeline.ingest.jars import session_settings
from kcluster.pipeline.ingest.job import ingest
from kcluster.pipeline.ingest.options import BadInput, IngestDataLoss, IngestError, IngestOptions
from kcluster.pipeline.ingest.view import ClusterView
from kcluster.pipeline.progress import Progress
from kcluster.pipeline.session import SessionError, open_session
from kcluster.pipeline.shipping import SOURCE_NEEDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcluster.pipeline.source.losses import Lost


def ingest_topics(
    topics: str,
    jars: str | None,
    packages: str | None,
    format_: str,
    until: str | None,
    more: tuple[str, ...],
    master: str,
    ship_env: bool,
    verbose: bool,
    quiet: bool,
    settings: JsonObject,
) -> None:
    """Ingest topics, until the job ends.  `settings`: further fields of IngestOptions."""
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
        # The topics of a resumed run may be deleted by now; the job reports the consequences.
        is_resumed = "://" in options.out or (Path(options.out) / f"runs/{options.run}").exists()
        ClusterView(options.bootstrap, options.unique_topics).check(may_be_gone=is_resumed)
    except IngestError as error:
        refuse(str(error))
    _ingest(_session(options, jars, packages, master, ship_env, verbose), options, quiet)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        refuse(f"--kafka {text}: write NAME=VALUE")
    return name, value


def _session(
    options: IngestOptions,
    jars: str | None,
    packages: str | None,
    master: str,
    ship_env: bool,
    verbose: bool,
) -> SparkSession:
    """A session with the packages that the source and the format need."""
    try:
        settings = session_settings(options.source, options.format, jars, packages)
        if not verbose:
            # A failed batch is reported below, in one line.
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
        return open_session(master, settings, verbose, SOURCE_NEEDS if ship_env else ())
    except (IngestError, SessionError) as error:
        refuse(str(error))


def _ingest(spark: SparkSession, options: IngestOptions, quiet: bool) -> None:

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
    """An event that the first Ctrl-C or SIGTERM sets.  Spark's own handler would interrupt a call
    to Java."""
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    return stopping
