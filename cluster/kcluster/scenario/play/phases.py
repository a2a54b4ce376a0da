"""One run of a scenario on a stage: its phases, and its result.

Owns: the order of the phases (workload, steps, quiescence, verdict), the result.  Never: advances
time (virtual.py and live.py do), knows what an action does (actions/) or judges an outcome
(checks/, outcome.py).  Kafka: no counterpart; Jepsen's test runner is the model.

The cluster starts; for `duration` clients run and steps are played; then producers stop, every
fault is undone (unless `heal: false`), and everything in flight completes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, structs

from kcluster.checks.anomalies.stuck_offline import StuckOffline
from kcluster.checks.anomalies.unsettled_group import UnsettledGroup
from kcluster.checks.asked import EVERYTHING, Asked
from kcluster.checks.verdict import LATE_MS, LATE_VIRTUAL_MS, Verdict, judge
from kcluster.checks.verdict_facts import UNKNOWN
from kcluster.clients.ledger import Ledger
from kcluster.config.files.secrets import text_without_secrets
from kcluster.contract import Note
from kcluster.evidence.recorder import Recorder
from kcluster.operations.unrest import Unrest
from kcluster.runs.build_record import record_of
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import library_name
from kcluster.scenario.outcome import REST, FailedCheck, failed_checks
from kcluster.scenario.play.run_clients import RunClients
from kcluster.scenario.play.runner import Played, Runner
from kcluster.scenario.play.stage import ScenarioStage
from kcluster.version import __version__

CALM_LIMIT_MS: Final = 360_000
"""The longest time in virtual time until everything in flight has completed: longer than
max.poll.interval.ms, after which a group goes on without a member that gives nothing back.  Live,
in profile fast, a hundredth of it."""

MAX_UNFINISHED: Final = 10
"""The number of lines that a report shows about unfinished work."""

Progress = Callable[[int, int], None]
"""Called with (ms passed, ms in total)."""


def replay_command(scenario: Scenario, clock: str, seed: int) -> str:
    """The command that repeats a run."""
    chosen = "" if seed == scenario.seed else f" --seed {seed}"
    file = library_name(scenario.source) or scenario.source
    return f"kcluster scenario run {file} --clock {clock}{chosen}"


class RunCrash(Struct, frozen=True):
    """A run that was ended by a bug in kcluster.  `error`: in one line; `traceback`: all of its
    lines."""

    scenario: Scenario
    clock: str
    seed: int
    error: str
    traceback: str

    @property
    def replay(self) -> str:
        """The command that repeats the run."""
        return replay_command(self.scenario, self.clock, self.seed)


class RunResult(Struct):
    """The result of one run.  `failed`: each check that does not hold and each action that could
    not be performed."""

    scenario: Scenario
    clock: str
    seed: int
    verdict: Verdict
    failed: list[FailedCheck]
    played: list[Played]
    notes: list[Note]
    ledger: Ledger
    recorder: Recorder
    began_ms: int
    first_note: int
    """The index of the first note after the cluster's start."""
    duration_ms: int
    wall_s: float
    has_problems: bool = False
    """Whether an action could not be performed, so that the run proves nothing."""
    trace_hash: str = ""
    """The hash of the trace of a run in virtual time; equal for equal scenarios and seeds."""
    not_judged: tuple[str, ...] = ()
    """The checks that could not be judged: on a real Kafka, what only the inside of brokers
    shows."""
    unfinished: tuple[Unrest, ...] = ()
    """What the run still waited for when its time was over."""

    @property
    def failures(self) -> list[str]:
        """The reasons of `failed`, one line each."""
        return [failed.text for failed in self.failed]

    @property
    def passed(self) -> bool:
        """Whether the scenario's checks hold."""
        return not self.failed

    @property
    def replay(self) -> str:
        """The command that repeats the run."""
        return replay_command(self.scenario, self.clock, self.seed)

    def record(self) -> RunRecord:
        """The record of the run, as written to a run directory."""
        scenario = self.scenario
        info = RunInfo(
            scenario.name,
            self.clock,
            self.seed,
            self.began_ms,
            self.recorder.dispatcher.now_ms,
            passed=self.passed,
            failures=self.failures,
            replay=self.replay,
            source=scenario.source,
            story=scenario.story,
            trace_hash=self.trace_hash,
            version=__version__,
        )
        record = record_of(info, self.recorder, self.ledger, self.verdict)
        record.scenario = text_without_secrets(scenario.text)
        return record


class ScenarioRun:
    """One run on a stage.  The caller calls `begin`, advances time by `duration_ms`, calls
    `calm_down`, waits until `is_quiet`, and reads the `result`.  `asked`: what is read of it."""

    def __init__(
        self,
        scenario: Scenario,
        stage: ScenarioStage,
        recorder: Recorder,
        seed: int,
        asked: Asked = EVERYTHING,
    ) -> None:
        self.scenario = scenario
        self.stage = stage
        self.seed = seed
        self.recorder = recorder
        self.asked = asked
        recorder.keeps_states = asked.states
        self.runner = Runner(scenario, stage)
        self.clients = RunClients(scenario, stage)
        self._began_ms = self._first_note = 0

    def begin(self) -> None:
        """Start the clients and the first step."""
        self._began_ms = self.stage.dispatcher.now_ms
        self._first_note = len(self.stage.notes())
        self.clients.start()
        self.runner.start()

    def calm_down(self, steps_may_be_left: bool = False) -> None:
        """Stop the producers and the steps, and undo every fault."""
        self.clients.end_producers()
        self.runner.end(steps_may_be_left)

    def is_quiet(self) -> bool:
        """Whether all sends have an outcome, consumers have read everything, replicas are in
        sync."""
        return next(self.clients.unfinished(), None) is None

    def _all_run(self) -> bool:
        """Whether every broker runs and is unfenced."""
        settled = self.stage.verbs.settled
        return all(map(settled.is_running, settled.brokers()))

    def result(
        self,
        clock: str,
        wall_s: float,
        unfinished: Sequence[Unrest],
        trace_hash: str,
        may_be_unknown: bool = False,
    ) -> RunResult:
        """Judge the run.  `unfinished`: the work for which the run still waited when its time was
        over.  `may_be_unknown`: whether the verdict may be unknown, unless a check names it."""
        stage, scenario = self.stage, self.scenario
        is_quiet = not unfinished
        verdict = judge(
            self.recorder,
            stage.ledger,
            healed=scenario.heal and is_quiet,
            is_final=scenario.heal and self._all_run(),
            drained=is_quiet and self.clients.could_read(),
            began_ms=self._began_ms,
            clients=stage.client_ids(),
            patience_ms=stage.patience_ms,
            late_ms=LATE_VIRTUAL_MS if clock == "virtual" else LATE_MS,
            asked=self.asked,
        )
        notes = stage.notes()[self._first_note :]
        checks, not_judged = stage.judged(scenario.checks)
        if may_be_unknown and checks.verdict is None and verdict.outcome == UNKNOWN:
            checks = structs.replace(checks, verdict=UNKNOWN)
        failed = failed_checks(checks, verdict, stage, notes)
        failed += _unrest(scenario, verdict, unfinished)
        return RunResult(
            scenario=scenario,
            clock=clock,
            seed=self.seed,
            verdict=verdict,
            failed=failed,
            played=self.runner.played,
            notes=stage.notes(),
            ledger=stage.ledger,
            recorder=self.recorder,
            began_ms=self._began_ms,
            first_note=self._first_note,
            duration_ms=stage.now_ms,
            wall_s=wall_s,
            has_problems=bool(stage.problems),
            trace_hash=trace_hash,
            not_judged=not_judged,
            unfinished=tuple(unfinished),
        )


_WITHOUT_REST: Final = (UnsettledGroup.NAME, StuckOffline.NAME)
"""The anomalies with which a run never comes to rest."""


def _unrest(
    scenario: Scenario, verdict: Verdict, unfinished: Sequence[Unrest]
) -> list[FailedCheck]:
    """The failures of a run that did not come to rest; or came to rest, though it must not.  An
    anomaly that keeps the run from its rest is not reported twice."""
    if not scenario.checks.comes_to_rest:
        text = "comes_to_rest: everything in flight was completed"
        return [] if unfinished else [FailedCheck("comes_to_rest", text)]
    if not scenario.heal or any(one.name in _WITHOUT_REST for one in verdict.anomalies):
        return []
    shown = [f"it did not come to rest: {one.text}" for one in unfinished[:MAX_UNFINISHED]]
    more = len(unfinished) - len(shown)
    if more:
        shown.append(f"it did not come to rest: {more} more of these")
    return [FailedCheck(REST, text) for text in shown]
