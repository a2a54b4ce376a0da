"""The stage of a scenario: a stage with conditions, notes, and the clients of a workload.

Owns: the common part of the stages of both clocks: conditions, notes, clients.  Never: has a clock
(virtual.py, live.py do).  Kafka: no counterpart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import partial
from typing import final

from kcluster.actions.stage import Stage, StageClock
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.clients.ledger import Ledger, Outcome, Partition
from kcluster.clients.logins import put_in
from kcluster.clients.metadata import NO_EPOCH
from kcluster.clients.wire import ClientStateMachine, Wire
from kcluster.contract import Event, Note
from kcluster.evidence.history import OpenTransaction
from kcluster.evidence.transactions import open_in
from kcluster.operations.conditions import SETTLED, Condition, ConditionFacts
from kcluster.operations.unrest import Unrest
from kcluster.operations.verbs import Verbs
from kcluster.protocol.names import has_internal_prefix
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.scenario.language.model import Checks
from kcluster.scenario.play.client_process import Client, ClientProcess
from kcluster.security.client_access import ClientAccess


class ScenarioStage(ABC, Stage):
    """One cluster, as a scenario's steps see it.  All of it is called in the driver's thread.

    `may_await_locks`: whether waiting costs nothing, so that a run may wait 30 s for the end of a
    lock.
    """

    may_await_locks = False
    patience_ms: int | None = None
    """The time after which an unanswered attempt counts as failed; None: the profile's."""

    def __init__(
        self,
        plan: Plan,
        dispatcher: Dispatcher,
        verbs: Verbs,
        clock: StageClock,
        ledger: Ledger,
        seed: int,
    ) -> None:
        super().__init__(plan, dispatcher, verbs, clock, seed)
        self.ledger = ledger
        self.client_profile = plan.topology.profile
        """The profile that scales the times of the workload's clients."""
        self._notes: list[Note] = []
        self._facts = ConditionFacts(dispatcher, verbs, self._notes, partial(counted, ledger))
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._notes.append)

    def judged(self, checks: Checks) -> tuple[Checks, tuple[str, ...]]:
        """The checks that this stage can judge, and the others, by their names in the file."""
        return checks, ()

    @abstractmethod
    def _add(self, client: ClientStateMachine, access: ClientAccess | None) -> Wire:
        """Start a client."""

    @abstractmethod
    def _at_driver(self) -> dict[int, ClientStateMachine]:
        """The driver's clients, by their ids in the fabric."""

    @abstractmethod
    def _called(self) -> None:
        """Do the work that is due after a call of a client."""

    def hand_over(self, client: ClientStateMachine, wire: Wire) -> Wire:
        """Let another state machine have the callbacks of the client with this wire of the driver;
        returns the wire that the client uses."""
        return put_in(self._at_driver(), wire.client_id, client, wire)

    def client_called(self, event: Event) -> None:
        """Do the work that is due after a call of a client, and note the event."""
        self.dispatcher.note(event)
        self._called()

    # ----------------------------------------------------------------- clients and conditions

    def add_client(
        self, name: str, client: ClientStateMachine, access: ClientAccess | None = None
    ) -> Wire:
        """Start a client of the workload, which targets may name.  `access`: how it comes in; None:
        as a client that names neither a user nor a listener."""
        wire = self._add(client, access)
        if access is not None and access.user is not None:
            self.ledger.principals[name] = str(access.principal)
        self.clients[name] = wire.client_id
        return wire

    def add_process(self, process: ClientProcess[Client], access: ClientAccess) -> None:
        """Start a client of the workload whose process steps may act on."""
        wire = self.add_client(process.name, process.client, access)
        process.seat = _Seat(self, wire)
        self.verbs.clients[wire.client_id] = process

    def holds(self, condition: Condition, since: int = 0) -> bool:
        """Whether a condition holds; events count from the note with index `since` on."""
        return condition.holds(self._facts, since)

    def is_whole(self) -> bool:
        """Whether all brokers serve and every replica is in sync."""
        return SETTLED.holds(self._facts)

    def value_text(self, condition: Condition) -> str:
        """The current number that a condition compares, for messages: ` (it is 2)`; "" if it
        compares none."""
        value = condition.value(self._facts)
        return "" if value is None else f" (it is {value})"

    def unsettled(self) -> Iterator[Unrest]:
        """The reasons why not all brokers serve or not every replica is in sync."""
        return self.verbs.settled.unsettled()

    def partitions(self, topic: str) -> list[Partition]:
        """The partitions that a topic has now."""
        found = self.verbs.settled.image.topics.get(topic)
        return [] if found is None else [(topic, each.partition) for each in found.partitions]

    def topic_partitions(self) -> list[Partition]:
        """All partitions of topics that are not internal."""
        topics = self.verbs.settled.image.topics
        names = [name for name in topics if not has_internal_prefix(name)]
        return [partition for name in names for partition in self.partitions(name)]

    def high_watermark(self, topic: str, partition: int) -> int:
        """The high watermark at a partition's leader; 0 without a leader."""
        return self._facts.high_watermark(topic, partition)

    def log_end(self, topic: str, partition: int) -> int:
        """The log end offset of a partition's leader; 0 without a leader."""
        return self._facts.log_end(topic, partition)

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The leader epoch of a partition; NO_EPOCH for a partition that does not exist."""
        found = self.verbs.settled.image.partition(topic, partition)
        return NO_EPOCH if found is None else found.leader_epoch

    def open_transactions(
        self, partitions: Iterable[Partition]
    ) -> dict[Partition, list[OpenTransaction]]:
        """The transactions that are open at the leaders of these partitions."""
        leaders = {
            partition: replica
            for partition in partitions
            if (replica := self._facts.leader_replica(*partition)) is not None
        }
        return open_in(self.dispatcher, leaders)

    def shared_in_motion(self) -> Iterator[tuple[SharePartition, bool]]:
        """The share partitions whose leader may deliver records later without a further event:
        (key, whether the leader is still loading).  A leader that has loaded is listed if records
        are in flight."""
        for node in self.dispatcher.brokers():
            yield from node.share_partitions.in_motion()

    def is_shared(self, group: str, partition: Partition) -> bool:
        """Whether the leader of a partition has loaded the state of a share group; True also for a
        leader that is down, or on another ground."""
        (topic, number), image = partition, self.verbs.settled.image
        found = image.partition(topic, number)
        node = None if found is None else self.dispatcher.broker(found.leader)
        if node is None:
            return True
        key = SharePartition(group, image.topics[topic].topic_id, number)
        leader = node.share_partitions.get(key)
        return leader is not None and leader.is_active

    def lock_duration_ms(self) -> int:
        """The longest time for which a member of a share group may keep a record."""
        locks = [
            node.config.group_share_record_lock_duration_ms for node in self.dispatcher.brokers()
        ]
        return max(locks, default=0)

    def notes(self) -> list[Note]:
        """All notes so far, oldest first."""
        return self._notes


@final
class _Seat:
    """A client's place at the driver of a stage."""

    def __init__(self, stage: ScenarioStage, wire: Wire) -> None:
        self._stage = stage
        self._wire = wire

    @property
    def now_ms(self) -> int:
        return self._stage.dispatcher.now_ms

    def hand_over(self, client: ClientStateMachine) -> Wire:
        return self._stage.hand_over(client, self._wire)

    def called(self, event: Event) -> None:
        self._stage.client_called(event)


def counted(ledger: Ledger, word: str, client: str) -> int:
    """The number of records that were sent or read with this outcome, by one client or, for "", by
    all."""
    if word == "read":
        return sum(not client or read.consumer == client for read in ledger.reads)
    sends = ledger.sends
    if not client and word == "sent":
        return len(sends)
    outcome = Outcome(word) if word != "sent" else None
    return sum(
        (outcome is None or send.outcome is outcome)
        and (not client or send.producer == client)
        and (outcome is not Outcome.UNKNOWN or send.ended_ms >= 0)
        for send in sends
    )
