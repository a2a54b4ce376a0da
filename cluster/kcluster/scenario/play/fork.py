"""Two futures of one moment of a run in virtual time: without a choice, and with it.

Owns: playing a run again up to a moment, performing the choice there, the end of both futures.
Never: reconstructs a live cluster's past (scenario/forking.py does).  Kafka: no counterpart; only
in virtual time can the same past be played again.

Both futures have the same seed, so up to the moment their records are equal, row by row.  From
there on no further step of the scenario is played: actions in progress still end, and the clients
go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kcluster.checks.verdict import Verdict
from kcluster.operations.errors import ClusterError
from kcluster.runs.journal import rows_after
from kcluster.runs.record import Rows, RunRecord
from kcluster.scenario.difference import FutureDifference, difference_of
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.virtual import VirtualRun

LONGEST_MS: Final = 600_000
"""The longest future: ten minutes of virtual time are played in seconds."""


class Future(Struct, frozen=True):
    """One future of a moment.  `record`: the record of its whole run, from the start; `problems`:
    the reasons why actions in it could not be performed, one line each."""

    record: RunRecord
    verdict: Verdict
    problems: tuple[str, ...]

    def rows_after(self, at_ms: int) -> Rows:
        """The rows of the stream (as in `Cluster.recorded_since`) after this moment."""
        return rows_after(self.record, at_ms)


class Futures(Struct, frozen=True):
    """Both futures of a moment, `at_ms` on the clock of the run: `here` without and `there` with
    the choice; `difference`: what the choice changes.  `assumptions`: the reasons why the played
    past differs from the real one, one line each; empty if it is exact."""

    at_ms: int
    here: Future
    there: Future
    difference: FutureDifference
    assumptions: tuple[str, ...] = ()


def fork(
    scenario: Scenario, seed: int, at_ms: int, actions: Sequence[Step], for_ms: int
) -> Futures:
    """Both futures of a scenario's run, `at_ms` after its start; each goes on for `for_ms` and then
    comes to rest, as runs of scenarios do.  ClusterError for a moment or a time out of bounds."""
    check_moment(scenario, at_ms)
    if not 0 < for_ms <= LONGEST_MS:
        raise ClusterError(f"a future has 1 to {LONGEST_MS} ms, not {for_ms}")
    here = _future(scenario, seed, at_ms, (), for_ms)
    there = _future(scenario, seed, at_ms, actions, for_ms)
    refused = tuple(f"not possible in the played past: {problem}" for problem in here.past_problems)
    at_ms = here.moment_ms
    difference = difference_of(here.future.record, there.future.record, at_ms, for_ms)
    return Futures(at_ms, here.future, there.future, difference, refused)


def check_moment(scenario: Scenario, at_ms: int) -> None:
    """ClusterError unless a run of this scenario has this moment, counted from its start."""
    if not 0 <= at_ms <= scenario.duration_ms:
        raise ClusterError(
            f"{at_ms} ms is not a moment of this run, in which clients run and steps are played for"
            f" {scenario.duration_ms} ms"
        )


class _Played(Struct, frozen=True):
    """One future, with the moment on the clock of the run, and the steps before the moment that
    could not be performed."""

    future: Future
    moment_ms: int
    past_problems: tuple[str, ...]


def _future(
    scenario: Scenario, seed: int, at_ms: int, actions: Sequence[Step], for_ms: int
) -> _Played:
    played = VirtualRun(scenario, seed)
    played.advance(at_ms)
    moment_ms = played.stage.dispatcher.now_ms
    problems = played.stage.problems
    past_problems = tuple(problems)
    problems.clear()
    played.run.runner.branch_off(actions)
    played.stage.run_until(at_ms + for_ms)
    result = played.finish()
    record = result.record()
    # The scenario's checks apply to its own run only.
    record.info.passed, record.info.failures, record.info.replay = True, list(problems), ""
    return _Played(Future(record, result.verdict, tuple(problems)), moment_ms, past_problems)
