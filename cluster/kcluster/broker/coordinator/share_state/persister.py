"""The interface by which a broker keeps the state of share partitions.

Owns: the `SharePersister` interface, and NoPersister, which stores nothing.  Never: sends a request
(remote_persister.py does), stores a state (share_state_shard.py does).
Kafka: Persister, NoOpStatePersister; group.share.persister.class.name.

A persister calls back exactly once for each call, maybe before the call returns.  It reports an
error when it gives up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from kcluster.broker.coordinator.share_state.state import (
    NO_COUNT,
    UNINITIALIZED,
    ReadState,
    SharePartition,
    ShareSummary,
    StateBatch,
)
from kcluster.protocol.errors import ErrorCode

OnWritten = Callable[[ErrorCode, int], None]
"""Called with (error, now_ms)."""
OnRead = Callable[[ReadState | ErrorCode, int], None]
"""Called with (state or error, now_ms)."""
OnErrors = Callable[[dict[SharePartition, ErrorCode], int], None]
"""Called with (error of each share partition, now_ms)."""
OnSummaries = Callable[[dict[SharePartition, ShareSummary | ErrorCode], int], None]
"""Called with (summary or error of each share partition, now_ms)."""


class SharePersister(ABC):
    """Keeps the states of share partitions, of any group.

    The share-partition leader reads and writes; the group coordinator does the rest.
    """

    @abstractmethod
    def read(
        self, partition: SharePartition, leader_epoch: int, on_read: OnRead, now_ms: int
    ) -> None:
        """Read the state, for the leader of `leader_epoch`: writes of older leaders are refused
        from now on.  FENCED_LEADER_EPOCH if a newer leader has read it; INVALID_REQUEST if the
        state has not been initialized."""

    @abstractmethod
    def write(
        self,
        partition: SharePartition,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Iterable[StateBatch],
        on_written: OnWritten,
        now_ms: int,
    ) -> None:
        """Store a change: `batches`, and the start offset.  FENCED_STATE_EPOCH after a later
        initialization, FENCED_LEADER_EPOCH after a newer leader.  Writes of one share partition
        take effect in the order of the calls."""

    @abstractmethod
    def initialize(
        self, partitions: Mapping[SharePartition, tuple[int, int]], on_done: OnErrors, now_ms: int
    ) -> None:
        """Replace each state by a new one, with the given (state epoch, start offset).  All share
        partitions are of one group."""

    @abstractmethod
    def delete(self, partitions: Iterable[SharePartition], on_done: OnErrors, now_ms: int) -> None:
        """Delete the states.  All share partitions are of one group."""

    @abstractmethod
    def summarize(
        self, partitions: Iterable[SharePartition], on_done: OnSummaries, now_ms: int
    ) -> None:
        """Read the states without their batches.  All share partitions are of one group."""


class NoPersister(SharePersister):
    """Stores nothing: each share-partition leader starts without a state.  Kafka:
    NoOpStatePersister."""

    def read(
        self, partition: SharePartition, leader_epoch: int, on_read: OnRead, now_ms: int
    ) -> None:
        on_read(ReadState(0, UNINITIALIZED, ()), now_ms)

    def write(
        self,
        partition: SharePartition,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Iterable[StateBatch],
        on_written: OnWritten,
        now_ms: int,
    ) -> None:
        on_written(ErrorCode.NONE, now_ms)

    def initialize(
        self, partitions: Mapping[SharePartition, tuple[int, int]], on_done: OnErrors, now_ms: int
    ) -> None:
        on_done(dict.fromkeys(partitions, ErrorCode.NONE), now_ms)

    def delete(self, partitions: Iterable[SharePartition], on_done: OnErrors, now_ms: int) -> None:
        on_done(dict.fromkeys(partitions, ErrorCode.NONE), now_ms)

    def summarize(
        self, partitions: Iterable[SharePartition], on_done: OnSummaries, now_ms: int
    ) -> None:
        nothing = ShareSummary(0, 0, UNINITIALIZED, NO_COUNT)
        on_done(dict.fromkeys(partitions, nothing), now_ms)
