"""Every incident ends as its file says, on both clocks; in virtual time twice the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from tests.rig.incidents import INCIDENTS, each_incident, played


def report(result: RunResult) -> str:
    return "\n".join([*result.failures, *result.verdict.lines()])


@each_incident
def test_incident__ends_as_its_file_states_in_virtual_time(file: Path) -> None:
    scenario = Scenario.load(file)
    assert len(scenario.story.split()) > 20, "incidents explain themselves"
    first = played(file)
    assert first.passed, report(first)
    assert run_scenario(scenario, "virtual").trace_hash == first.trace_hash


@pytest.mark.waits
@pytest.mark.timeout_s(120)
@pytest.mark.parametrize("file", INCIDENTS, ids=lambda file: file.stem)
def test_incident__ends_as_its_file_states_live(file: Path) -> None:
    scenario = Scenario.load(file)
    assert "live" in scenario.clocks
    result = run_scenario(scenario, "live")
    if not result.passed:
        # A busy machine may have delayed it.
        result = run_scenario(scenario, "live")
    assert result.passed, report(result)
