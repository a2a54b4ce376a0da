"""Runs a scenario on the requested clock.

Owns: the choice of the clock, and keeping a bug of kcluster in one run from ending the program.
Never: plays or judges (virtual.py, live.py, kafka.py and phases.py do).  Kafka: no counterpart.
"""

from __future__ import annotations

import traceback
from typing import Final

from kcluster.checks.asked import EVERYTHING, Asked
from kcluster.protocol.errors import ProtocolError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import Progress, RunCrash, RunResult
from kcluster.scenario.play.virtual import run_virtual

BUGS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    ProtocolError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""The exceptions that show a bug; such as failed asserts of the core, and endless loops."""


def _no_progress(passed_ms: int, all_ms: int) -> None:
    pass


def run_scenario(
    scenario: Scenario,
    clock: str,
    seed: int | None = None,
    progress: Progress = _no_progress,
    asked: Asked = EVERYTHING,
) -> RunResult:
    """Run a scenario on a clock, `virtual`, `live` or `kafka`, and judge it.  `asked`: what is read
    of a run in virtual time.  Raises ClusterError if a live cluster, or a real Kafka, cannot
    start."""
    first_seed = scenario.first_seed(seed)
    if clock == "kafka":
        from kcluster.scenario.play.kafka import run_kafka

        return run_kafka(scenario, first_seed, progress)
    if clock == "live":
        from kcluster.scenario.play.live import run_live  # loads gevent

        return run_live(scenario, first_seed, progress)
    return run_virtual(scenario, first_seed, progress, asked=asked)


def try_scenario(
    scenario: Scenario, clock: str, seed: int | None = None, progress: Progress = _no_progress
) -> RunResult | RunCrash:
    """Run a scenario as `run_scenario` does; a bug of kcluster becomes a result, so that other runs
    go on."""
    try:
        return run_scenario(scenario, clock, seed, progress)
    except BUGS as error:
        text = f"{type(error).__name__}: {error}"
        chosen = scenario.first_seed(seed)
        return RunCrash(scenario, clock, chosen, text, traceback.format_exc())
