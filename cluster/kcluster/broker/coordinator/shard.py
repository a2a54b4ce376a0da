"""The groups of one partition of __consumer_offsets that this broker leads, and their offsets.

Owns: applying offsets when committed, replaying groups and offsets on election, deleting groups and
expired offsets.  Never: knows a kind of group (group.py is the interface, group_kinds.py the
table), interprets an offset (offsets.py), or has its own way to the log (log_shard.py).
Kafka: GroupCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_kinds import KIND_OF_RECORD, WITHOUT_MEMBERS
from kcluster.broker.coordinator.group_log import NO_TOPIC_ID, GroupRecord, LogRecord, OffsetRecord
from kcluster.broker.coordinator.group_records import decode_batch
from kcluster.broker.coordinator.interface import (
    CoordinatorBroker,
    CoordinatorResult,
    RequestRefused,
    Settled,
    ignore_outcome,
)
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.broker.coordinator.offsets import MINUTE_MS, OffsetKey, OffsetStore
from kcluster.broker.coordinator.records import encode_records
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.protocol.records.markers import Marker, build_marker, read_marker
from kcluster.protocol.records.records import Batch

GROUP_ERRORS_SINCE: Final = 9
"""OffsetCommit version from which clients know GROUP_ID_NOT_FOUND (KIP-848)."""
TXN_GROUP_ERRORS_SINCE: Final = 6
"""TxnOffsetCommit version from which clients know GROUP_ID_NOT_FOUND (KIP-1319)."""


_AS_OF_LEADER: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Errors in the form that the sender of a marker, another coordinator, expects of a partition's
leader."""


class GroupShard(LogShard[LogRecord]):
    """One partition's groups, in order of their creation, and offsets."""

    topic = GROUP_METADATA_TOPIC

    def __init__(self, broker: CoordinatorBroker, partition: int) -> None:
        super().__init__(broker, partition)
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self._written: dict[OffsetKey, int] = {}
        """The offsets that are written and not committed yet, with the number of their records."""

    @property
    def compression(self) -> int:
        return self.broker.config.offsets_topic_compression_codec

    # ------------------------------------------------------------------------- state

    def apply(self, record: LogRecord, now_ms: int) -> None:
        """Apply a committed record.  Only offsets take effect here; classic groups changed when
        they were written."""
        if isinstance(record, OffsetRecord):
            self._note_written(record, -1)
            self._apply_offset(record)

    def append(
        self, records: Iterable[LogRecord], on_settled: Settled, now_ms: int, at_once: bool = False
    ) -> bool:
        written = list(records)
        offsets = [one for one in written if isinstance(one, OffsetRecord)]
        for record in offsets:
            self._note_written(record, 1)
        is_in_log = super().append(written, on_settled, now_ms, at_once)
        for record in () if is_in_log else offsets:
            self._note_written(record, -1)
        return is_in_log

    def _note_written(self, record: OffsetRecord, change: int) -> None:
        count = self._written.get(record.key, 0) + change
        if count > 0:
            self._written[record.key] = count
        else:
            self._written.pop(record.key, None)

    def put_back(self, group_id: str, group: Group | None) -> None:
        if group is None:
            self.groups.pop(group_id, None)
        else:
            self.groups[group_id] = group

    def append_in_transaction(
        self,
        records: Sequence[LogRecord],
        producer: ProducerIdentity,
        on_settled: Settled,
        now_ms: int,
    ) -> None:
        """Append offsets of a transaction; they are pending once they are committed."""
        offsets = [one for one in records if isinstance(one, OffsetRecord)]
        for record in offsets:
            self._note_written(record, 1)

        def apply(_at_ms: int) -> None:
            for record in offsets:
                self._note_written(record, -1)
                self._apply_pending(producer.producer_id, record)

        batch = encode_records(
            records, now_ms, producer.producer_id, producer.producer_epoch, self.compression
        )
        if not self.append_batch(batch, apply, on_settled, now_ms):
            for record in offsets:
                self._note_written(record, -1)

    def append_marker(
        self,
        producer: ProducerIdentity,
        marker: Marker,
        transaction_version: int,
        on_done: Settled,
        now_ms: int,
    ) -> None:
        """Append the marker that ends a transaction here; NONE when it is applied, or an error in
        the form of a partition's leader."""
        replica = self.replica
        producer_id, producer_epoch = producer.producer_id, producer.producer_epoch
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if replica is not None:
            error = replica.check_marker(
                producer_id, producer_epoch, marker.coordinator_epoch, transaction_version
            )
        if error is not ErrorCode.NONE:
            on_done(error, now_ms)
            return

        def apply(_at_ms: int) -> None:
            self._end_transaction(producer_id, marker)

        def settled(error: ErrorCode, at_ms: int) -> None:
            on_done(_AS_OF_LEADER.get(error, error), at_ms)

        batch = build_marker(producer_id, producer_epoch, marker, now_ms)
        self.append_batch(batch, apply, settled, now_ms)

    def _apply_pending(self, producer_id: int, record: LogRecord) -> None:
        assert isinstance(record, OffsetRecord), record
        self._ensure_group(record.group_id)
        self.offsets.put_pending(producer_id, record)

    def _end_transaction(self, producer_id: int, marker: Marker) -> None:
        for record in self.offsets.end_transaction(producer_id, marker.is_commit):
            self._apply_offset(record)

    def _apply_offset(self, record: OffsetRecord) -> None:
        if record.committed is not None:
            self._ensure_group(record.group_id)
        self.offsets.apply(record)

    def _ensure_group(self, group_id: str) -> None:
        """Create a group for offsets alone, if there is none."""
        if group_id not in self.groups:
            self.groups[group_id] = WITHOUT_MEMBERS(group_id, self)

    def replay(self, batch: Batch) -> None:
        if batch.is_control:
            marker = read_marker(batch)
            if marker is not None:
                self._end_transaction(batch.producer_id, marker)
            return
        for record in decode_batch(batch):
            if batch.is_transactional:
                self._apply_pending(batch.producer_id, record)
            else:
                self._replay_record(record)

    def put(self, record: LogRecord, offset: int) -> None:
        self._replay_record(record)

    def _replay_record(self, record: LogRecord) -> None:
        if isinstance(record, OffsetRecord):
            self._apply_offset(record)
        else:
            self._replay_group(record)

    def _replay_group(self, record: GroupRecord) -> None:
        current = self.groups.get(record.group_id)
        kind = KIND_OF_RECORD[type(record)]
        group = current if isinstance(current, kind) else kind(record.group_id, self)
        if group.replay(record):
            if current is not None and group is not current:
                current.abandon()
            self.groups[record.group_id] = group
        elif group is current:
            group.abandon()
            del self.groups[record.group_id]

    def resume(self, now_ms: int) -> None:
        for group in list(self.groups.values()):
            group.resume(now_ms)
        self._expire_later(now_ms)

    def forget(self, now_ms: int) -> None:
        self.broker.timers.cancel(("group-expiry", self.partition))
        for group in self.groups.values():
            group.unload(now_ms)

    # ----------------------------------------------------------------------- commits

    def admit_commit(
        self, group_id: str, committer: Committer, records: Iterable[OffsetRecord], now_ms: int
    ) -> ErrorCode:
        """Whether this member may commit these offsets: all, or none.  A commit of a classic member
        also counts as a heartbeat."""
        group = self.groups.get(group_id)
        if group is not None:
            error = group.admit_commit(committer, now_ms)
            if error is not ErrorCode.NONE:
                return error
            checks = (
                group.check_commit_of(committer, self._topic_id_of(one), one.partition)
                for one in records
            )
            return next((one for one in checks if one is not ErrorCode.NONE), ErrorCode.NONE)
        # Without a generation the commit itself creates the group (when it is stored).
        if committer.generation < 0:
            return ErrorCode.NONE
        since = TXN_GROUP_ERRORS_SINCE if committer.is_in_transaction else GROUP_ERRORS_SINCE
        knows_of_groups = committer.api_version >= since
        return ErrorCode.GROUP_ID_NOT_FOUND if knows_of_groups else ErrorCode.ILLEGAL_GENERATION

    def _topic_id_of(self, record: OffsetRecord) -> bytes:
        """Older versions of OffsetCommit name topics only."""
        topic_id = NO_TOPIC_ID if record.committed is None else record.committed.topic_id
        known = topic_id != NO_TOPIC_ID
        return topic_id if known else self.broker.image.topics[record.topic].topic_id

    def decide_deletion(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> CoordinatorResult[frozenset[str]] | RequestRefused:
        """Delete offsets (KIP-496).  The answer names the topics that a member subscribes to, whose
        offsets stay.  Kafka: OffsetMetadataManager.deleteOffsets."""
        group = self.groups.get(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_deletion()
        if group is None or error is not ErrorCode.NONE:
            return RequestRefused(error)
        asked = list(partitions)
        kept = frozenset(topic for topic, _ in asked if group.is_subscribed_to(topic))
        tombstones = [
            tombstone
            for topic, index in asked
            if topic not in kept
            and (tombstone := self.offsets.tombstone(group_id, topic, index)) is not None
        ]
        return CoordinatorResult(tombstones, kept, at_once=False)

    # ---------------------------------------------------------------------- deletion

    def delete_group(self, group: Group, on_settled: Settled, now_ms: int) -> None:
        """Delete a group without members, and its offsets.  If the write fails, nothing has
        changed."""
        records = [*self._tombstones(of_group=group.group_id), *group.tombstones()]
        if self.append(records, on_settled, now_ms):
            group.abandon()
            del self.groups[group.group_id]

    def forget_topic(self, name: str, now_ms: int) -> None:
        """Delete the offsets of a deleted topic, and all other state of groups about it, which is
        not valid for a new topic of that name."""
        tombstones = list(self._tombstones(of_topic=name))
        if tombstones:
            self.append(tombstones, ignore_outcome, now_ms)
        changes = [one for group in self.groups.values() for one in group.without_deleted_topics()]
        if changes:
            self.append(changes, ignore_outcome, now_ms, at_once=True)

    def _tombstones(self, of_group: str = "", of_topic: str = "") -> Iterator[OffsetRecord]:
        """Tombstones for every offset of a group, or of a topic: committed ones, pending ones, and
        those that are written and not committed yet."""
        for key in dict.fromkeys((*self.offsets.keys(), *self._written)):
            group_id, topic, partition = key
            if of_group in ("", group_id) and of_topic in ("", topic):
                yield OffsetRecord(group_id, topic, partition, None)

    def _expire_later(self, now_ms: int) -> None:
        def expire(at_ms: int) -> None:
            self._expire(at_ms)
            self._expire_later(at_ms)

        interval_ms = self.broker.config.offsets_retention_check_interval_ms
        self.broker.timers.set(("group-expiry", self.partition), now_ms + interval_ms, expire)

    def _expire(self, now_ms: int) -> None:
        """Delete offsets past offsets.retention.minutes, and groups that are then empty."""
        retention_ms = self.broker.config.offsets_retention_minutes * MINUTE_MS
        records: list[LogRecord] = []
        unused: list[str] = []
        for group in self.groups.values():
            tombstones, all_expired = self.offsets.expired(group, now_ms, retention_ms)
            records.extend(tombstones)
            if all_expired and group.is_unused:
                records.extend(group.tombstones())
                unused.append(group.group_id)
        if records and self.append(records, ignore_outcome, now_ms):
            for group_id in unused:
                del self.groups[group_id]
