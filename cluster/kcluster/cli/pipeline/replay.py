"""`kcluster pipeline replay GRID.yaml CELL SEED`: repeat one run of a sweep, with its timeline.

Owns: the verb's options.  Never: runs (work/replay.py), needs Spark.
"""

from __future__ import annotations

import click


@click.command("replay")
@click.argument("file", metavar="GRID.yaml")
@click.argument("cell")
@click.argument("seed", type=click.IntRange(0))
@click.option("--out", metavar="DIR", help="Write a run directory below DIR.")
@click.option("--scenario", is_flag=True, help="Print it as a scenario file, run nothing.")
def command(file: str, cell: str, seed: int, out: str | None, scenario: bool) -> None:
    """Repeat one run of a sweep, without Spark, and show its timeline.

    CELL is a cell's number in the report, or enough of its columns: acks=all,brokers=3.
    """
    from kcluster.cli.work.replay import replay_run

    replay_run(file, cell, seed, out, scenario)
