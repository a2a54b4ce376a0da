"""The clients of a run's workload, and what is still to happen before the run is at rest.

Owns: the clients' processes; the questions whether they have sent, read and shared everything.
Never: advances time, ends a run (phases.py does), says the facts in words (unfinished.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.refusals import SECURITY_ERRORS
from kcluster.clients.consumer.settings import READ_COMMITTED
from kcluster.clients.ledger import Partition, Unowned
from kcluster.clients.processor import Processor
from kcluster.clients.producer.producer import Producer
from kcluster.clients.share_consumer import ShareConsumer
from kcluster.operations.unrest import Unrest
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play import unfinished as facts
from kcluster.scenario.play.client_process import ClientProcess
from kcluster.scenario.play.stage import ScenarioStage
from kcluster.scenario.play.workload import WorkloadConsumer, client_accesses, make_clients

ARRIVAL_MS: Final = 1_000
"""The time after which records sent with acks=0 have arrived; no answer shows when."""
_REFUSALS: Final = (*SECURITY_ERRORS, ErrorCode.GROUP_MAX_SIZE_REACHED.name)
SHARE_CALM_MS: Final = 1_000
"""The time without a delivery or a load after which a share group counts as at rest, once
everything else is at rest.  In virtual time the duration of a lock is added, if records are in
flight."""


class RunClients:
    """The clients of one run on a stage.  The caller calls `start`, later `end_producers`, waits
    until `unfinished` yields nothing, and calls `stop_consumers`."""

    def __init__(self, scenario: Scenario, stage: ScenarioStage) -> None:
        self._scenario = scenario
        self._heals = scenario.heal
        self._stage = stage
        self._producers: list[ClientProcess[Producer]] = []
        self._consumers: list[ClientProcess[WorkloadConsumer]] = []
        self._readers: dict[str, list[ClientProcess[WorkloadConsumer]]] = {}
        """The consumers by group; a consumer without a group by its own name."""
        self._sharing: list[ClientProcess[WorkloadConsumer]] = []
        self._arrived_ms: int | None = None
        self._left_unread = False
        """Whether all consumers of a partition had stopped before the end, or its consumer ignored
        its leader."""
        self._shared_ms: int | None = None
        """The time since which only share groups may have work left."""

    # ------------------------------------------------------------------------ starting, stopping

    def start(self) -> None:
        """Start the clients of the workload."""
        workload, stage = self._scenario.workload, self._stage
        now_ms = stage.dispatcher.now_ms
        producers, consumers = make_clients(workload, stage.client_profile, stage.ledger)
        self._producers = [ClientProcess(client, now_ms) for client in producers]
        self._consumers = [ClientProcess(client, now_ms) for client in consumers]
        for process in self._consumers:
            consumer = process.client
            if isinstance(consumer, ShareConsumer):
                self._sharing.append(process)
                continue
            # Only who subscribes is a member; another consumer may commit for the group.
            group_id = consumer.settings.group_id if consumer.plan.topics else ""
            key = group_id or f"consumer {consumer.name}"
            self._readers.setdefault(key, []).append(process)
        stage.ledger.lock_duration_ms = stage.lock_duration_ms()
        accesses = client_accesses(workload, self._scenario.topology)
        for producer in self._producers:
            stage.add_process(producer, accesses[producer.name])
        for reader in self._consumers:
            stage.add_process(reader, accesses[reader.name])

    def end_producers(self) -> None:
        """Let the producers send no more; what they have begun is completed."""
        now_ms = self._stage.dispatcher.now_ms
        for producer in self._producers:
            producer.end(now_ms)

    def stop_consumers(self) -> None:
        """Stop the consumers: they commit and leave their groups."""
        is_left = self._wanted(but_stopped=False) != self._wanted(but_stopped=True)
        self._left_unread = is_left or any(
            self._ignores_leader(process.client, partition)
            for process in self._consumers
            for partition in process.client.assignment
        )
        if self._heals:
            ledger = self._stage.ledger
            ledger.unowned = list(self._unowned())
            present = [one.settings.group_id for one in self._present_sharing()]
            ledger.present_share_groups = dict.fromkeys(present)
        for consumer in self._consumers:
            consumer.end(self._stage.dispatcher.now_ms)

    def are_consumers_gone(self) -> bool:
        """Whether all consumers have left."""
        return all(consumer.client.is_done for consumer in self._consumers)

    def could_read(self) -> bool:
        """Whether consumers had the time to read to the end: none is dead for good, or was refused
        by security or by group.max.size, and every partition had a consumer to the end."""
        return not self._left_unread and not any(
            process.is_ended or process.client.failed in _REFUSALS for process in self._consumers
        )

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

    # ---------------------------------------------------------------------------------- at rest

    def unfinished(self) -> Iterator[Unrest]:
        """What the run still waits for, the cluster included."""
        for producer in self._producers:
            if not producer.client.is_done:
                yield facts.SendsOpen(producer=producer.name)
        if not self._have_sends_arrived():
            yield facts.SendsUnderWay(limit_ms=ARRIVAL_MS)
        if self._heals:
            yield from self._stage.unsettled()
            yield from self._undecided()
        yield from self._unread()
        yield from self._unshared()

    def _have_sends_arrived(self) -> bool:
        if not all(producer.client.is_done for producer in self._producers):
            return True
        if self._arrived_ms is None:
            sends = self._stage.ledger.sends
            last_ms = max((send.ended_ms for send in sends if send.acks == 0), default=None)
            self._arrived_ms = 0 if last_ms is None else last_ms + ARRIVAL_MS
        return self._stage.dispatcher.now_ms >= self._arrived_ms

    def _undecided(self) -> Iterator[Unrest]:
        """Each transaction in a partition that has no marker, though its coordinator must send the
        marker."""
        if not self._stage.ledger.transactions:
            return
        opened = self._stage.open_transactions(self._stage.topic_partitions())
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
            for partition, ends in self._ends_of(present):
                owners = [reader for reader in present if partition in reader.assignment]
                if any(owner.position(*partition) in ends for owner in owners):
                    continue
                if any(self._ignores_leader(owner, partition) for owner in owners):
                    continue
                if not owners:
                    names = ", ".join(reader.name for reader in present)
                    yield facts.Unassigned(partition=partition, readers=names)
                for owner in owners:
                    yield facts.Unread(
                        partition=partition,
                        reader=owner.name,
                        position=owner.position(*partition),
                        end_offset=ends.start,
                    )

    def _ignores_leader(self, reader: WorkloadConsumer, partition: Partition) -> bool:
        """Whether a reader ignores the leader of a partition, as Kafka's clients do if they know a
        later leader epoch.  They may have it from a deleted topic of the same name: they keep it
        for a partition that the present topic got later."""
        return 0 <= self._stage.leader_epoch(*partition) < reader.leader_epoch(*partition)

    def _unshared(self) -> Iterator[Unrest]:
        """The share groups and share partitions that may still be working: no answer shows that all
        records were delivered."""
        present = self._present_sharing()
        if not present:
            return
        now_ms = self._stage.dispatcher.now_ms
        if self._shared_ms is None:
            self._shared_ms = now_ms
        for unassigned in self._unassigned(present):
            self._shared_ms = now_ms
            yield unassigned
        if now_ms - self._shared_ms < SHARE_CALM_MS:
            yield facts.SharersHadNoTime(calm_ms=SHARE_CALM_MS)
            return
        for consumer in present:
            if now_ms - consumer.active_ms < SHARE_CALM_MS:
                yield facts.SharerIsBusy(reader=consumer.name, calm_ms=SHARE_CALM_MS)
            elif self._heals and not consumer.has_asked_since(self._shared_ms):
                yield facts.SharerWaits(reader=consumer.name)
        last_ms = max(self._shared_ms, *(consumer.active_ms for consumer in present))
        lock_ms = self._longest_lock_ms() if self._stage.may_await_locks else 0
        is_over = now_ms - last_ms >= SHARE_CALM_MS + lock_ms
        for key, is_loading in self._stage.shared_in_motion():
            if is_loading:
                self._shared_ms = now_ms
                yield facts.ShareLoads(group=key.group_id, number=key.partition)
            elif not is_over:
                yield facts.ShareInFlight(group=key.group_id, number=key.partition)

    def _longest_lock_ms(self) -> int:
        """The longest lock by the configs of brokers, and by those of the groups, as members were
        told of them."""
        ledger = self._stage.ledger
        return max([ledger.lock_duration_ms, *(one.lock_ms for one in ledger.deliveries)])

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
                for partition in self._stage.partitions(topic) if self._heals else ():
                    if partition not in assigned:
                        yield facts.ShareUnassigned(partition=partition, group=group)
                    elif not self._stage.is_shared(group, partition):
                        yield facts.ShareNotLoaded(partition=partition, group=group)

    def _unowned(self) -> Iterator[Unowned]:
        """The partitions that groups with members read and that no member owns."""
        for group, readers in self._readers.items():
            running = [process.client for process in readers if process.is_up]
            present = [reader for reader in running if reader.plan.topics]
            for partition in self._subscribed(present):
                if not any(partition in reader.assignment for reader in present):
                    now_ms = self._stage.dispatcher.now_ms
                    yield Unowned(group, partition, now_ms, _needs(present))
        for unassigned in self._unassigned(self._present_sharing()):
            if isinstance(unassigned, facts.ShareUnassigned) and unassigned.partition:
                now_ms = self._stage.dispatcher.now_ms
                needs = (GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC)
                yield Unowned(unassigned.group, unassigned.partition, now_ms, needs)

    def _subscribed(self, readers: list[WorkloadConsumer]) -> list[Partition]:
        wanted: dict[Partition, None] = {}
        for reader in readers:
            wanted.update(dict.fromkeys(reader.plan.partitions))
            for topic in reader.plan.topics:
                wanted.update(dict.fromkeys(self._stage.partitions(topic)))
        return list(wanted)

    def _ends_of(self, readers: list[WorkloadConsumer]) -> Iterator[tuple[Partition, range]]:
        """The positions at which each partition that readers subscribe to is read to its end.

        They begin at the log end, because the high watermark lags after an election; but at the
        high watermark if faults remain, because the records above it may never be committed.  A
        position beyond the log end is of a log that was truncated, or of a deleted topic: the
        reader will take another one.
        """
        stage, partitions = self._stage, self._subscribed(readers)
        is_committed = any(one.settings.isolation_level == READ_COMMITTED for one in readers)
        opened = stage.open_transactions(partitions) if is_committed and self._heals else {}
        for partition in partitions:
            log_end = stage.log_end(*partition)
            first = log_end if self._heals else stage.high_watermark(*partition)
            # Read_committed readers get no record after the start of a transaction that hangs.
            found = opened.get(partition, ())
            hanging = [each.first_offset for each in found if not each.is_owned]
            yield partition, range(min([first, *hanging]), log_end + 1)


def _needs(readers: list[WorkloadConsumer]) -> tuple[str, ...]:
    """The internal topics of a group: processors begin a transaction before they join."""
    if any(isinstance(reader, Processor) for reader in readers):
        return GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
    return (GROUP_METADATA_TOPIC,)
