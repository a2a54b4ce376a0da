"""Appends that wait for acks=all: a producer's, and those of the broker itself.

Owns: the parked append and when it is answered.  Never: appends but through `Replica`, decides what
is committed (partition/replica.py).  Kafka: ReplicaManager.appendRecords, DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cluster.broker.purgatory import DelayedOperation
from cluster.partition.replica import Replica
from cluster.protocol.errors import NONE, ErrorCode

if TYPE_CHECKING:
    from cluster.broker.node import BrokerNode

ACKS_ALL: Final = -1

PartitionDone = Callable[[Any, ErrorCode], None]
"""(the `token` given for the partition, what became of it)."""


class DelayedAppend(DelayedOperation):
    """Appends to one or more partitions, waiting until all are committed or have failed.

    `on_partition(token, error)` is called for each that did not end in NONE, then
    `on_done(now_ms)` once.
    """

    __slots__ = ("_on_done", "_on_partition", "_waiting")

    def __init__(self, on_partition: PartitionDone, on_done: Callable[[int], None]) -> None:
        super().__init__()
        self._waiting: dict[tuple[Replica, int], Any] = {}
        """By what is waited for: a request may name a partition twice."""
        self._on_partition = on_partition
        self._on_done = on_done

    def wait_for(self, replica: Replica, required_offset: int, token: Any) -> None:
        """Wait until all before `required_offset` is committed in `replica`."""
        self._waiting[replica, required_offset] = token
        waiting = replica.acks_waiting
        if waiting and waiting[-1][0] > required_offset:
            # Only a duplicate's first answer can be this: it asks for an offset of the past.
            position = next(i for i, entry in enumerate(waiting) if entry[0] > required_offset)
            waiting.insert(position, (required_offset, self))
        else:
            waiting.append((required_offset, self))

    def on_partition_done(
        self, replica: Replica, required_offset: int, error: ErrorCode, now_ms: int
    ) -> None:
        """`replica` has committed all before `required_offset`, or never will."""
        token = self._waiting.pop((replica, required_offset), None)
        if self.done or token is None:
            return
        if error:
            self._on_partition(token, error)
        if not self._waiting:
            self.done = True
            self._on_done(now_ms)

    def expire(self, now_ms: int) -> None:
        """Time is up: appended, but not known to be committed."""
        for token in self._waiting.values():
            self._on_partition(token, ErrorCode.REQUEST_TIMED_OUT)
        self._waiting = {}
        self.done = True
        self._on_done(now_ms)


def append_internal(
    broker: BrokerNode, topic: str, partition: int, records: bytearray,
    on_committed: Callable[[ErrorCode, int], None], now_ms: int,
) -> None:  # fmt: skip
    """Append as the broker itself, with acks=all and offsets.commit.timeout.ms."""
    replica = broker.leader_replica(topic, partition)
    if isinstance(replica, ErrorCode):
        on_committed(replica, now_ms)
        return
    appended = replica.append_as_leader(memoryview(records), ACKS_ALL, now_ms)
    if appended.error:
        on_committed(appended.error, now_ms)
        return
    broker.replicas.moved[replica] = None
    outcome = [NONE]

    def on_partition(_token: Any, error: ErrorCode) -> None:
        outcome[0] = error

    delayed = DelayedAppend(on_partition, lambda now_ms: on_committed(outcome[0], now_ms))
    delayed.wait_for(replica, appended.last_offset + 1, replica)
    broker.purgatory.park(delayed, broker.config.offsets_commit_timeout_ms, now_ms)
