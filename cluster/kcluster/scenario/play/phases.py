"""One run of a scenario on a stage: its phases, and its result.

Owns: the order of the phases (workload, steps, quiescence, verdict), the result.  Never: advances
time (virtual.py and live.py do), knows what an action does (actions/) or judges an outcome
(checks/, outcome.py).  Kafka: no counterpart; Jepsen's test runner is the model.

The cluster starts; for `duration` clients run and steps are played; then producers stop, every
fault is undone (unless `heal: false`), and everything in flight completes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, structs

from kcluster.checks.anomalies.stuck_offline import StuckOffline
from kcluster.checks.anomalies.unsettled_group import UnsettledGroup
from kcluster.checks.asked import EVERYTHING, Asked
from kcluster.checks.refusals import SECURITY_ERRORS
from kcluster.checks.verdict import LATE_MS, LATE_VIRTUAL_MS, Verdict, judge
from kcluster.checks.verdict_facts import UNKNOWN
from kcluster.clients.consumer.settings import READ_COMMITTED
from kcluster.clients.ledger import Ledger, Partition, Unowned
from kcluster.clients.producer.producer import Producer
from kcluster.clients.share_consumer import ShareConsumer
from kcluster.config.files.secrets import text_without_secrets
from kcluster.contract import Note
from kcluster.evidence.recorder import Recorder
from kcluster.operations.unrest import Unrest
from kcluster.runs.build_record import record_of
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import library_name
from kcluster.scenario.outcome import REST, FailedCheck, failed_checks
from kcluster.scenario.play import unfinished as facts
from kcluster.scenario.play.client_process import ClientProcess
from kcluster.scenario.play.runner import Played, Runner
from kcluster.scenario.play.stage import ScenarioStage
from kcluster.scenario.play.workload import WorkloadConsumer, client_accesses, make_clients
from kcluster.structs import Frozen
from kcluster.version import __version__

CALM_LIMIT_MS: Final = 360_000
"""The longest time in virtual time until everything in flight has completed: longer than
max.poll.interval.ms, after which a group goes on without a member that gives nothing back.  Live,
in profile fast, a hundredth of it."""

ARRIVAL_MS: Final = 1_000
"""The time after which records sent with acks=0 have arrived; no answer shows when."""
SHARE_CALM_MS: Final = 1_000
"""The time without a delivery or a load after which a share group counts as at rest, once
everything else is at rest.  In virtual time the duration of a lock is added, if records are in
flight."""
MAX_UNFINISHED: Final = 10
"""The number of lines that a report shows about unfinished work."""

Progress = Callable[[int, int], None]
"""Called with (ms passed, ms in total)."""


def replay_command(scenario: Scenario, clock: str, seed: int) -> str:
    """The command that repeats a run."""
    chosen = "" if seed == scenario.seed else f" --seed {seed}"
    file = library_name(scenario.source) or scenario.source
    return f"kcluster scenario run {file} --clock {clock}{chosen}"


class RunCrash(Frozen, frozen=True):
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
        self._producers: list[ClientProcess[Producer]] = []
        self._consumers: list[ClientProcess[WorkloadConsumer]] = []
        self._began_ms = self._first_note = 0
        self._readers: dict[str, list[ClientProcess[WorkloadConsumer]]] = {}
        """The consumers by group; a consumer without a group by its own name."""
        self._sharing: list[ClientProcess[WorkloadConsumer]] = []
        self._arrived_ms: int | None = None
        self._left_unread = False
        """Whether all consumers of a partition had stopped before the end."""
        self._shared_ms: int | None = None
        """The time since which only share groups may have work left."""

    def begin(self) -> None:
        """Start the clients and the first step."""
        self._began_ms = self.stage.dispatcher.now_ms
        self._first_note = len(self.stage.notes())
        producers, consumers = make_clients(
            self.scenario.workload, self.stage.client_profile, self.stage.ledger
        )
        self._producers = [ClientProcess(client, self._began_ms) for client in producers]
        self._consumers = [ClientProcess(client, self._began_ms) for client in consumers]
        for process in self._consumers:
            consumer = process.client
            if isinstance(consumer, ShareConsumer):
                self._sharing.append(process)
                continue
            key = consumer.settings.group_id or f"consumer {consumer.name}"
            self._readers.setdefault(key, []).append(process)
        self.stage.ledger.lock_duration_ms = self.stage.lock_duration_ms()
        accesses = client_accesses(self.scenario.workload, self.scenario.topology)
        for producer in self._producers:
            self.stage.add_process(producer, accesses[producer.name])
        for reader in self._consumers:
            self.stage.add_process(reader, accesses[reader.name])
        self.runner.start()

    def calm_down(self, steps_may_be_left: bool = False) -> None:
        """Stop the producers and the steps, and undo every fault."""
        now_ms = self.stage.dispatcher.now_ms
        for producer in self._producers:
            producer.end(now_ms)
        self.runner.end(steps_may_be_left)

    def is_quiet(self) -> bool:
        """Whether all sends have an outcome, consumers have read everything, replicas are in
        sync."""
        return next(self.unfinished(), None) is None

    def unfinished(self) -> Iterator[Unrest]:
        """What the run still waits for."""
        for producer in self._producers:
            if not producer.client.is_done:
                yield facts.SendsOpen(producer=producer.name)
        if not self._have_sends_arrived():
            yield facts.SendsUnderWay(limit_ms=ARRIVAL_MS)
        if self.scenario.heal:
            yield from self.stage.unsettled()
            yield from self._undecided()
        yield from self._unread()
        yield from self._unshared()

    def _have_sends_arrived(self) -> bool:
        if not all(producer.client.is_done for producer in self._producers):
            return True
        if self._arrived_ms is None:
            sends = self.stage.ledger.sends
            last_ms = max((send.ended_ms for send in sends if send.acks == 0), default=None)
            self._arrived_ms = 0 if last_ms is None else last_ms + ARRIVAL_MS
        return self.stage.dispatcher.now_ms >= self._arrived_ms

    def _undecided(self) -> Iterator[Unrest]:
        """Each transaction in a partition that has no marker, though its coordinator must send the
        marker."""
        if not self.stage.ledger.transactions:
            return
        opened = self.stage.open_transactions(self.stage.topic_partitions())
        for partition, transactions in opened.items():
            for found in transactions:
                if found.is_owned:
                    yield facts.NoMarker(partition=partition, producer_id=found.producer_id)

    def _unread(self) -> Iterator[Unrest]:
        """The partitions that a group, or a consumer without one, has not read to the end.  In a
        group, one member must read it: after a rebalance each partition has a reader again."""
        for readers in self._readers.values():
            present = [process.client for process in readers if process.is_up]
            for reader in present:
                if not reader.is_idle:
                    yield facts.ReaderInTransaction(reader=reader.name)
            for partition, end in self._ends_of(present):
                owners = [reader for reader in present if partition in reader.assignment]
                if any(owner.position(*partition) >= end for owner in owners):
                    continue
                if not owners:
                    names = ", ".join(reader.name for reader in present)
                    yield facts.Unassigned(partition=partition, readers=names)
                for owner in owners:
                    yield facts.Unread(
                        partition=partition,
                        reader=owner.name,
                        position=owner.position(*partition),
                        end_offset=end,
                    )

    def _unshared(self) -> Iterator[Unrest]:
        """The share groups and share partitions that may still be working: no answer shows that all
        records were delivered."""
        present = self._present_sharing()
        if not present:
            return
        now_ms = self.stage.dispatcher.now_ms
        if self._shared_ms is None:
            self._shared_ms = now_ms
        if now_ms - self._shared_ms < SHARE_CALM_MS:
            yield facts.SharersHadNoTime(calm_ms=SHARE_CALM_MS)
            return
        for consumer in present:
            if now_ms - consumer.active_ms < SHARE_CALM_MS:
                yield facts.SharerIsBusy(reader=consumer.name, calm_ms=SHARE_CALM_MS)
            elif self.scenario.heal and not consumer.has_asked_since(self._shared_ms):
                yield facts.SharerWaits(reader=consumer.name)
        yield from self._unassigned(present)
        last_ms = max(self._shared_ms, *(consumer.active_ms for consumer in present))
        lock_ms = self.stage.ledger.lock_duration_ms if self.stage.may_await_locks else 0
        is_over = now_ms - last_ms >= SHARE_CALM_MS + lock_ms
        for key, is_loading in self.stage.shared_in_motion():
            if is_loading:
                self._shared_ms = now_ms
                yield facts.ShareLoads(group=key.group_id, number=key.partition)
            elif not is_over:
                yield facts.ShareInFlight(group=key.group_id, number=key.partition)

    def _present_sharing(self) -> list[ShareConsumer]:
        """The share consumers whose processes run."""
        running = (process.client for process in self._sharing if process.is_up)
        return [client for client in running if isinstance(client, ShareConsumer)]

    def _unassigned(self, sharing: list[ShareConsumer]) -> Iterator[Unrest]:
        """The partitions that no member of a share group has been assigned, because a member that
        joins again has none for a while; or that their leaders have not loaded."""
        for group in dict.fromkeys(one.settings.group_id for one in sharing):
            members = [one for one in sharing if one.settings.group_id == group]
            topics = dict.fromkeys(topic for one in members for topic in one.plan.topics)
            assigned = {partition for one in members for partition in one.assignment}
            for topic in topics:
                for partition in self.stage.partitions(topic) if self.scenario.heal else ():
                    if partition not in assigned:
                        yield facts.ShareUnassigned(partition=partition, group=group)
                    elif not self.stage.is_shared(group, partition):
                        yield facts.ShareNotLoaded(partition=partition, group=group)

    def _unowned(self) -> Iterator[Unowned]:
        """The partitions that groups with members read and that no member owns."""
        for group, readers in self._readers.items():
            running = [process.client for process in readers if process.is_up]
            present = [reader for reader in running if reader.plan.topics]
            for partition in self._subscribed(present):
                if not any(partition in reader.assignment for reader in present):
                    yield Unowned(group, partition, self.stage.dispatcher.now_ms)

    def _subscribed(self, readers: list[WorkloadConsumer]) -> list[Partition]:
        wanted: dict[Partition, None] = {}
        for reader in readers:
            wanted.update(dict.fromkeys(reader.plan.partitions))
            for topic in reader.plan.topics:
                wanted.update(dict.fromkeys(self.stage.partitions(topic)))
        return list(wanted)

    def _ends_of(self, readers: list[WorkloadConsumer]) -> Iterator[tuple[Partition, int]]:
        """The offset up to which each partition that readers subscribe to must be read: the log
        end, because the high watermark lags after an election; but the high watermark if faults
        remain, because the records above it may never be committed."""
        stage, partitions = self.stage, self._subscribed(readers)
        if not self.scenario.heal:
            yield from ((partition, stage.high_watermark(*partition)) for partition in partitions)
            return
        is_committed = any(one.settings.isolation_level == READ_COMMITTED for one in readers)
        opened = stage.open_transactions(partitions) if is_committed else {}
        for partition in partitions:
            # Read_committed readers get no record after the start of a transaction that hangs.
            found = opened.get(partition, ())
            hanging = [each.first_offset for each in found if not each.is_owned]
            yield partition, min([stage.log_end(*partition), *hanging])

    def stop_consumers(self) -> None:
        """Stop the consumers: they commit and leave their groups."""
        self._left_unread = self._wanted(but_stopped=False) != self._wanted(but_stopped=True)
        if self.scenario.heal:
            ledger = self.stage.ledger
            ledger.unowned = list(self._unowned())
            present = [one.settings.group_id for one in self._present_sharing()]
            ledger.present_share_groups = dict.fromkeys(present)
        for consumer in self._consumers:
            consumer.end(self.stage.dispatcher.now_ms)

    def are_consumers_gone(self) -> bool:
        """Whether all consumers have left."""
        return all(consumer.client.is_done for consumer in self._consumers)

    def _wanted(self, *, but_stopped: bool) -> set[Partition]:
        """The partitions that consumers read.  `but_stopped`: those of consumers that have not
        stopped as planned; one that an error ended should have read on."""
        return {
            partition
            for readers in self._readers.values()
            for partition in self._subscribed(
                [one.client for one in readers if not but_stopped or one.is_up or one.client.failed]
            )
        }

    def _could_read(self) -> bool:
        """Whether consumers had the time to read to the end: none is dead for good, or was refused
        by security, and every partition had a consumer to the end."""
        return not self._left_unread and not any(
            process.is_ended or process.client.failed in SECURITY_ERRORS
            for process in self._consumers
        )

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
            drained=is_quiet and self._could_read(),
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
