"""Transactions that their coordinators do not end in time, although nothing prevents it.

Owns: the definition of an overdue transaction, and the duration of each.  Never: sets the limit
(checks/ does), changes anything.  Kafka: TransactionCoordinator.abortTimedOutTransactions,
TransactionMarkerChannelManager; KAFKA-16352 and KAFKA-19999 report such transactions.

An open transaction is aborted by the first scan of its coordinator after its timeout.  A decided
transaction gets its markers at once.  Both hold while every broker is registered and runs, no link
between processes is cut or shaped, and the transaction's partitions have leaders and enough
replicas in sync.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.broker.coordinator.transactions.transaction import ONGOING, Transaction
from kcluster.broker.coordinator.transactions.transaction_shard import TransactionShard
from kcluster.broker.lifecycle import LifecycleState
from kcluster.broker.node_view import BrokerNodeView
from kcluster.deaths import ProcessState
from kcluster.invariants.observed import PartitionKey
from kcluster.invariants.producer_facts import OverdueTransaction
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC
from kcluster.runtime.dispatch import Dispatcher

OVERDUE_EVERY_MS: Final = 500
"""The time between two looks at transactions."""

_Key = tuple[str, int, int]
"""(transactional id, producer id, producer epoch)."""


class OverdueTransactions:
    """The overdue transactions of one run.  `look` is called about every OVERDUE_EVERY_MS."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._processes = dispatcher.processes
        self._fabric = dispatcher.fabric
        self._conditions: tuple[object, ...] = ()
        """The conditions that may prevent an end, as of the last look."""
        self._calm = False
        self._calm_since_ms = -1
        self._acts = 0
        self._acted_ms = -1
        """The last look at which rules between nodes had delayed or dropped something."""
        self._elected: dict[int, tuple[int, int, int]] = {}
        """(coordinator, its epoch, the latest time of its election), by partition."""
        self._short_ms: dict[int | _Key, int] = {}
        """The last look at which a partition of __transaction_state, or one that a decided
        transaction must mark, had too few replicas in sync or no leader; by partition, or
        transaction."""
        self._longest: dict[_Key, tuple[PartitionKey, OverdueTransaction]] = {}

    def look(self, now_ms: int, image: MetadataImage) -> None:
        """Look at every transaction of every coordinator."""
        topic = image.topics.get(TRANSACTION_STATE_TOPIC)
        if topic is None or not self._is_calm(now_ms):
            return
        for registration in topic.partitions:
            node = self._dispatcher.broker(registration.leader)
            if node is None or not _can_append(node, registration):
                self._short_ms[registration.partition] = now_ms
            else:
                shard = node.transactions.shards.get(registration.partition)
                if shard is not None and shard.check_loaded() is ErrorCode.NONE:
                    self._look_at(node, shard, registration, image, now_ms)

    def longer_than(self, limit_ms: int) -> Iterator[tuple[PartitionKey, OverdueTransaction]]:
        """The transactions that were overdue for longer, each with its partition of
        __transaction_state; each is returned once."""
        for key, (home, found) in tuple(self._longest.items()):
            if found.duration_ms > limit_ms:
                del self._longest[key]
                yield home, found

    def _is_calm(self, now_ms: int) -> bool:
        brokers = self._dispatcher.brokers()
        lives = [(each.state, each.life) for each in self._processes.values()]
        # A broker that was killed is not replaced in ISRs by its next life, and may not register,
        # before its session has ended: until then nothing is committed.
        registered = [broker.state is LifecycleState.RUNNING for broker in brokers]
        gate = self._dispatcher.node_gate
        is_delaying = gate is not None and gate.is_delaying
        acts = self._dispatcher.past_node_acts + (0 if gate is None else gate.acts)
        if acts != self._acts:
            self._acts, self._acted_ms = acts, now_ms
        conditions = (self._fabric.changes, lives, registered, is_delaying, acts)
        if conditions != self._conditions:
            self._conditions, self._calm_since_ms = conditions, now_ms
            are_up = all(state is ProcessState.UP for state, _ in lives) and all(registered)
            self._calm = are_up and not is_delaying and self._are_linked()
        return self._calm

    def _are_linked(self) -> bool:
        """Whether the links between brokers and controller are unimpaired."""
        fabric = self._fabric
        return fabric.is_unimpaired or not any(
            fabric.is_cut(source, destination) or fabric.shapes_of(source, destination)
            for source in self._processes
            for destination in self._processes
            if source != destination
        )

    def _look_at(
        self,
        node: BrokerNodeView,
        shard: TransactionShard,
        registration: PartitionRegistration,
        image: MetadataImage,
        now_ms: int,
    ) -> None:
        epoch = shard.coordinator_epoch
        elected = self._elected.get(shard.partition)
        if elected is None or elected[:2] != (node.node_id, epoch):
            elected = self._elected[shard.partition] = (node.node_id, epoch, now_ms)
        config = node.config
        # A request that was lost earlier is repeated after its timeout.
        short_ms = self._short_ms.get(shard.partition, -1)
        began_ms = max(elected[2], self._calm_since_ms, short_ms) + config.request_timeout_ms
        if self._acted_ms >= 0:
            # A follower whose fetch got no answer fetches nothing, until it is out of sync.
            began_ms = max(began_ms, self._acted_ms + config.replica_lag_time_max_ms * 3 // 2)
        scan_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        for transaction in shard.transactions.values():
            if transaction.state is ONGOING:
                due_ms = max(transaction.start_ms + transaction.timeout_ms, began_ms) + scan_ms
            elif not transaction.is_prepared:
                continue
            elif not self._can_be_marked(transaction, image):
                self._short_ms[_key(transaction)] = now_ms
                continue
            else:
                short_ms = self._short_ms.get(_key(transaction), -1) + config.request_timeout_ms
                due_ms = max(transaction.last_update_ms, began_ms, short_ms)
            if due_ms < now_ms:
                self._note(transaction, registration, due_ms, now_ms)

    def _note(
        self, found: Transaction, home: PartitionRegistration, due_ms: int, now_ms: int
    ) -> None:
        key = _key(found)
        longest = self._longest.get(key)
        if longest is None or longest[1].duration_ms < now_ms - due_ms:
            overdue = OverdueTransaction(*key, home.leader, found.is_prepared, due_ms, now_ms)
            self._longest[key] = ((home.topic_id, home.partition), overdue)

    def _can_be_marked(self, transaction: Transaction, image: MetadataImage) -> bool:
        """Whether each partition that still exists can take its marker."""
        for partition in transaction.in_order:
            registration = image.partition(*partition)
            if registration is not None:
                node = self._dispatcher.broker(registration.leader)
                if node is None or not _can_append(node, registration):
                    return False
        return True


def _key(transaction: Transaction) -> _Key:
    return transaction.transactional_id, transaction.producer_id, transaction.producer_epoch


def _can_append(node: BrokerNodeView, registration: PartitionRegistration) -> bool:
    """Whether a broker leads a partition, and enough replicas are in sync."""
    replica = node.replicas.get(registration.topic_id, registration.partition)
    return (
        replica is not None
        and replica.is_leader
        and replica.leader_epoch == registration.leader_epoch
        and len(replica.isr) >= replica.min_isr
    )
