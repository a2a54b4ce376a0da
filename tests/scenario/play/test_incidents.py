"""Every incident ends as its file says, on both clocks; in virtual time twice the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

FILES = sorted((Path(__file__).parents[3] / "scenarios" / "incidents").glob("*.yaml"))
AT_ONCE = 4
"""Live runs at the same time; they wait most of the time."""


def report(result: RunResult) -> str:
    return "\n".join([*result.failures, *result.verdict.lines()])


@pytest.fixture(scope="module")
def live_runs() -> Iterator[dict[str, Future[RunResult]]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            file.stem: pool.submit(run_scenario, Scenario.load(file), "live")
            for file in FILES
            if "live" in Scenario.load(file).clocks
        }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_incident__ends_as_its_file_states_in_virtual_time(file: Path) -> None:
    scenario = Scenario.load(file)
    assert len(scenario.story.split()) > 20, "incidents explain themselves"
    first = run_scenario(scenario, "virtual")
    assert first.passed, report(first)
    assert run_scenario(scenario, "virtual").trace_hash == first.trace_hash


@pytest.mark.timeout_s(120)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_incident__ends_as_its_file_states_live(
    file: Path, live_runs: dict[str, Future[RunResult]]
) -> None:
    result = live_runs[file.stem].result()
    if not result.passed:
        result = run_scenario(
            Scenario.load(file), "live"
        )  # run alone: other runs may have delayed it
    assert result.passed, report(result)
