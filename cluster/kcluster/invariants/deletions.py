"""Records that are due to go: by retention, or because an administrator deleted them.

Owns: since when the oldest segment of each log is due, and which deletions wait although their
replicas have moved.  Never: deletes, answers anything.  Kafka: UnifiedLog.deleteOldSegments,
DelayedDeleteRecords; KIP-107.

    retention-overdue     a log has kept its oldest segment for more than two checks of retention
                          after it was due by the topic's configs in force
    deletion-held-back    DeleteRecords waits at a leader, though no live replica, as far as the
                          leader knows, has the records any more

Replicas on fenced brokers delete the records when they come back; nobody waits for them.  But a
leader, as in Kafka, notices while it waits only that a replica has moved, not that a broker is
fenced: so a broker counts as fenced if it was so before the request came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from kcluster.broker.handlers.data.delete_records import DelayedDeleteRecords
from kcluster.invariants.facts import HeldDeletion, KeptSegment
from kcluster.metadata.records import BrokerRegistration
from kcluster.partition.log.segment import Segment
from kcluster.partition.replica import Replica

SLACK_MS: Final = 1_000


class _WaitingDeletion(NamedTuple):
    """A request that waits at a leader."""

    dead: AbstractSet[int]
    """The brokers that were fenced before it came, and have been so since."""
    is_ready: bool = False
    """Whether it could be answered."""


class Deletions:
    """The records of one run that are due to go."""

    def __init__(self) -> None:
        self._due: dict[Replica, tuple[int, int]] = {}
        """(base offset of the oldest segment, time since when it is due)."""
        self._fenced: dict[int, set[int]] = {}
        """The brokers that were fenced, as each broker knew at the last look."""
        self._waiting: dict[int, dict[DelayedDeleteRecords, _WaitingDeletion]] = {}
        """The deletions that waited at the last look, by broker."""

    def look_at_retention(
        self, replicas: Iterable[Replica], check_interval_ms: int, now_ms: int
    ) -> Iterator[tuple[Replica, KeptSegment]]:
        """Look at the logs of one broker that runs."""
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

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Forget what was due on a broker that does not run."""
        for replica in replicas:
            self._due.pop(replica, None)

    def look_at_requests(
        self, node: int, replicas: Iterable[Replica], brokers: Mapping[int, BrokerRegistration]
    ) -> Iterator[tuple[Replica, HeldDeletion]]:
        """Look at the deletions that wait at one broker, which knows `brokers`."""
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
