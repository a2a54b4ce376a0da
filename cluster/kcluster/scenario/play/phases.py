"""One run of a scenario on a stage: its phases, and its result.

Owns: the order of the phases (workload, steps, quiescence, verdict), the result.  Never: advances
time (virtual.py and live.py do), knows what an action does (actions/) or what is wrong with an
outcome (checks/, outcome.py).  Kafka: no counterpart; Jepsen's test runner is the model.

The cluster starts; for `duration` clients run and steps are played; then producers stop, every
fault is undone (unless `heal: false`), and everything in flight completes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kcluster.checks.verdict import LATE_MS, LATE_VIRTUAL_MS, Verdict, judge
from kcluster.clients.ledger import Ledger
from kcluster.contract import Note
from kcluster.evidence.recorder import Recorder
from kcluster.operations.conditions import SETTLED
from kcluster.runs.build_record import record_of
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.outcome import failed_checks
from kcluster.scenario.play.runner import Played, Runner
from kcluster.scenario.play.stage import Stage
from kcluster.scenario.play.workload import WorkloadConsumer, WorkloadProducer, make_clients
from kcluster.version import __version__

CALM_LIMIT_MS: Final = 300_000
"""How long everything in flight may take to complete, in virtual time; live, in profile fast, a
hundredth of it."""

ARRIVAL_MS: Final = 1_000
"""Records sent with acks=0 have arrived after this time; no answer reports when."""

Progress = Callable[[int, int], None]
"""(ms passed, ms in total)"""


class RunResult(Struct):
    """The result of one run.  `failures`: one line for each check that does not hold and each
    action that could not be performed."""

    scenario: Scenario
    clock: str
    seed: int
    verdict: Verdict
    failures: list[str]
    played: list[Played]
    notes: list[Note]
    ledger: Ledger
    recorder: Recorder
    began_ms: int
    first_note: int
    """Index of the first note after the cluster's start."""
    duration_ms: int
    wall_s: float
    has_problems: bool = False
    """An action could not be performed, so the run proves nothing."""
    trace_hash: str = ""
    """Of a run in virtual time; equal for equal scenarios and seeds."""

    @property
    def passed(self) -> bool:
        """Whether the scenario's checks hold."""
        return not self.failures

    @property
    def replay(self) -> str:
        """The command that repeats the run."""
        seed = "" if self.seed == self.scenario.seed else f" --seed {self.seed}"
        return f"kcluster scenario run {self.scenario.source} --clock {self.clock}{seed}"

    def record(self) -> RunRecord:
        """The run as written to a run directory."""
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
        record.scenario = scenario.text
        return record


class ScenarioRun:
    """One run on a stage.  The caller calls `begin`, advances time by `duration_ms`, calls
    `calm_down`, waits until `is_quiet`, and reads the `result`."""

    def __init__(self, scenario: Scenario, stage: Stage, recorder: Recorder, seed: int) -> None:
        self.scenario = scenario
        self.stage = stage
        self.seed = seed
        self.recorder = recorder
        self.runner = Runner(scenario, stage)
        self._producers: list[WorkloadProducer] = []
        self._consumers: list[WorkloadConsumer] = []
        self._began_ms = self._first_note = 0
        self._arrived_ms: int | None = None

    def begin(self) -> None:
        """Start the clients and the first step."""
        self._began_ms = self.stage.dispatcher.now_ms
        self._first_note = len(self.stage.notes())
        self._producers, self._consumers = make_clients(
            self.scenario.workload, self.scenario.topology.profile, self.stage.ledger
        )
        clients: list[WorkloadProducer | WorkloadConsumer] = [*self._producers, *self._consumers]
        for client in clients:
            self.stage.add_client(client.name, client)
        self.runner.start()

    def calm_down(self) -> None:
        """Stop the producers and the steps, and undo every fault."""
        now_ms = self.stage.dispatcher.now_ms
        for producer in self._producers:
            producer.stop(now_ms)
        self.runner.end()

    def is_quiet(self) -> bool:
        """Whether all sends have an outcome, consumers have read everything, replicas are in
        sync."""
        if not self._are_sends_over():
            return False
        if self.scenario.heal and not self.stage.holds(SETTLED):
            return False
        return all(self._has_caught_up(consumer) for consumer in self._consumers)

    def _are_sends_over(self) -> bool:
        if not all(producer.is_done for producer in self._producers):
            return False
        if self._arrived_ms is None:
            sends = self.stage.ledger.sends
            last_ms = max((send.ended_ms for send in sends if send.acks == 0), default=None)
            self._arrived_ms = 0 if last_ms is None else last_ms + ARRIVAL_MS
        return self.stage.dispatcher.now_ms >= self._arrived_ms

    def _has_caught_up(self, consumer: WorkloadConsumer) -> bool:
        """Whether it has read its partitions up to the high watermark, or has ended."""
        if consumer.is_done:
            return True
        assignment = consumer.assignment
        return all(
            consumer.position(*partition) >= self.stage.high_watermark(*partition)
            for partition in assignment
        ) and (bool(assignment) or self._is_idle_member(consumer))

    def _is_idle_member(self, consumer: WorkloadConsumer) -> bool:
        """Whether others of its group have all partitions: there are more members than
        partitions."""
        return any(other.assignment for other in self._consumers if other is not consumer)

    def stop_consumers(self) -> None:
        """Stop the consumers: they commit and leave their groups."""
        for consumer in self._consumers:
            consumer.stop(self.stage.dispatcher.now_ms)

    def are_consumers_gone(self) -> bool:
        """Whether all consumers have left."""
        return all(consumer.is_done for consumer in self._consumers)

    def result(self, clock: str, wall_s: float, is_quiet: bool, trace_hash: str) -> RunResult:
        """Judge the run."""
        stage, scenario = self.stage, self.scenario
        verdict = judge(
            self.recorder,
            stage.ledger,
            healed=scenario.heal and is_quiet,
            drained=is_quiet,
            began_ms=self._began_ms,
            clients=stage.client_ids(),
            late_ms=LATE_VIRTUAL_MS if clock == "virtual" else LATE_MS,
        )
        notes = stage.notes()[self._first_note :]
        failures = failed_checks(scenario.checks, verdict, stage, notes)
        if not is_quiet and scenario.heal:
            failures.append("it did not become quiet: something is still in flight, or not in sync")
        return RunResult(
            scenario=scenario,
            clock=clock,
            seed=self.seed,
            verdict=verdict,
            failures=failures,
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
        )
