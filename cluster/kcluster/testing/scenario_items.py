"""Scenario files as pytest's items.

Owns: the items of a file, running one, the report of a failed one.  Never: imports a cluster before
an item is collected.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.play.phases import RunResult


class ScenarioFile(pytest.File):
    """One scenario file: a test for each clock."""

    def collect(self) -> Iterator[pytest.Item]:
        """One test for each clock of `--kcluster-clock` on which the scenario can run."""
        from kcluster.scenario.language.loader import ScenarioError
        from kcluster.scenario.language.scenario import Scenario

        try:
            scenario = Scenario.load(self.path)
        except ScenarioError as error:
            raise self.CollectError(str(error)) from None
        chosen = self.config.getoption("--kcluster-clock") or "virtual"
        for clock in scenario.clocks if chosen == "both" else (chosen,):
            yield ScenarioItem.from_parent(self, name=clock, scenario=scenario)


class ScenarioItem(pytest.Item):
    """A run of a scenario on one clock."""

    def __init__(self, *, scenario: Scenario, **more: Any) -> None:
        super().__init__(**more)
        self._scenario = scenario

    def runtest(self) -> None:
        """Run the scenario; fails unless all its checks hold."""
        from kcluster.scenario.play.running import run_scenario
        from kcluster.testing.run_line import run_line

        result = run_scenario(self._scenario, self.name)
        if not result.passed:
            parent = Path(self.config.rootpath, self.config.getini("kcluster_runs"))
            raise ScenarioFailed(result, run_line(parent, result.record()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The timeline, the verdict, the failed checks, the replay line."""
        if not isinstance(excinfo.value, ScenarioFailed):
            return super().repr_failure(excinfo, style)
        from kcluster.scenario.report import result_lines

        lines = list(result_lines(excinfo.value.result, verbose=True))
        return "\n".join([*lines, f"  {excinfo.value.run_line}"])

    def reportinfo(self) -> tuple[Path, int, str]:
        """The location, for the summary."""
        return self.path, 0, f"{self.path.name}[{self.name}]"


class ScenarioFailed(Exception):
    """The error for a scenario whose checks do not all hold.  `run_line`: the line that names its
    run directory."""

    def __init__(self, result: RunResult, run_line: str) -> None:
        super().__init__("; ".join(result.failures))
        self.result = result
        self.run_line = run_line
