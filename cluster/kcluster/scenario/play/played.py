"""A run that is over, presented as a cluster: its whole record, its clock, its forks.

Owns: PlayedRun, which `kcluster play` serves to the page.  Never: serves anything itself.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kcluster.checks.verdict import Verdict
from kcluster.handle.clock import ClockStatus
from kcluster.operations.prediction import Prediction
from kcluster.runs.record import Rows, RunInfo, RunRecord
from kcluster.runs.recorder_rows import Recorded, recorded_between
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.fork import Futures, check_moment, fork
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.virtual import VirtualRun
from kcluster.scenario.predicting import questions_on


class RunPast(Struct, frozen=True):
    """The past of a run until `at_ms` after its start, as the scenario that was played."""

    scenario: Scenario
    seed: int
    at_ms: int

    def assumptions(self, _record: RunRecord, problems: Sequence[str]) -> tuple[str, ...]:
        """The steps that could not be performed; played again, the past is the same."""
        return tuple(problems)


class PlayedRun:
    """The result of a run in virtual time.  Times are on the run's clock."""

    def __init__(self, result: RunResult) -> None:
        self._result = result
        self._record: RunRecord | None = None

    @property
    def scenario(self) -> Scenario:
        """The scenario that was played."""
        return self._result.scenario

    @property
    def record(self) -> RunRecord:
        """The whole record, read once and kept."""
        if self._record is None:
            self._record = self._result.record()
        return self._record

    @property
    def info(self) -> RunInfo:
        """The facts about the run."""
        return self.record.info

    def verdict(self) -> Verdict:
        """The verdict on the whole run."""
        return self._result.verdict

    def recorded_since(self, after_ms: int) -> tuple[Rows, int]:
        """The rows after this moment, and the moment up to which they are complete: the end of the
        run."""
        found, ended_ms = self.read_since(after_ms)
        return found.rows(), ended_ms

    def read_since(self, after_ms: int) -> tuple[Recorded, int]:
        """What was recorded after this moment, as for `recorded_since`."""
        ended_ms = self.info.ended_ms
        return recorded_between(self._result.recorder, after_ms, ended_ms + 1), ended_ms

    def clock(self) -> ClockStatus:
        """The clock, which stands at the end of the run; no further event can be stepped to."""
        return ClockStatus(self.info.ended_ms, True, 1.0, ())

    def past(self, at_ms: int | None) -> RunPast:
        """The past until a moment on the run's clock; None means its end."""
        result = self._result
        moment_ms = result.scenario.duration_ms if at_ms is None else at_ms - result.began_ms
        return RunPast(result.scenario, result.seed, moment_ms)

    def fork(self, actions: Sequence[Step], at_ms: int | None, for_ms: int) -> Futures:
        """Both futures of a moment on the run's clock; None means its end."""
        past = self.past(at_ms)
        return fork(past.scenario, past.seed, past.at_ms, actions, for_ms)

    def questions(self, step: Step, at_ms: int) -> list[Prediction]:
        """The questions about an action at a moment on the run's clock.  The run is played again up
        to that moment; ClusterError if the run does not have it."""
        past = self.past(at_ms)
        check_moment(past.scenario, past.at_ms)
        played = VirtualRun(past.scenario, past.seed)
        played.advance(past.at_ms)
        return questions_on(played.stage, step)
