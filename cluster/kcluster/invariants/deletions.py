"""Records that retention or an administrator deletes: too late, too early, or not for good.

Owns: since when the oldest segment of each log is due, which DeleteRecords requests wait
needlessly, and which records were deleted too early, or are back.  Never: deletes, answers
anything.  Kafka: UnifiedLog.deleteOldSegments, DelayedDeleteRecords; KIP-107.

    retention-overdue     a log has kept its oldest segment for more than two checks of retention
                          after it was due by the topic's configs in force
    deletion-held-back    DeleteRecords waits at a leader, though no live replica, as far as the
                          leader knows, has the records any more
    log-start-behind      a follower in the ISR has fetched at LOOKS looks or more since its leader
                          deleted records, and still says that its log has them

    retention-hasty       a leader has deleted a batch that retention.ms does not reach, and after
                          which the log has less than retention.bytes
    deletion-undone       a leader's log begins before a deletion that was confirmed when its
                          replica was in sync

Replicas on fenced brokers delete the records when they come back; a leader does not wait for them.
But a waiting leader, as in Kafka, notices only that a replica has moved, not that a broker was
fenced: so a broker counts as fenced only if it was fenced before the request came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from kcluster.broker.handlers.data.delete_records import DelayedDeleteRecords
from kcluster.invariants.facts import (
    DeletedAgain,
    DeletedEarly,
    HeldDeletion,
    KeptSegment,
    StartBehind,
)
from kcluster.invariants.observed import ObservedPartition, ObservedReplica
from kcluster.metadata.records import BrokerRegistration
from kcluster.partition.log.log import Log
from kcluster.partition.log.segment import Segment
from kcluster.partition.replica import Replica

SLACK_MS: Final = 1_000
LOOKS: Final = 8
"""One answer tells a follower of a new log start; several may get lost, one after the other."""
Undone = tuple[str, DeletedAgain]
"""(name of the violation, what was observed)."""


class _WaitingDeletion(NamedTuple):
    """A request that waits at a leader."""

    dead: AbstractSet[int]
    """The brokers that were fenced before it came, and have been so since."""
    is_ready: bool = False
    """Whether it could be answered."""


class _Behind(NamedTuple):
    """A follower whose log begins before `due`, as far as its leader knows; its broker has fetched
    before each of the last `looks` looks."""

    due: int
    last_fetch_ms: int
    looks: int = 0


class Deletions:
    """The overdue deletions of one run."""

    def __init__(self) -> None:
        self._due: dict[Replica, tuple[int, int]] = {}
        """(base offset of the oldest segment, time since when it is due)."""
        self._fenced: dict[int, set[int]] = {}
        """The brokers that were fenced, as each broker knew at the last look."""
        self._waiting: dict[int, dict[DelayedDeleteRecords, _WaitingDeletion]] = {}
        """The deletions that waited at the last look, by broker."""
        self._behind: dict[Replica, dict[int, _Behind]] = {}
        """The followers that had not followed their leader's log start at the last look, by the
        leader's replica and the follower's broker."""

    def look_at_retention(
        self, replicas: Iterable[Replica], check_interval_ms: int, now_ms: int
    ) -> Iterator[tuple[Replica, KeptSegment]]:
        """Yields the segments of a running broker that retention should have deleted."""
        for replica in replicas:
            segments = replica.log.segments
            if len(segments) < 2 or not _is_due(replica, segments, now_ms):
                self._due.pop(replica, None)
                continue
            base = segments[0].base_offset
            known = self._due.get(replica)
            if known is None or known[0] != base:
                self._due[replica] = (base, now_ms)
            elif now_ms - known[1] > 2 * check_interval_ms + SLACK_MS:
                del self._due[replica]
                yield replica, KeptSegment(base, known[1], now_ms)

    def look_at_starts(self, replicas: Iterable[Replica]) -> Iterator[tuple[Replica, StartBehind]]:
        """Yields the followers in an ISR that do not follow the log start of their leader on one
        running broker; each once."""
        for replica in replicas:
            start = replica.log.log_start_offset
            before = self._behind.pop(replica, None) or {}
            if not start or not replica.is_leader:
                continue
            now: dict[int, _Behind] = {}
            for follower, progress in replica.followers.items():
                fetched_ms = replica.last_fetches.get(follower, -1)
                if not 0 <= progress.log_start_offset < start or follower not in replica.isr:
                    continue
                known = before.get(follower, _Behind(start, fetched_ms))
                if progress.log_start_offset >= known.due:
                    known = _Behind(start, fetched_ms)
                looks = known.looks + (fetched_ms > known.last_fetch_ms)
                if looks == LOOKS > known.looks:
                    yield replica, StartBehind(follower, progress.log_start_offset, known.due)
                now[follower] = _Behind(known.due, fetched_ms, looks)
            if now:
                self._behind[replica] = now

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Discard what was seen of the logs of a broker that is not running."""
        for replica in replicas:
            self._due.pop(replica, None)
            self._behind.pop(replica, None)

    def look_at_requests(
        self, node: int, replicas: Iterable[Replica], brokers: Mapping[int, BrokerRegistration]
    ) -> Iterator[tuple[Replica, HeldDeletion]]:
        """Yields the DeleteRecords requests that wait needlessly at one broker, which knows
        `brokers`."""
        fenced = {id_ for id_, known in brokers.items() if known.fenced}
        fenced_before = self._fenced.get(node, set())
        self._fenced[node] = fenced
        before = self._waiting.get(node, {})
        now = self._waiting[node] = {}
        for replica in replicas:
            for request in replica.fetches_waiting if replica.is_leader else ():
                if not isinstance(request, DelayedDeleteRecords):
                    continue
                known = before.get(request, _WaitingDeletion(fenced_before))
                dead = known.dead & fenced
                # The leader has moved its own log's start at once.
                start = replica.log.log_start_offset
                is_ready = all(
                    progress.log_start_offset >= start or progress.broker_id in dead
                    for progress in replica.followers.values()
                )
                if is_ready and known.is_ready:
                    yield replica, HeldDeletion(start)
                now[request] = _WaitingDeletion(dead, is_ready and not known.is_ready)


def _is_due(replica: Replica, segments: list[Segment], now_ms: int) -> bool:
    """Whether the oldest segment of a log is due by its topic's configs, and may go."""
    config, oldest = replica.config, segments[0]
    if replica.high_watermark < segments[1].base_offset:
        return False
    if segments[1].base_offset <= replica.log.log_start_offset:
        return True
    if "delete" not in config.cleanup_policy:
        return False
    newest_ms = max((batch.max_timestamp for batch in oldest.batches), default=-1)
    newest_ms = newest_ms if newest_ms >= 0 else oldest.appended_ms
    if 0 <= config.retention_ms < now_ms - newest_ms:
        return True
    excess = sum(segment.size_bytes for segment in segments) - config.retention_bytes
    return config.retention_bytes >= 0 and excess >= oldest.size_bytes


def deleted_early(
    observed: ObservedPartition, leader: Replica, start_before: int, now_ms: int
) -> Iterator[tuple[str, DeletedEarly]]:
    """The newest batch that retention has deleted too early, from a log that began at
    `start_before`.  A log that is compacted, or has lost records in another way, is not checked."""
    log, config = leader.log, leader.config
    if observed.unclean_epoch >= 0 or observed.lost or "delete" not in config.cleanup_policy:
        return
    if "compact" in config.cleanup_policy:
        return
    left_bytes = log.size_bytes
    for base, batch in reversed(observed.committed.batches.items()):
        if base < start_before:
            return
        if batch.last_offset >= log.log_start_offset:
            continue
        age_ms = now_ms - batch.max_timestamp
        is_old = batch.max_timestamp < 0 or 0 <= config.retention_ms < age_ms
        if not is_old and not 0 <= config.retention_bytes <= left_bytes:
            limits = (config.retention_ms, config.retention_bytes)
            yield "retention-hasty", DeletedEarly(base, age_ms, left_bytes, *limits)
            return
        left_bytes += batch.size_bytes


def confirm(
    partitions: Iterable[ObservedPartition], topic: str, number: int, before: int
) -> Iterator[tuple[ObservedReplica, Undone]]:
    """Record that the deletion of the records before an offset was confirmed.  Yields what is
    broken if the newest leader still has some of them."""
    for observed in partitions:
        one = observed.registration
        if (observed.topic, observed.partition) != (topic, number) or observed.deleted_ms >= 0:
            continue
        if one is not None and before > observed.deleted[0]:
            observed.deleted = (before, tuple(one.isr))
            leader = observed.leaders.get(observed.newest_epoch, (-1, -1))[0]
            replica = observed.replicas.get(leader)
            for found in () if replica is None else undone(observed, replica.log, leader):
                assert replica is not None
                yield replica, found


def undone(observed: ObservedPartition, log: Log, leader: int) -> Iterator[Undone]:
    """Records in the newest leader's log whose deletion was confirmed while its replica was in
    sync.  Not checked once an unclean election or a disk has lost records: the log may then be
    older than the deletion."""
    before, isr = observed.deleted
    start = log.log_start_offset
    if start < before and leader in isr and observed.unclean_epoch < 0 and not observed.lost:
        yield "deletion-undone", DeletedAgain(before, start)
