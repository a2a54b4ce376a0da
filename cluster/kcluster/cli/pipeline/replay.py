"""`kcluster pipeline replay GRID.yaml CELL SEED`: repeat one run of a sweep, with its timeline.

Owns: the verb's options, what is printed.  Never: needs Spark.
"""

from __future__ import annotations

import shlex

import click

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.cli.pipeline.sweep import read_grid
from kcluster.cli.spark_job import refuse


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
    from kcluster.pipeline.sweep.cells import text_of
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.play.running import run_scenario
    from kcluster.scenario.report import result_lines

    grid = read_grid(file)
    try:
        at = grid.find(cell)
    except ValueError as error:
        refuse(str(error))
    name = f"cell{at + 1}_seed{seed}"
    text = text_of(grid.cells[at], seed, name, f"{grid.name}, {grid.title(at)}")
    if scenario:
        print(text, end="")
        return
    result = run_scenario(Scenario.parse(text, f"{name}.yaml"), "virtual", seed)
    if out is not None:
        from kcluster.cli.writing import writing
        from kcluster.runs.directory import write_run

        try:
            with writing(out):
                path = write_run(out, result.record())
        except CommandError as error:
            fail(error)
        print(f"run directory: {path}")
    lines = result_lines(result, verbose=True)
    print("\n".join(line for line in lines if not line.startswith("  replay: ")))
    print(f"  replay: {shlex.join(['kcluster', 'pipeline', 'replay', file, cell, str(seed)])}")
