"""`kcluster pipeline timeline RUN…`: statistics of many runs, as tables and one page.

Owns: the verb's options.  Never: sums up (work/timeline.py).
"""

from __future__ import annotations

import click


@click.command("timeline")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out", metavar="DIR", default="timeline", show_default=True, help="The output directory."
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own warnings.")
def command(paths: tuple[str, ...], out: str, master: str, verbose: bool) -> None:
    """Sum up many runs: unavailable windows, failovers, errors, ISR churn, latencies.

    RUN is a run directory, or a directory that contains some.
    """
    from kcluster.cli.work.timeline import sum_up_runs

    sum_up_runs(paths, out, master, verbose)
