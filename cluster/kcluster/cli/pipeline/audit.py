"""`kcluster pipeline audit RUN…`: the fate of every record of these runs.

Owns: the verb's options.  Never: audits (work/audit.py).
"""

from __future__ import annotations

import click


@click.command("audit")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True)
@click.option("--out", metavar="DIR", default="", help="Write fates, summary, totals: Parquet.")
@click.option("--table", metavar="DIR", default="", help="The topics' contents, as ingested.")
@click.option(
    "--late-ms",
    default=1_000,
    show_default=True,
    type=click.IntRange(min=0),
    help="An ack after this time is late.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own warnings.")
def command(
    paths: tuple[str, ...], out: str, table: str, late_ms: int, master: str, verbose: bool
) -> None:
    """Audit every record of many runs: lost, duplicated, reordered, aborted read, late, and why.

    RUN is a run directory, or a directory that contains some.
    """
    from kcluster.cli.work.audit import audit_runs

    audit_runs(paths, out, table, late_ms, master, verbose)
