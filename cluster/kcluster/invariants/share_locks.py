"""Acquisition locks that do not end, or are too many.

Owns: the time by which a lock of a share partition must have ended, and each overdue lock; the
number of records that may be in flight.  Never: ends a lock (broker/share/window.py does), knows a
member's requests (shares.py does).  Kafka: SharePartition.AcquisitionLockTimerTask,
share.partition.max.record.locks; KIP-932.

A running leader takes records back when their lock ends.  After a pause, or a start, a broker gets
its time again.  Batches of the log are not split, so the last batch in flight may exceed the limit,
but no batch after it is acquired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.share.in_flight import ACQUIRED
from kcluster.broker.share.share_partition import ShareLeader
from kcluster.deaths import ProcessState
from kcluster.invariants.facts import Measure, Observed, OutOfBounds
from kcluster.invariants.group_facts import Locked
from kcluster.invariants.promises import BrokenPromise
from kcluster.runtime.process import Process

LOCK_SLACK_MS: Final = 1_000
"""The time by which a timer may be late: a pause between two looks delays it, too."""
_Lock = tuple[int, int, SharePartition]
"""(broker, its life, share partition)."""


class OverdueLocks:
    """The locks at all leaders of one run.  `look` is called from time to time."""

    def __init__(self, processes: Mapping[int, Process], reconfigured: Mapping[str, None]) -> None:
        self._processes = processes
        self._reconfigured = reconfigured
        """The groups whose limit may have been different when their records were acquired."""
        self._up_since: dict[tuple[int, int], int] = {}
        """The time since which each life of a broker was up at every look."""
        self._found: dict[_Lock, None] = {}

    def look(self, now_ms: int, slack_ms: int) -> Iterator[tuple[int, BrokenPromise]]:
        """The locks that should have ended, and the share partitions with too many records in
        flight, each share partition once, with their broker."""
        before, self._up_since = self._up_since, {}
        for broker, process in self._processes.items():
            node = process.broker
            if node is None or process.state is not ProcessState.UP:
                continue
            life = (broker, process.life)
            up_since_ms = self._up_since[life] = before.get(life, now_ms)
            for key, is_loading in node.share_partitions.in_motion():
                leader = None if is_loading else node.share_partitions.get(key)
                if leader is None or (*life, key) in self._found:
                    continue
                found = None
                if up_since_ms + slack_ms < now_ms:
                    found = _overdue(leader, now_ms, slack_ms)
                if found is None and key.group_id not in self._reconfigured:
                    found = _too_many(leader)
                if found is not None:
                    self._found[*life, key] = None
                    name, fact = found
                    yield broker, (name, f"group {key.group_id}, partition {key.partition}", fact)


def _overdue(leader: ShareLeader, now_ms: int, slack_ms: int) -> tuple[str, Observed] | None:
    until_ms = leader.window.next_deadline_ms
    if until_ms + slack_ms >= now_ms:
        return None
    return "lock-overdue", Locked(_first(leader, until_ms), until_ms, now_ms)


def _too_many(leader: ShareLeader) -> tuple[str, Observed] | None:
    window, limit = leader.window, leader.limits.record_locks
    if window.in_flight_records <= limit:
        return None
    last = leader.replica.log.batches_from(window.end_offset)
    is_deleted = not last or last[0].base_offset > window.end_offset
    if is_deleted or last[0].base_offset - window.start_offset < limit:
        return None
    many = OutOfBounds(Measure.RECORDS, window.in_flight_records, Measure.MAX_LOCKS, limit)
    return "share-over-locks", many


def _first(leader: ShareLeader, until_ms: int) -> int:
    """The first record whose lock ends at this time."""
    return next(
        run.first_offset
        for batch in leader.window.batches
        for run in batch.runs
        if run.state is ACQUIRED and run.lock_deadline_ms == until_ms
    )
