"""`kcluster pipeline ingest`: read topics of a running cluster into a table, exactly once.

Owns: the verb's options.  Never: ingests (work/ingest.py).
Exit codes: 0 done, 1 offsets are lost or the job could not go on, 2 bad input.
"""

from __future__ import annotations

import re
from typing import Any, Final

import click

from kcluster.cli.spark_job import refuse

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def _milliseconds(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """The milliseconds of `60s`, `500ms` or `10m`."""
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
@click.option(
    "--ship-env",
    is_flag=True,
    help="Send the dependencies of kcluster to the workers of a cluster, too.",
)
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
    ship_env: bool,
    verbose: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Read topics of a running cluster into a table, each record exactly once.

    Ends by --once, --until-idle or --for; Ctrl-C ends it too, and nothing is lost.
    """
    from kcluster.cli.work.ingest import ingest_topics

    ingest_topics(
        topics, jars, packages, format_, until, more, master, ship_env, verbose, quiet, settings
    )
