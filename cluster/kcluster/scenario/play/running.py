"""Runs a scenario on the clock that is asked for.

Owns: the choice of the clock.  Never: plays or judges (virtual.py, live.py and phases.py do).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import Progress, RunResult
from kcluster.scenario.play.virtual import run_virtual


def _no_progress(passed_ms: int, all_ms: int) -> None:
    pass


def run_scenario(
    scenario: Scenario, clock: str, seed: int | None = None, progress: Progress = _no_progress
) -> RunResult:
    """Run a scenario on a clock, `virtual` or `live`, and judge it.  Raises ClusterError if a live
    cluster cannot start."""
    first_seed = scenario.first_seed(seed)
    if clock == "live":
        from kcluster.scenario.play.live import run_live  # loads gevent

        return run_live(scenario, first_seed, progress)
    return run_virtual(scenario, first_seed, progress)
