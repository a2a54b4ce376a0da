"""Appends that wait for acks=all: producers' and the broker's own.

Owns: the parked append and the time of its answer.  Never: appends (its creator has), commits
(partition/replica.py).  Kafka: ReplicaManager.appendRecords, DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from kcluster.broker.purgatory import DelayedOperation
from kcluster.partition.replica import AckWait, Replica
from kcluster.protocol.errors import NONE, ErrorCode

ACKS_ALL: Final = -1


@final
class PartitionAppend(AckWait):
    """One partition's part of a delayed append.

    `answer`: the part of the response in which an error is reported; None if no response has one.
    """

    __slots__ = ("answer", "delayed", "is_done")

    def __init__(self, delayed: DelayedAppend, required_offset: int, answer: object) -> None:
        super().__init__(required_offset)
        self.delayed = delayed
        self.answer = answer
        self.is_done = False

    def answered(self, error: ErrorCode, now_ms: int) -> None:
        self.delayed.on_partition_done(self, error, now_ms)


class DelayedAppend(DelayedOperation):
    """Appends to one or more partitions, answered when each is committed or has failed."""

    __slots__ = ("_left", "_waits")

    def __init__(self) -> None:
        super().__init__()
        self._waits: list[PartitionAppend] = []
        self._left = 0

    def on_failed(self, answer: Any, error: ErrorCode) -> None:
        """Called when one partition's append has ended in an error."""
        raise AssertionError("a subclass answers")

    def on_done(self, now_ms: int) -> None:
        """Called when all partitions are committed or have failed."""
        raise AssertionError("a subclass answers")

    def wait_for(self, replica: Replica, required_offset: int, answer: object) -> None:
        """Wait until everything before `required_offset` is committed in `replica`."""
        wait = PartitionAppend(self, required_offset, answer)
        self._waits.append(wait)
        self._left += 1
        replica.wait_for_ack(wait)

    def on_partition_done(self, wait: PartitionAppend, error: ErrorCode, now_ms: int) -> None:
        """Called when one partition is committed, or never will be."""
        if self.done or wait.is_done:
            return
        wait.is_done = True
        if error:
            self.on_failed(wait.answer, error)
        self._left -= 1
        if not self._left:
            self._finish(now_ms)

    def expire(self, now_ms: int) -> None:
        """Answer after the timeout: the records are appended, but not known to be committed."""
        for wait in self._waits:
            if not wait.is_done:
                self.on_failed(wait.answer, ErrorCode.REQUEST_TIMED_OUT)
        self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        self.done = True
        self._waits = []  # they refer to this object; without them no reference cycle remains
        self.on_done(now_ms)


@final
class InternalAppend(DelayedAppend):
    """An append of the broker itself; `on_committed(error, now_ms)` is called once."""

    __slots__ = ("_error", "_on_committed")

    def __init__(self, on_committed: Callable[[ErrorCode, int], None]) -> None:
        super().__init__()
        self._on_committed = on_committed
        self._error = NONE

    def on_failed(self, answer: Any, error: ErrorCode) -> None:
        self._error = error

    def on_done(self, now_ms: int) -> None:
        self._on_committed(self._error, now_ms)


@final
class CommitWait(AckWait):
    """Calls `on_answered(error, now_ms)` once `required_offset` is committed, or will never be."""

    __slots__ = ("_on_answered",)

    def __init__(self, required_offset: int, on_answered: Callable[[ErrorCode, int], None]) -> None:
        super().__init__(required_offset)
        self._on_answered = on_answered

    def answered(self, error: ErrorCode, now_ms: int) -> None:
        self._on_answered(error, now_ms)
