"""Every incident ends as its file says, on both clocks; in virtual time twice the same.

tests/events/test_golden.py compares a run of each with what an earlier process wrote, so a second
run is slow.  Live, `make test` plays every third.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from tests.rig.incidents import INCIDENTS, each_incident, played

LIVE = [file for file in INCIDENTS if "clocks: [virtual]" not in file.read_text("utf-8")]
SOME = frozenset(file.stem for file in LIVE[::3])


def report(result: RunResult) -> str:
    return "\n".join([*result.failures, *result.verdict.lines()])


@each_incident
def test_incident__ends_as_its_file_states_in_virtual_time(file: Path) -> None:
    scenario = Scenario.load(file)
    assert len(scenario.story.split()) > 20, "incidents explain themselves"
    first = played(file)
    assert first.passed, report(first)


@pytest.mark.slow
@each_incident
def test_incident__has_the_same_trace_again(file: Path) -> None:
    assert run_scenario(Scenario.load(file), "virtual").trace_hash == played(file).trace_hash


@pytest.mark.waits
@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=() if file.stem in SOME else pytest.mark.slow)
        for file in LIVE
    ],
)
def test_incident__ends_as_its_file_states_live(file: Path) -> None:
    scenario = Scenario.load(file)
    assert "live" in scenario.clocks
    result = run_scenario(scenario, "live")
    if not result.passed:
        # A busy machine may have delayed it.
        result = run_scenario(scenario, "live")
    assert result.passed, report(result)
