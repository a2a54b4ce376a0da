"""What coordinators hold and confirm, compared with what their logs say.

Owns: the rules for a coordinator's memory, for an offset that an open transaction may change, and
for answers to producers.  Never: replays a log (replayed.py does), reports anything.
Kafka: no counterpart; a coordinator's memory is its log, replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.coordinator.share_state.share_state_shard import ShareStateShard
from kcluster.broker.coordinator.share_state.share_states import FIRST_WITHOUT_MISSING_EPOCHS
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.coordinator.transactions.transaction import COMPLETE_ABORT, COMPLETE_COMMIT
from kcluster.broker.coordinator.transactions.transaction_shard import TransactionShard
from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import Reply
from kcluster.invariants.facts import Observed
from kcluster.invariants.group_facts import PassedUnsettled, UnstableRead
from kcluster.invariants.left_offsets import LeftOffsets
from kcluster.invariants.observed import ObservedPartition, PartitionKey
from kcluster.invariants.producer_facts import OtherwiseEnded, RefusedProducer, TimeoutOutdated
from kcluster.invariants.promises import BrokenPromise
from kcluster.invariants.refused import error_in, refused_for_nothing, transactional_id_of
from kcluster.invariants.replayed import Decisions, ReplayedOffsets, ReplayedTransactions
from kcluster.invariants.replayed_shares import ReplayedShares
from kcluster.invariants.rules import Problem, is_behind_unclean
from kcluster.invariants.told import told_too_early
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kcluster.protocol.records.batches import InvalidRecords
from kcluster.protocol.records.records import read_records

_COMPLETE: Final = (COMPLETE_COMMIT, COMPLETE_ABORT)
Shard = TransactionShard | GroupShard | ShareStateShard


class Coordinators:
    """The coordinators of one cluster.  `decisions`: the transactions by the committed records of
    them all; `partitions`: the observed partitions; `deleted_groups`: the groups of which a request
    has asked to delete offsets; both are live values."""

    def __init__(
        self,
        partitions: Mapping[PartitionKey, ObservedPartition],
        deleted_groups: Mapping[str, None],
    ) -> None:
        self.decisions = Decisions()
        self._partitions = partitions
        self._deleted_groups = deleted_groups
        self.archived: dict[tuple[str, str, int], None] = {}
        """The share partitions, as (group, topic, partition), in which locks that ended have
        archived records: that takes effect even if it cannot be stored."""
        self.left_offsets = LeftOffsets()
        self._differing: dict[Observed, None] = {}
        """What was found already."""

    def has_news(self, observed: ObservedPartition, held: Shard, is_asked: bool) -> bool:
        """Whether there may be something to compare: most steps change none of a broker's many
        coordinators."""
        replayed = observed.replayed
        if replayed is not None and (is_asked or replayed.compared_end != replayed.end):
            return True
        return isinstance(held, GroupShard) and self.left_offsets.has_news(observed.key, held)

    def differing(
        self, observed: ObservedPartition, replica: Replica, held: Shard, is_asked: bool
    ) -> Iterator[Problem]:
        """The differences between what a coordinator holds and its log, each once, if it knows and
        has applied everything that is committed.  `is_asked`: see Invariants.check_coordinator."""
        if isinstance(held, GroupShard):
            yield from self.left_offsets.look(observed, replica, held)
        replayed = observed.replayed
        if replayed is None or (replayed.compared_end == replayed.end and not is_asked):
            return
        if not knows_all(observed, replica) or not held.has_applied_all:
            return
        if isinstance(held, ShareStateShard) and replica.log.log_end_offset > replayed.end:
            return  # its records take effect before they are committed
        replayed.compared_end = replayed.end
        found: Iterator[Observed] = iter(())
        if isinstance(replayed, ReplayedTransactions) and isinstance(held, TransactionShard):
            yield from (("transaction-forgotten", one) for one in replayed.forgotten())
            found = replayed.differing(held.transactions)
        elif isinstance(replayed, ReplayedOffsets) and isinstance(held, GroupShard):
            yield from self._expired(replayed)
            found = replayed.differing(held.offsets)
            if replica.log.log_end_offset == replayed.end:  # groups change before the commit
                found = chain(found, replayed.groups.differing(held, held.groups))
        elif isinstance(replayed, ReplayedShares) and isinstance(held, ShareStateShard):
            went_back = replayed.start_offsets_back()
            if held.broker.release.number >= FIRST_WITHOUT_MISSING_EPOCHS:
                yield from (("share-state-back", one) for one in went_back)
            yield from (("share-state-back", one) for one in replayed.progress_taken_back())
            for of, offsets in replayed.passed_over():
                yield from self._passed_over(of, offsets)
            for pruned in replayed.pruned(replica.log.log_start_offset):
                if pruned not in self._differing:
                    self._differing[pruned] = None
                    yield "share-state-pruned", pruned
            found = replayed.differing(held.states.state)
        for differs in found:
            if differs not in self._differing:
                self._differing[differs] = None
                yield "coordinator-differs", differs

    def _expired(self, replayed: ReplayedOffsets) -> Iterator[Problem]:
        """The offsets that were deleted while an open transaction was about to replace them,
        without a request, and not because of a deleted topic."""
        for expired in replayed.expired_pending():
            has_gone = any(
                observed.topic == expired.topic and observed.deleted_ms >= 0
                for observed in self._partitions.values()
            )
            if not has_gone and expired.group not in self._deleted_groups:
                yield "pending-expired", expired

    def _passed_over(self, of: SharePartition, offsets: list[int]) -> Iterator[Problem]:
        """The first of these offsets at which every log has a record.  Records of transactions may
        be aborted, and what a log has lost, or compaction has removed, need not be settled."""
        observed = self._partitions.get((of.topic_id, of.partition))
        if observed is None or observed.unclean_epoch >= 0 or observed.lost:
            return
        if (of.group_id, observed.topic, of.partition) in self.archived:
            return
        logs = [replica.log for replica in observed.replicas.values()]
        start = max((log.log_start_offset for log in logs), default=0)
        for offset in offsets:
            reaching = [log for log in logs if log.log_end_offset > offset]
            if offset >= start and reaching and all(_has_record(log, offset) for log in reaching):
                yield "share-passed-over", PassedUnsettled(of.group_id, of.partition, offset)
                return

    def _otherwise_ended(self, body: m.EndTxnRequest) -> OtherwiseEnded | None:
        """What is broken if a coordinator confirms an end of a transaction that it has not decided;
        None if it has, or the transaction is not known."""
        known = self.decisions.of_id(body.transactional_id)
        if known is None:
            return None
        is_decided = known.is_prepared or known.state in _COMPLETE
        if is_decided and known.is_commit == body.committed:
            return None
        return OtherwiseEnded(body.committed, body.producer_epoch, known.state.label)

    def _other_timeout(
        self, body: m.InitProducerIdRequest, answer: m.InitProducerIdResponse
    ) -> TimeoutOutdated | None:
        """What is broken if the producer that a coordinator has just initialized has another
        timeout than it asked for; None if it has not, or another one has begun since."""
        known = self.decisions.of_id(body.transactional_id or "")
        producer = (answer.producer_id, answer.producer_epoch)
        if known is None or (known.producer_id, known.producer_epoch) != producer:
            return None
        if known.timeout_ms == body.transaction_timeout_ms:
            return None
        return TimeoutOutdated(*producer, body.transaction_timeout_ms, known.timeout_ms)

    def broken_by(
        self, reply: Reply, observed: ObservedPartition, replica: Replica
    ) -> BrokenPromise | None:
        """What a coordinator's answer breaks; None: nothing, or it is not known.  `observed`,
        `replica`: the coordinator's log."""
        request, answer = reply.request, reply.body
        if isinstance(observed.replayed, ReplayedOffsets):
            uncommitted = next(iter(replica.log.batches_from(replica.high_watermark)), None)
            has_loaded_it = (
                uncommitted is not None and uncommitted.leader_epoch < replica.leader_epoch
            )
            return told_too_early(reply, observed.replayed.groups, has_loaded_it)
        transactional_id = transactional_id_of(request)
        if transactional_id is None or not self.decisions.is_whole:
            return None
        error = error_in(request, answer)
        name = "producer-refused"
        fact: RefusedProducer | OtherwiseEnded | TimeoutOutdated | None = None
        if error is not ErrorCode.NONE:
            fact = refused_for_nothing(request, error, self.decisions.of_id(transactional_id))
        elif isinstance(request.body, m.EndTxnRequest):
            name, fact = "ended-otherwise", self._otherwise_ended(request.body)
        elif isinstance(request.body, m.InitProducerIdRequest):
            name, fact = "timeout-outdated", self._other_timeout(request.body, answer)
        return None if fact is None else (name, f"transaction {transactional_id}", fact)


def shard_of(node: BrokerNodeView, replica: Replica) -> Shard | None:
    """The coordinator whose log a replica is; None if it has not loaded the log."""
    if replica.topic == TRANSACTION_STATE_TOPIC:
        return node.transactions.shards.get(replica.partition)
    if replica.topic == GROUP_METADATA_TOPIC:
        return node.coordinator.shards.get(replica.partition)
    return node.share_state.shards.get(replica.partition)


def knows_all(observed: ObservedPartition, replica: Replica) -> bool:
    """Whether a coordinator's replica leads, and knows all that is committed."""
    watermark, replayed = replica.high_watermark, observed.replayed
    return (
        replayed is not None
        and replica.is_leader
        and replica.leader_epoch == observed.newest_epoch
        and watermark == observed.committed.end == replayed.end
        and not is_behind_unclean(observed, replica)
    )


def unstable_offsets(
    observed: ObservedPartition, body: m.OffsetFetchResponse
) -> Iterator[UnstableRead]:
    """The offsets in an answer that an open transaction may change, by what is committed now."""
    replayed = observed.replayed
    if not isinstance(replayed, ReplayedOffsets) or not replayed.pending:
        return
    for group in body.groups:
        for topic in group.topics:
            for one in topic.partitions:
                key = (group.group_id, topic.name, one.partition_index)
                if not one.error_code and replayed.is_unstable(key):
                    yield UnstableRead(*key, one.committed_offset)


def _has_record(log: Log, offset: int) -> bool:
    """Whether a log has a record at an offset, outside of any transaction."""
    batch = next(iter(log.batches_from(offset)), None)
    if batch is None or batch.base_offset > offset or batch.is_control or batch.is_transactional:
        return False
    if log.first_dirty_offset <= offset:
        return True  # a batch that was not cleaned has all its records
    try:
        return any(record.offset == offset for record in read_records(batch))
    except InvalidRecords:
        return False
