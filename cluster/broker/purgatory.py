"""Parked requests: each waits for a condition that others will tell it of, or for its deadline.

Owns: the deadlines of parked requests and expiring them.  Never: knows what they wait for (an
operation registers itself with the replicas it watches).  Kafka: DelayedOperationPurgatory.

Requests that wait equally long expire in the order of their coming, so one queue per length of wait
keeps them sorted for nothing: parking, completing and expiring are O(1), without a timer each.
"""

from __future__ import annotations

from collections import deque

from cluster.timers import NEVER_MS


class DelayedOperation:
    """A parked request.  Subclasses finish it by `complete`, once."""

    __slots__ = ("deadline_ms", "done")

    def __init__(self) -> None:
        self.done = False
        self.deadline_ms = 0

    def expire(self, now_ms: int) -> None:
        """The deadline has come: answer with what there is, and set `done`."""
        raise AssertionError("a subclass says what it answers when time is up")


class Purgatory:
    """The deadlines of all parked requests of one broker.

    `next_ms`: nothing is due before it; NEVER_MS when nothing is parked.  It may be too early, as
    what is done is not looked for: then `run_due` finds nothing to do, and knows better.
    """

    __slots__ = ("_queues", "next_ms")

    def __init__(self) -> None:
        self._queues: dict[int, deque[DelayedOperation]] = {}
        self.next_ms = NEVER_MS

    def park(self, operation: DelayedOperation, wait_ms: int, now_ms: int) -> None:
        """Expire `operation` in `wait_ms`, unless it is done before."""
        deadline_ms = operation.deadline_ms = now_ms + wait_ms
        if deadline_ms < self.next_ms:
            self.next_ms = deadline_ms
        queue = self._queues.get(wait_ms)
        if queue is None:
            queue = self._queues[wait_ms] = deque()
        else:
            while queue and queue[0].done:
                queue.popleft()
        queue.append(operation)

    def run_due(self, now_ms: int) -> None:
        """Expire all whose deadline has come, the earliest first."""
        due: list[DelayedOperation] = []
        self.next_ms = NEVER_MS
        for wait_ms, queue in tuple(self._queues.items()):
            due += _pop_due(queue, now_ms)
            if not queue:
                del self._queues[wait_ms]
            elif queue[0].deadline_ms < self.next_ms:
                self.next_ms = queue[0].deadline_ms
        due.sort(key=lambda operation: operation.deadline_ms)
        for operation in due:
            if not operation.done:
                operation.expire(now_ms)

    def __len__(self) -> int:
        return sum(not operation.done for queue in self._queues.values() for operation in queue)


def _pop_due(queue: deque[DelayedOperation], now_ms: int) -> list[DelayedOperation]:
    due = []
    while queue and (queue[0].done or queue[0].deadline_ms <= now_ms):
        operation = queue.popleft()
        if not operation.done:
            due.append(operation)
    return due
