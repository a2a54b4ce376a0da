"""Runs a scenario to its end on one clock, and judges it.

Owns: the course of a run: start, workload, steps, calm, verdict; its result.  Never: knows what a
step does (actions/) or what is wrong with an outcome (checkers/, outcome.py).
Kafka: no counterpart; Jepsen's test runner is the model.

A run: the cluster comes up; clients begin and steps are taken, for `duration`; then clients stop
sending, everything is mended (unless `heal: false`), and what is under way comes to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kcluster import __version__
from kcluster.checks.verdict import Verdict, judge
from kcluster.contract import Note
from kcluster.drivers.virtual import VirtualDriver
from kcluster.evidence.history import Ledger
from kcluster.evidence.recorder import Recorder
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.runs.rows import record_of
from kcluster.scenario.language.model import Scenario
from kcluster.scenario.language.words import condition
from kcluster.scenario.outcome import failed_checks
from kcluster.scenario.play.runner import Played, Runner
from kcluster.scenario.play.stage import StageBase
from kcluster.scenario.play.virtual import VirtualStage
from kcluster.scenario.play.workload import WorkloadConsumer, WorkloadProducer, make_clients

CALM_LIMIT_MS: Final = 300_000
"""In virtual time, for what is under way to come to its end; live, in profile fast, a hundredth."""
_SETTLED: Final = condition("settled")

ARRIVAL_MS: Final = 1_000
"""What was sent with acks=0 has arrived by then: nobody tells when."""
PROGRESS_SLICES: Final = 20
LEAVE_LIMIT_MS: Final = 60_000

Progress = Callable[[int, int], None]
"""(ms that have passed, ms in all)."""


def _no_progress(passed_ms: int, all_ms: int) -> None:
    pass


class RunResult(Struct):
    """What became of one run.  `failures`: checks that do not hold, and deeds that could not be
    done, in words; empty when all is as the scenario says."""

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
    """Index of the first note that is not of the cluster's coming up."""
    duration_ms: int
    wall_s: float
    has_problems: bool = False
    """Some deed could not be done: it told nothing."""
    trace_hash: str = ""
    """Of a run in virtual time: equal for equal scenario and seed."""

    @property
    def passed(self) -> bool:
        """Whether the scenario's checks hold."""
        return not self.failures

    @property
    def replay(self) -> str:
        """The command that runs it again."""
        seed = "" if self.seed == self.scenario.seed else f" --seed {self.seed}"
        return f"kcluster scenario run {self.scenario.source} --clock {self.clock}{seed}"

    def record(self) -> RunRecord:
        """All of it, for a run directory."""
        scenario = self.scenario
        info = RunInfo(
            scenario.name, self.clock, self.seed, self.began_ms, self.recorder.dispatcher.now_ms,
            passed=self.passed, failures=self.failures, replay=self.replay, source=scenario.source,
            story=scenario.story, trace_hash=self.trace_hash, version=__version__,
        )  # fmt: skip
        record = record_of(info, self.recorder, self.ledger, self.verdict)
        record.scenario = scenario.text
        return record


class Run:
    """One run on a stage, from the outside: `begin`, let `duration_ms` pass, `calm_down`, let it
    become quiet (`is_quiet`), `result`."""

    def __init__(self, scenario: Scenario, stage: StageBase, recorder: Recorder, seed: int) -> None:
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
        """Clients begin, and the first step."""
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
        """Time is up: no more records, no more steps, everything is mended."""
        now_ms = self.stage.dispatcher.now_ms
        for producer in self._producers:
            producer.stop(now_ms)
        self.runner.end()

    def is_quiet(self) -> bool:
        """All sends have their outcome, consumers have read all, replicas are in sync."""
        if not self._are_sends_over():
            return False
        if self.scenario.heal and not self.stage.holds(_SETTLED):
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
        """It has read all that is committed of its partitions, or it has ended."""
        if consumer.is_done:
            return True
        assignment = consumer.assignment
        return all(
            consumer.position(*partition) >= self.stage.high_watermark(*partition)
            for partition in assignment
        ) and (bool(assignment) or self._is_spare(consumer))

    def _is_spare(self, consumer: WorkloadConsumer) -> bool:
        """Others of its group read everything: there are more members than partitions."""
        return any(other.assignment for other in self._consumers if other is not consumer)

    def stop_consumers(self) -> None:
        """Consumers commit, and leave their groups."""
        for consumer in self._consumers:
            consumer.stop(self.stage.dispatcher.now_ms)

    def are_consumers_gone(self) -> bool:
        """They have."""
        return all(consumer.is_done for consumer in self._consumers)

    def result(self, clock: str, wall_s: float, is_quiet: bool, trace_hash: str) -> RunResult:
        """Judge it."""
        stage, scenario = self.stage, self.scenario
        verdict = judge(
            self.recorder, stage.ledger, healed=scenario.heal and is_quiet, drained=is_quiet,
            began_ms=self._began_ms, clients=stage.client_ids(),
        )  # fmt: skip
        notes = stage.notes()[self._first_note :]
        failures = failed_checks(scenario.checks, verdict, stage, notes)
        if not is_quiet and scenario.heal:
            failures.append("it did not come to rest: something is still under way, or not in sync")
        return RunResult(
            scenario, clock, self.seed, verdict, failures, self.runner.played, stage.notes(),
            stage.ledger, self.recorder, self._began_ms, self._first_note, stage.now_ms, wall_s,
            bool(stage.problems), trace_hash,
        )  # fmt: skip


def run_scenario(
    scenario: Scenario, clock: str, seed: int | None = None, progress: Progress = _no_progress
) -> RunResult:
    """Run it on a clock, `virtual` or `live`, and judge it.  Raises ClusterError where a live
    cluster cannot start."""
    run = _run_live if clock == "live" else _run_virtual
    return run(scenario, scenario.first_seed(seed), progress)


def _run_virtual(scenario: Scenario, seed: int, progress: Progress) -> RunResult:
    began_s = time.perf_counter()
    stage = VirtualStage(VirtualDriver(scenario.topology, seed), seed, Ledger())
    run = Run(scenario, stage, Recorder(stage.dispatcher, stage.plan), seed)
    stage.start()
    run.begin()
    for at in range(1, PROGRESS_SLICES + 1):
        stage.run_until(scenario.duration_ms * at // PROGRESS_SLICES)
        progress(stage.now_ms, scenario.duration_ms)
    run.calm_down()
    is_quiet = stage.run(run.is_quiet, CALM_LIMIT_MS)
    run.stop_consumers()
    stage.run(run.are_consumers_gone, LEAVE_LIMIT_MS)
    wall_s = time.perf_counter() - began_s
    return run.result("virtual", wall_s, is_quiet, stage.driver.trace_hash())


def _run_live(scenario: Scenario, seed: int, progress: Progress) -> RunResult:
    from kcluster.scenario.play.live import run_live

    return run_live(scenario, seed, progress)
