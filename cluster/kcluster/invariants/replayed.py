"""The logs of coordinators, replayed independently of them: transactions, and offsets of groups.

Owns: what the committed records of __transaction_state and __consumer_offsets say, and where a
coordinator's memory says something else.  Never: uses the state of a coordinator to build its own,
judges a batch of another log (producers.py).  Kafka: TransactionLog, OffsetMetadataManager.replay.

A coordinator that has applied all that is committed holds what its log says, field for field:
whatever differs would change with the next failover.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kcluster.broker.coordinator.group_log import CommittedOffset, OffsetRecord
from kcluster.broker.coordinator.group_records import decode_batch
from kcluster.broker.coordinator.offsets import OffsetKey, OffsetStore
from kcluster.broker.coordinator.transactions.transaction import (
    ONGOING,
    TopicPartition,
    Transaction,
)
from kcluster.broker.coordinator.transactions.transaction_log import (
    TransactionRecord,
    decode_transactions,
)
from kcluster.invariants.facts import HeldDiffers
from kcluster.invariants.group_facts import PendingExpired
from kcluster.invariants.producer_facts import ForgottenTransaction
from kcluster.invariants.replayed_groups import ReplayedGroups
from kcluster.partition.log.log import Log
from kcluster.protocol.records.batches import Batch
from kcluster.protocol.records.markers import Marker, read_marker
from kcluster.structs import Frozen

_NOT_IN_LOG: Final = ("last_producer_epoch",)
_SINCE_VERSION_1: Final = ("client_version", "next_producer_id", "previous_producer_id")
"""The tagged fields, which records of version 0 lack."""
_FIELDS: Final = tuple(one for one in Transaction.__struct_fields__ if one not in _NOT_IN_LOG)


MAX_COMPARED: Final = 100
"""The number of entries up to which all are compared each time.  Of more, only entries with new
records are compared: a live cluster may have many thousands, and a client asks at any time."""


MAX_DECISIONS: Final = 10_000
"""The number of decided transactions that are remembered."""


class ReplayedLog(ABC):
    """The committed part of one coordinator's log.  `end`: the committed end up to which it was
    replayed."""

    def __init__(self) -> None:
        self.end = 0
        self.compared_end = 0
        """The end at which a coordinator was compared last."""
        self._next_offset = 0

    def follow(self, log: Log, end: int) -> None:
        """Replay what a leader's log has committed since the last call; `end`: its end."""
        if end <= self.end:
            return
        self.end = end
        for batch in log.batches_from(self._next_offset):
            if batch.last_offset >= end:
                break
            # An end may lie within a batch, because a high watermark may.
            if batch.base_offset >= self._next_offset:
                self._next_offset = batch.last_offset + 1
                self._replay(batch)

    def lose(self) -> None:
        """Begin anew, because committed records were lost."""
        self.end = self.compared_end = self._next_offset = 0
        self._forget()

    @abstractmethod
    def _replay(self, batch: Batch) -> None: ...

    @abstractmethod
    def _forget(self) -> None: ...


# --------------------------------------------------------------------------------- transactions


class LoggedDecision(Frozen, frozen=True):
    """A committed PrepareCommit or PrepareAbort.  `number`: counts the decisions of the cluster;
    `leader_epoch`: of the coordinator that decided."""

    number: int
    leader_epoch: int
    transaction: Transaction


class Decisions:
    """The transactions of a cluster, by the committed records of all its coordinators.  `is_whole`:
    whether these records are all there; `has_forgotten`: whether there were too many decisions to
    remember them all."""

    def __init__(self) -> None:
        self.has_forgotten = False
        self._order: deque[int] = deque()
        """The producer of each remembered decision, the oldest first."""
        self.count = 0
        self.is_whole = True
        self._of_producers: dict[int, list[LoggedDecision]] = {}
        self._newest: dict[int, Transaction] = {}
        """The last committed state of the transactional id that had this producer id last."""
        self._holders: dict[str, int] = {}
        self._by_id: dict[str, Transaction] = {}

    def put(self, transactional_id: str, new: Transaction | None, leader_epoch: int) -> None:
        """Take note of a committed record; None: a tombstone."""
        holder = self._holders.pop(transactional_id, None)
        if holder is not None:
            self._newest.pop(holder, None)
        if new is None:
            self._by_id.pop(transactional_id, None)
            return
        self._by_id[transactional_id] = self._newest[new.producer_id] = new
        self._holders[transactional_id] = new.producer_id
        if new.is_prepared:
            self.count += 1
            decision = LoggedDecision(self.count, leader_epoch, new)
            self._of_producers.setdefault(new.producer_id, []).append(decision)
            self._order.append(new.producer_id)
            if len(self._order) > MAX_DECISIONS:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Keep a long-lived cluster's memory bounded."""
        self.has_forgotten = True
        producer_id = self._order.popleft()
        decisions = self._of_producers[producer_id]
        del decisions[0]
        if not decisions:
            del self._of_producers[producer_id]

    def of_id(self, transactional_id: str) -> Transaction | None:
        """The last committed state of a transactional id."""
        return self._by_id.get(transactional_id)

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The last committed state of the transactional id whose producer this is."""
        return self._newest.get(producer_id)

    def behind(
        self, batch: Batch, marker: Marker, partition: TopicPartition
    ) -> LoggedDecision | None:
        """The newest decision that a marker can come from, of its coordinator or of one before;
        None if there is none."""
        for decision in reversed(self._of_producers.get(batch.producer_id, ())):
            decided = decision.transaction
            if (
                decided.producer_epoch == batch.producer_epoch
                and decided.is_commit == marker.is_commit
                and partition in decided.partitions
                and decision.leader_epoch <= marker.coordinator_epoch
            ):
                return decision
        return None

    def last_number(self, producer_id: int) -> int:
        """The number of a producer's last decision; 0 without any."""
        decisions = self._of_producers.get(producer_id)
        return decisions[-1].number if decisions else 0


class ReplayedTransactions(ReplayedLog):
    """The log of one transaction coordinator; the decisions of all share `decisions`."""

    def __init__(self, decisions: Decisions) -> None:
        super().__init__()
        self.records: dict[str, TransactionRecord] = {}
        self._decisions = decisions
        self._changed: dict[str, None] = {}
        """The transactional ids with records since the last comparison."""
        self._forgotten: list[ForgottenTransaction] = []
        """The transactional ids that were deleted before their transactions were over."""
        self._equal: dict[str, tuple[Transaction, TransactionRecord]] = {}
        """What was compared last by transactional id, and is equal."""

    def _replay(self, batch: Batch) -> None:
        for record in decode_transactions(batch):
            self._changed[record.transactional_id] = None
            self._decisions.put(record.transactional_id, record.transaction, batch.leader_epoch)
            if record.transaction is None:
                before = self.records.pop(record.transactional_id, None)
                old = None if before is None else before.transaction
                if old is not None and (old.state is ONGOING or old.is_prepared):
                    producer = (old.producer_id, old.producer_epoch)
                    broken = ForgottenTransaction(old.transactional_id, *producer, old.state.label)
                    self._forgotten.append(broken)
            else:
                self.records[record.transactional_id] = record

    def _forget(self) -> None:
        self.records = {}
        self._decisions.is_whole = False

    def forgotten(self) -> list[ForgottenTransaction]:
        """The transactional ids that were deleted before their transactions were over; each is
        returned once."""
        found, self._forgotten = self._forgotten, []
        return found

    def differing(self, held: Mapping[str, Transaction]) -> Iterator[HeldDiffers]:
        """The first field of each transaction that a coordinator holds differently from its log."""
        changed, self._changed = self._changed, {}
        is_small = max(len(held), len(self.records)) <= MAX_COMPARED
        for of in dict.fromkeys((*self.records, *held)) if is_small else changed:
            own, record = held.get(of), self.records.get(of)
            if own is None or record is None:
                has_any = own is not None or record is not None
                if has_any:
                    logged_state = _state(None if record is None else record.transaction)
                    yield HeldDiffers(f"transaction {of}", "", _state(own), logged_state)
                continue
            logged = record.transaction
            assert logged is not None, record
            known = self._equal.get(of)
            if known is not None and known[0] is own and known[1] is record:
                continue
            for name in _FIELDS:
                mine, its = getattr(own, name), getattr(logged, name)
                if mine != its and not (record.version < 1 and name in _SINCE_VERSION_1):
                    yield HeldDiffers(f"transaction {of}", name, _shown(mine), _shown(its))
                    break
            else:
                self._equal[of] = (own, record)


def _state(transaction: Transaction | None) -> str:
    return "" if transaction is None else transaction.state.label


def _shown(value: object) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)


# -------------------------------------------------------------------------------------- offsets


class ReplayedOffsets(ReplayedLog):
    """The offsets in the log of one group coordinator.  `pending`: those of open transactions, by
    producer id; None: a later commit outside of the transaction has replaced the offset."""

    def __init__(self) -> None:
        super().__init__()
        self.committed: dict[OffsetKey, CommittedOffset] = {}
        self._changed: dict[OffsetKey, None] = {}
        """The offsets with records since the last comparison."""
        self.pending: dict[int, dict[OffsetKey, OffsetRecord | None]] = {}
        self.groups = ReplayedGroups()
        self._log_end = 0
        self._pending_from: dict[OffsetKey, int] = {}
        """The end of the leader's log when the newest pending offset was committed."""
        self._expired: list[PendingExpired] = []

    def follow(self, log: Log, end: int) -> None:
        self._log_end = log.log_end_offset
        super().follow(log, end)

    def _replay(self, batch: Batch) -> None:
        if batch.is_control:
            marker = read_marker(batch)
            ended = {} if marker is None else self.pending.pop(batch.producer_id, {})
            self._changed.update(dict.fromkeys(ended))
            for pending in ended.values():
                if pending is not None and marker is not None and marker.is_commit:
                    self._put(pending)
            return
        for record in decode_batch(batch):
            if isinstance(record, OffsetRecord):
                if batch.is_transactional:
                    self.pending.setdefault(batch.producer_id, {})[record.key] = record
                    self._pending_from[record.key] = self._log_end
                else:
                    if record.committed is None:
                        self._note_expired(record.key, batch)
                    self._put(record)
            else:
                self.groups.put(record)

    def _note_expired(self, key: OffsetKey, batch: Batch) -> None:
        """Note that an offset is deleted while an open transaction has another one, which the
        coordinator has known since before it wrote this."""
        for offsets in self.pending.values():
            record = offsets.get(key)
            pending = None if record is None else record.committed
            if pending is not None and batch.base_offset >= self._pending_from[key]:
                self._expired.append(PendingExpired(*key, pending.offset))

    def expired_pending(self) -> list[PendingExpired]:
        """The offsets that were deleted while an open transaction was about to replace them; each
        is returned once."""
        found, self._expired = self._expired, []
        return found

    def _put(self, record: OffsetRecord) -> None:
        self._changed[record.key] = None
        for offsets in self.pending.values():
            if record.key in offsets:
                offsets[record.key] = None
        if record.committed is None:
            self.committed.pop(record.key, None)
        else:
            self.committed[record.key] = record.committed

    def _forget(self) -> None:
        self.committed = {}
        self.pending = {}
        self._pending_from = {}
        self.groups = ReplayedGroups()

    def is_unstable(self, key: OffsetKey) -> bool:
        """Whether an open transaction may change an offset."""
        return any(key in offsets for offsets in self.pending.values())

    def differing(self, held: OffsetStore) -> Iterator[HeldDiffers]:
        """The offsets, committed or in open transactions, that a coordinator holds differently from
        its log."""
        changed, self._changed = self._changed, {}
        if len(self.committed) > MAX_COMPARED:
            yield from self._differing(changed, held)
        else:
            own = dict.fromkeys(
                (group, topic, partition)
                for group, topics in held.by_group.items()
                for topic, partitions in topics.items()
                for partition in partitions
            )
            yield from self._differing({**own, **dict.fromkeys(self.committed)}, held)
        if held.pending != self.pending:
            for producer in sorted(held.pending.keys() | self.pending.keys()):
                mine_open = held.pending.get(producer, {})
                its_open = self.pending.get(producer, {})
                for key in sorted(mine_open.keys() | its_open.keys()):
                    first, second = mine_open.get(key), its_open.get(key)
                    if first != second or (key in mine_open) != (key in its_open):
                        mine = None if first is None else first.committed
                        its = None if second is None else second.committed
                        yield HeldDiffers(_name(key), "open offset", _offset(mine), _offset(its))

    def _differing(self, keys: Iterable[OffsetKey], held: OffsetStore) -> Iterator[HeldDiffers]:
        for key in keys:
            group, topic, partition = key
            mine = held.by_group.get(group, {}).get(topic, {}).get(partition)
            its = self.committed.get(key)
            if mine != its:
                yield HeldDiffers(_name(key), "offset", _offset(mine), _offset(its))


def _name(key: OffsetKey) -> str:
    group, topic, partition = key
    return f"{topic}-{partition} of group {group}"


def _offset(one: CommittedOffset | None) -> str:
    return "" if one is None else str(one.offset)
