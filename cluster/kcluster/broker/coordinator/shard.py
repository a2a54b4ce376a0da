"""One partition of __consumer_offsets that this broker leads, with its groups and their offsets.

Owns: appending records and applying offsets when committed, replaying the log on election, deleting
groups and expired offsets, unloading on resignation.  Never: knows a kind of group (group.py is the
interface, group_kinds.py the table) or interprets an offset (offsets.py).
Kafka: CoordinatorRuntime's context of one partition, GroupCoordinatorShard, CoordinatorLoader.

Writes take effect in the order in which they were appended.  A write that timed out
(offsets.commit.timeout.ms) is still in the log.  It keeps its place in the queue and takes effect
when the high watermark passes it after all, as it would for a broker that loads the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_kinds import KIND_OF_RECORD, WITHOUT_MEMBERS
from kcluster.broker.coordinator.group_log import (
    LogRecord,
    OffsetRecord,
    decode_batches,
    encode_records,
)
from kcluster.broker.coordinator.interface import CoordinatorBroker, Settled, ignore_outcome
from kcluster.broker.coordinator.offsets import MINUTE_MS, OffsetStore
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC

LOAD_BYTES: Final = 5 * 1024 * 1024
"""How much of the log is read at a time, at most.  Kafka: offsets.load.buffer.size."""

GROUP_ERRORS_SINCE: Final = 9
"""OffsetCommit version from which clients know GROUP_ID_NOT_FOUND (KIP-848)."""

_MAY_BE_IN_LOG: Final = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

_ANSWERS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""An append's error -> the error that the group's client gets.  Kafka:
CoordinatorOperationExceptionHelper."""


class _Write(Struct):
    sequence: int
    records: list[LogRecord]
    on_settled: Settled | None
    """None once it has been called."""
    waiters: list[Settled]
    """To be called when this write and all before it are settled."""
    end_offset: int = -1
    """Log end offset behind it; -1 when it has not been appended."""


class GroupShard:
    """One partition's coordinator.  `groups` are in order of their creation."""

    def __init__(self, broker: CoordinatorBroker, partition: int) -> None:
        self.broker = broker
        self.partition = partition
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.active = True
        self._writes: deque[_Write] = deque()
        self._writes_made = 0
        self._loaded_end_offset = 0

    # ----------------------------------------------------------------------- writing

    def append(self, records: Iterable[LogRecord], on_settled: Settled, now_ms: int) -> None:
        """Append `records` in one batch; `on_settled` when they are committed, or cannot be."""
        self._writes_made += 1
        write = _Write(self._writes_made, list(records), on_settled, [])
        self._writes.append(write)
        self.broker.append_internal(
            GROUP_METADATA_TOPIC,
            self.partition,
            encode_records(write.records, now_ms),
            lambda error, at_ms: self._on_append(write, error, at_ms),
            now_ms,
        )
        replica = self.broker.leader_replica(GROUP_METADATA_TOPIC, self.partition)
        if not isinstance(replica, ErrorCode):
            write.end_offset = replica.log.log_end_offset

    def after_writes(self, on_settled: Settled, now_ms: int) -> None:
        """Call back when everything written so far is committed; at once if it is."""
        self.catch_up(now_ms)
        if not self._writes:
            on_settled(ErrorCode.NONE, now_ms)
        elif self._writes[-1].on_settled is None:
            # It timed out, so no callback will report when it is committed.
            on_settled(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
        else:
            self._writes[-1].waiters.append(on_settled)

    def catch_up(self, now_ms: int) -> None:
        """Apply writes that timed out but have been committed since."""
        replica = self.broker.leader_replica(GROUP_METADATA_TOPIC, self.partition)
        if isinstance(replica, ErrorCode):
            return
        while self._writes:
            first = self._writes[0]
            if first.on_settled is not None or first.end_offset > replica.high_watermark:
                return
            self._take_effect(self._writes.popleft(), now_ms)

    def _on_append(self, write: _Write, error: ErrorCode, now_ms: int) -> None:
        if not self.active:
            return
        if error == ErrorCode.NONE:
            while self._writes and self._writes[0].sequence <= write.sequence:
                self._take_effect(self._writes.popleft(), now_ms)
            return
        if error not in _MAY_BE_IN_LOG:
            self._writes = deque(other for other in self._writes if other is not write)
        self._settle(write, _ANSWERS.get(error, error), now_ms)

    def _take_effect(self, write: _Write, now_ms: int) -> None:
        for record in write.records:
            if isinstance(record, OffsetRecord):
                self._apply_offset(record)
        self._settle(write, ErrorCode.NONE, now_ms)

    def _settle(self, write: _Write, error: ErrorCode, now_ms: int) -> None:
        on_settled, write.on_settled = write.on_settled, None
        waiters, write.waiters = write.waiters, []
        if on_settled is not None:
            on_settled(error, now_ms)
        for waiter in waiters:
            waiter(error, now_ms)

    def _apply_offset(self, record: OffsetRecord) -> None:
        if record.committed is not None and record.group_id not in self.groups:
            self.groups[record.group_id] = WITHOUT_MEMBERS(record.group_id, self)
        self.offsets.apply(record)

    # --------------------------------------------------------------------- lifecycle

    def load(self, now_ms: int) -> None:
        """Rebuild groups and offsets from the partition's log, and start their timers."""
        replica = self.broker.leader_replica(GROUP_METADATA_TOPIC, self.partition)
        assert not isinstance(replica, ErrorCode), replica
        log = replica.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            batches = log.read(offset, LOAD_BYTES, log.log_end_offset, True)
            if not batches:
                break
            for record in decode_batches(batches):
                self._replay(record)
            offset = batches[-1].last_offset + 1
        self._loaded_end_offset = log.log_end_offset
        for group in list(self.groups.values()):
            group.resume(now_ms)
        self._expire_later(now_ms)

    def _replay(self, record: LogRecord) -> None:
        if isinstance(record, OffsetRecord):
            self._apply_offset(record)
            return
        current = self.groups.get(record.group_id)
        kind = KIND_OF_RECORD[type(record)]
        group = current if isinstance(current, kind) else kind(record.group_id, self)
        if group.replay(record):
            self.groups[record.group_id] = group
        elif group is current:
            del self.groups[record.group_id]

    def check_loaded(self) -> ErrorCode:
        """Whether offsets may be read: only once all that was loaded is known to be committed.

        A new leader's high watermark lags for a moment.  DIFFERS: Kafka reads at the watermark then
        and may return an offset older than one that it has acknowledged.
        """
        replica = self.broker.leader_replica(GROUP_METADATA_TOPIC, self.partition)
        if isinstance(replica, ErrorCode):
            return ErrorCode.NOT_COORDINATOR
        if replica.high_watermark < self._loaded_end_offset:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def unload(self, now_ms: int) -> None:
        """No longer the coordinator: ignore the outcome of writes, and answer NOT_COORDINATOR to
        waiting requests."""
        self.broker.timers.cancel(("group-expiry", self.partition))
        writes = list(self._writes)
        self._writes.clear()
        self.active = False
        for write in writes:
            self._settle(write, ErrorCode.NOT_COORDINATOR, now_ms)
        for group in self.groups.values():
            group.unload(now_ms)

    # ----------------------------------------------------------------------- commits

    def admit_commit(self, group_id: str, committer: Committer, now_ms: int) -> ErrorCode:
        """Whether this member may commit.  A commit also counts as a heartbeat."""
        group = self.groups.get(group_id)
        if group is not None:
            return group.admit_commit(committer, now_ms)
        # Without a generation the commit itself creates the group (when it is stored).
        if committer.generation < 0:
            return ErrorCode.NONE
        knows_of_groups = committer.api_version >= GROUP_ERRORS_SINCE
        return ErrorCode.GROUP_ID_NOT_FOUND if knows_of_groups else ErrorCode.ILLEGAL_GENERATION

    # ---------------------------------------------------------------------- deletion

    def delete_group(self, group: Group, on_settled: Settled, now_ms: int) -> None:
        """Delete a group without members, and its offsets.  If the deletion is not stored, the
        group is restored."""

        def settled(error: ErrorCode, at_ms: int) -> None:
            if error is not ErrorCode.NONE:
                self.groups.setdefault(group.group_id, group)
            on_settled(error, at_ms)

        group.abandon()
        records = [*self.offsets.tombstones(group.group_id), *group.tombstones()]
        del self.groups[group.group_id]
        self.append(records, settled, now_ms)

    def forget_topic(self, name: str, now_ms: int) -> None:
        """Delete the offsets of a deleted topic: they are not valid for a new topic of that
        name."""
        tombstones = list(self.offsets.tombstones_of_topic(name))
        if tombstones:
            self.append(tombstones, ignore_outcome, now_ms)

    def _expire_later(self, now_ms: int) -> None:
        def expire(at_ms: int) -> None:
            self._expire(at_ms)
            self._expire_later(at_ms)

        interval_ms = self.broker.config.offsets_retention_check_interval_ms
        self.broker.timers.set(("group-expiry", self.partition), now_ms + interval_ms, expire)

    def _expire(self, now_ms: int) -> None:
        """Delete offsets past offsets.retention.minutes, and groups that have nothing left."""
        retention_ms = self.broker.config.offsets_retention_minutes * MINUTE_MS
        records: list[LogRecord] = []
        for group in list(self.groups.values()):
            tombstones, all_expired = self.offsets.expired(group, now_ms, retention_ms)
            records.extend(tombstones)
            if all_expired and group.is_unused:
                records.extend(group.tombstones())
                del self.groups[group.group_id]
        if records:
            self.append(records, ignore_outcome, now_ms)
