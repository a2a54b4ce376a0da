"""Parked requests, each of which waits for a condition, or for its deadline.

Owns: the deadlines of parked requests and expiring them.  Never: knows their conditions (an
operation registers itself with the replicas that it watches).  Kafka: DelayedOperationPurgatory.

Requests that wait equally long expire in the order of their arrival.  So one queue per length of
wait needs no sorting: parking, completing and expiring are O(1), without a timer for each.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from kcluster.timers import NEVER_MS

COMPACT_AT: Final = 1024
QUEUES_BEFORE_SWEEP: Final = 64
"""The number of queues beyond which empty ones are dropped: clients choose how long they wait, and
most choose alike."""
QUEUES_KEPT_EMPTY: Final = 8
"""The number of empty queues that are kept, because a broker's own waits have only a few different
lengths."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation:
    """A parked request.  A subclass answers it once, and then sets `done`.

    `parked_behind`: the next operation of its queue.  In compiled code this linked list costs a
    tenth of a deque.
    """

    __slots__ = ("deadline_ms", "done", "parked_behind")

    def __init__(self) -> None:
        self.done = False
        self.deadline_ms = 0
        self.parked_behind: DelayedOperation | None = None

    def expire(self, now_ms: int) -> None:
        """Answer with the available data, because the deadline has passed, and set `done`."""
        raise AssertionError("a subclass answers when its deadline has passed")


class Purgatory:
    """The deadlines of all parked requests of one broker.

    `next_ms`: the time before which nothing is due; NEVER_MS when nothing is parked.  It may be too
    early, because a finished operation does not change it: `run_due` then expires nothing and
    corrects it.
    """

    __slots__ = ("_last", "_last_wait_ms", "_queues", "next_ms")

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}
        self._last: _Queue | None = None
        """The queue of `_last_wait_ms`, the last one used, which is mostly also right for the next
        operation."""
        self._last_wait_ms = 0
        self.next_ms = NEVER_MS

    def park(self, operation: DelayedOperation, wait_ms: int, now_ms: int) -> None:
        """Expire `operation` in `wait_ms`, unless the operation is done before."""
        deadline_ms = operation.deadline_ms = now_ms + wait_ms
        if deadline_ms < self.next_ms:
            self.next_ms = deadline_ms
        queue = self._last
        if queue is None or wait_ms != self._last_wait_ms:
            queue = self._last = self._queue_of(wait_ms)
            self._last_wait_ms = wait_ms
        queue.add(operation)

    def _queue_of(self, wait_ms: int) -> _Queue:
        queue = self._queues.get(wait_ms)
        if queue is None:
            if len(self._queues) >= QUEUES_BEFORE_SWEEP:
                self._sweep()
            queue = self._queues[wait_ms] = _Queue()
        return queue

    def run_due(self, now_ms: int) -> None:
        """Expire all operations whose deadline has passed, the earliest first."""
        due: list[DelayedOperation] = []
        next_ms = NEVER_MS
        for queue in self._queues.values():
            first_ms = queue.pop_due(now_ms, due)
            if first_ms < next_ms:
                next_ms = first_ms
        self.next_ms = next_ms
        if len(self._queues) > QUEUES_KEPT_EMPTY:
            self._sweep()
        due.sort(key=lambda operation: operation.deadline_ms)
        for operation in due:
            if not operation.done:
                operation.expire(now_ms)

    def _sweep(self) -> None:
        """Drop queues in which nothing waits."""
        self._last = None
        self._queues = {
            wait_ms: queue
            for wait_ms, queue in self._queues.items()
            if queue.first_deadline_ms() != NEVER_MS
        }

    def __len__(self) -> int:
        return sum(queue.count_waiting() for queue in self._queues.values())


class _Queue:
    """Operations that wait equally long, in the order of their deadlines.

    Finished operations are dropped when they reach the front, or when they outnumber the waiting
    ones, so that a long wait at the front does not keep thousands of them.
    """

    __slots__ = ("_compact_at", "_first", "_last", "_length")

    def __init__(self) -> None:
        self._first: DelayedOperation | None = None
        self._last: DelayedOperation | None = None
        self._length = 0
        self._compact_at = COMPACT_AT

    def add(self, operation: DelayedOperation) -> None:
        first = self._first
        while first is not None and first.done:
            first = self._pop(first)
        last = self._last
        if last is None:
            self._first = operation
        else:
            last.parked_behind = operation
        self._last = operation
        self._length += 1
        if self._length > self._compact_at:
            self._compact()

    def _pop(self, first: DelayedOperation) -> DelayedOperation | None:
        """Take out the first operation; return the next one."""
        behind = self._first = first.parked_behind
        first.parked_behind = None
        self._length -= 1
        if behind is None:
            self._last = None
        return behind

    def _compact(self) -> None:
        operation = self._first
        self._first = self._last = None
        self._length = 0
        while operation is not None:
            behind, operation.parked_behind = operation.parked_behind, None
            if not operation.done:
                if self._last is None:
                    self._first = operation
                else:
                    self._last.parked_behind = operation
                self._last = operation
                self._length += 1
            operation = behind
        self._compact_at = max(COMPACT_AT, 2 * self._length)

    def pop_due(self, now_ms: int, due: list[DelayedOperation]) -> int:
        """Take out all operations whose deadline has passed, and add the unfinished ones to `due`.
        Returns the earliest remaining deadline, or NEVER_MS."""
        first = self._first
        while first is not None and (first.done or first.deadline_ms <= now_ms):
            behind = self._pop(first)
            if not first.done:
                due.append(first)
            first = behind
        return NEVER_MS if first is None else first.deadline_ms

    def first_deadline_ms(self) -> int:
        """The earliest deadline, or NEVER_MS."""
        first = self._first
        while first is not None and first.done:
            first = self._pop(first)
        return NEVER_MS if first is None else first.deadline_ms

    def count_waiting(self) -> int:
        waiting, operation = 0, self._first
        while operation is not None:
            waiting += not operation.done
            operation = operation.parked_behind
        return waiting
