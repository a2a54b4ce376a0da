"""The replicas that one periodic task must look at: changed ones, and due ones.

Owns: this set of replicas.  Never: looks at a replica, sets a timer (maintenance.py does both).
Kafka: no counterpart; Kafka's tasks look at every replica, but a hundred times less often than the
tasks of profile fast.

So the cost of a task depends on the changes since its last run, not on the number of replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import final

from kcluster.partition.replica import NO_ROLE, Replica
from kcluster.timers import NEVER_MS

_FEW = 64


@final
class Backlog:
    """The replicas that one task must look at.  Replicas are taken in the order in which they were
    hosted, as if the task went through all of them."""

    __slots__ = ("_changed", "_due", "_heap")

    def __init__(self) -> None:
        self._changed: dict[Replica, None] = {}
        self._due: dict[int, tuple[int, Replica]] = {}
        """The time at which to look at a replica even if nothing changes, by the number of the
        replica."""
        self._heap: list[tuple[int, int]] = []
        """(due_ms, number) of each entry of `_due`, and stale ones."""

    def __len__(self) -> int:
        return len(self._changed) + len(self._due)

    def add(self, replicas: Iterable[Replica]) -> None:
        """Add replicas that have changed, to be looked at in the next run."""
        self._changed.update(dict.fromkeys(replicas))

    def take(self, now_ms: int) -> list[Replica]:
        """Take out the replicas to look at now."""
        taken, self._changed = self._changed, {}
        heap, due = self._heap, self._due
        while heap and heap[0][0] <= now_ms:
            due_ms, number = heappop(heap)
            known = due.get(number)
            if known is not None and known[0] == due_ms:
                taken[known[1]] = None
        if not taken:
            return []
        hosted = [replica for replica in taken if replica.role is not NO_ROLE]
        for replica in hosted:
            due.pop(replica.number, None)
        hosted.sort(key=_number)
        return hosted

    def look_again(self, replica: Replica, at_ms: int) -> None:
        """Take `replica` again at this time, or as soon as it changes.  With NEVER_MS, only when it
        changes."""
        if at_ms == NEVER_MS:
            return
        self._due[replica.number] = at_ms, replica
        heappush(self._heap, (at_ms, replica.number))
        if len(self._heap) > _FEW and len(self._heap) > 2 * len(self._due):
            self._heap = [(due_ms, number) for number, (due_ms, _) in self._due.items()]
            heapify(self._heap)

    def forget(self, replica: Replica) -> None:
        """Forget a replica that this broker no longer hosts."""
        self._changed.pop(replica, None)
        self._due.pop(replica.number, None)


def _number(replica: Replica) -> int:
    return replica.number
