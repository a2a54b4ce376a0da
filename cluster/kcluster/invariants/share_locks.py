"""Acquisition locks that do not end.

Owns: the time at which a lock of a share partition must have ended, and each that has not.  Never:
ends one (broker/share/window.py does), knows a member's requests (shares.py does).  Kafka:
SharePartition.AcquisitionLockTimerTask; KIP-932.

A leader that runs takes records back when their lock ends.  One that was paused, or has just begun,
gets its time anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.share.in_flight import ACQUIRED
from kcluster.broker.share.share_partition import ShareLeader
from kcluster.deaths import ProcessState
from kcluster.invariants.facts import Locked
from kcluster.runtime.process import Process
from kcluster.timers import NEVER_MS

LOCK_SLACK_MS: Final = 1_000
"""The time by which a timer may be late: a pause between two looks delays it, too."""
_Lock = tuple[int, int, SharePartition]
"""(broker, its life, share partition)."""


class OverdueLocks:
    """The locks at all leaders of one run.  `look` is called from time to time."""

    def __init__(self, processes: Mapping[int, Process]) -> None:
        self._processes = processes
        self._up_since: dict[tuple[int, int], int] = {}
        """The time of the first look since which each life of a broker was never seen paused."""
        self._found: dict[_Lock, None] = {}

    def look(self, now_ms: int, slack_ms: int) -> Iterator[tuple[int, str, Locked]]:
        """The locks that should have ended, each share partition once, as (broker, subject, what
        was observed)."""
        before, self._up_since = self._up_since, {}
        for broker, process in self._processes.items():
            node = process.broker
            if node is None or process.state is not ProcessState.UP:
                continue
            life = (broker, process.life)
            up_since_ms = self._up_since[life] = before.get(life, now_ms)
            for key, is_loading in node.share_partitions.in_motion():
                leader = None if is_loading else node.share_partitions.get(key)
                until_ms = NEVER_MS if leader is None else leader.window.next_deadline_ms
                is_late = max(until_ms, up_since_ms) + slack_ms < now_ms
                if leader is not None and is_late and (*life, key) not in self._found:
                    self._found[*life, key] = None
                    subject = f"group {key.group_id}, partition {key.partition}"
                    yield broker, subject, Locked(_first(leader, until_ms), until_ms, now_ms)


def _first(leader: ShareLeader, until_ms: int) -> int:
    """The first record whose lock ends at this time."""
    return next(
        run.first_offset
        for batch in leader.window.batches
        for run in batch.runs
        if run.state is ACQUIRED and run.lock_deadline_ms == until_ms
    )
