"""The incidents that ship with kcluster, each with its run in virtual time.

Owns: the run that all tests of an incident look at.  Never: judges it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

INCIDENTS = sorted((Path(__file__).parents[2] / "scenarios" / "incidents").glob("*.yaml"))

each_incident = pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=pytest.mark.xdist_group(f"incident {file.stem}"))
        for file in INCIDENTS
    ],
)
"""A test for each file; those of one file share a worker, and so its run."""


@cache
def played(file: Path) -> RunResult:
    """The incident's run, with its own seed."""
    return run_scenario(Scenario.load(file), "virtual")
