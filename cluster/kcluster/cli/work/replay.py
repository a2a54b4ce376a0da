"""The work of `kcluster pipeline replay`.

Owns: the output.  Never: needs Spark, runs a scenario itself (scenario/play/running.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import shlex

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.cli.spark_job import refuse
from kcluster.cli.work.grid import read_grid
from kcluster.cli.writing import writing
from kcluster.pipeline.sweep.cells import text_of
from kcluster.runs.directory import write_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.report import result_lines


def replay_run(file: str, cell: str, seed: int, out: str | None, scenario: bool) -> None:
    """Repeat one run of a sweep."""
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
        try:
            with writing(out):
                path = write_run(out, result.record())
        except CommandError as error:
            fail(error)
        print(f"run directory: {path}")
    lines = result_lines(result, verbose=True)
    print("\n".join(line for line in lines if not line.startswith("  replay: ")))
    print(f"  replay: {shlex.join(['kcluster', 'pipeline', 'replay', file, cell, str(seed)])}")
