"""A consumer's position in each assigned partition: its states, and every transition.

Owns: the positions of the assigned partitions.  Never: sends, decides when to move (fetcher.py,
commits.py, offset_lookups.py and group.py do).
Kafka: SubscriptionState; KIP-320 (positions are validated when the leader changes), KIP-392.

    state             method         reason                            next state
    INITIALIZING      seek           a committed offset                (a)
    INITIALIZING      reset          no committed offset               AWAIT_RESET
    AWAIT_RESET       seek           the earliest or latest offset     FETCHING
    FETCHING          follow_leader  a new leader or leader epoch      (a)
    FETCHING          reset          OFFSET_OUT_OF_RANGE               AWAIT_RESET
    FETCHING          advance        records were returned             FETCHING
    AWAIT_VALIDATION  follow_leader  a new leader or leader epoch      (a)
    AWAIT_VALIDATION  validated      the log reaches the position      FETCHING
    AWAIT_VALIDATION  truncated      the epoch ends below it           FETCHING, at that end
    AWAIT_VALIDATION  reset          the leader has no such epoch      AWAIT_RESET

    (a) AWAIT_VALIDATION if the epochs of the leader and of the offset are known, else FETCHING
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import NO_BROKER, NO_EPOCH, Metadata

NO_OFFSET: Final = -1


class FetchState(IntEnum):
    """The state of a position.  Kafka: SubscriptionState.FetchStates."""

    INITIALIZING = 0
    FETCHING = 1
    AWAIT_RESET = 2
    AWAIT_VALIDATION = 3


class Position:
    """The position in one partition.  `state`, `offset`, `leader` and their epochs change only by
    these methods.  Kafka: SubscriptionState.TopicPartitionState."""

    __slots__ = (
        "fetch_at_ms",
        "high_watermark",
        "index",
        "is_buffered",
        "key",
        "last_stable_offset",
        "leader",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "offset_epoch",
        "owner",
        "pending_revocation",
        "preferred_replica",
        "preferred_until_ms",
        "restarted",
        "retry_at_ms",
        "state",
        "topic",
    )

    def __init__(self, key: Partition, owner: Positions) -> None:
        self.key = key
        self.topic, self.index = key
        self.owner = owner
        self.state = FetchState.INITIALIZING
        self.offset = NO_OFFSET
        """The offset of the next record."""
        self.offset_epoch = NO_EPOCH
        """The leader epoch of the previous record, or of the committed offset."""
        self.leader = NO_BROKER
        self.leader_epoch = NO_EPOCH
        self.retry_at_ms = 0
        """The time before which there is no offset lookup: one is in flight, or has failed."""
        self.fetch_at_ms = 0
        """The time before which there is no fetch: the last one ended with an error."""
        self.restarted = True
        """Whether no record was returned since the position was set by seek, reset or
        truncation."""
        self.is_buffered = False
        """Whether the fetcher has buffered records of the partition."""
        self.pending_revocation = False
        self.preferred_replica = NO_BROKER
        self.preferred_until_ms = 0
        self.high_watermark = self.last_stable_offset = self.log_start_offset = NO_OFFSET

    def seek(self, offset: int, offset_epoch: int, leader: int, leader_epoch: int) -> None:
        """Start at a committed offset, or at an offset from ListOffsets.  If the offset's epoch is
        known, the offset is first validated against the leader's log."""
        self.restarted = True
        self._set(offset, offset_epoch, leader, leader_epoch)

    def follow_leader(self, leader: int, leader_epoch: int) -> None:
        """Take the leader from the metadata; a new leader or epoch starts a validation of the
        position.  Kafka: maybeValidatePositionForCurrentLeader."""
        if self.state is FetchState.AWAIT_RESET or leader < 0 or self.offset < 0:
            return
        if (leader, leader_epoch) != (self.leader, self.leader_epoch):
            self._set(self.offset, self.offset_epoch, leader, leader_epoch)
            self.preferred_replica = NO_BROKER

    def _set(self, offset: int, offset_epoch: int, leader: int, leader_epoch: int) -> None:
        self.offset, self.offset_epoch = offset, offset_epoch
        self.leader, self.leader_epoch = leader, leader_epoch
        self.retry_at_ms = self.fetch_at_ms = 0
        if offset_epoch >= 0 and leader_epoch >= 0:
            self.state = FetchState.AWAIT_VALIDATION
            self.owner.needs_update = True
        else:
            self.state = FetchState.FETCHING

    def validated(self) -> None:
        """End the validation: the leader's log reaches this position in the epoch of its offset."""
        assert self.state is FetchState.AWAIT_VALIDATION, self.state
        self.state = FetchState.FETCHING
        self.retry_at_ms = 0

    def truncated(self, end_offset: int, epoch: int) -> None:
        """Continue where both logs last agreed: the leader's log was truncated below this
        position."""
        assert self.state is FetchState.AWAIT_VALIDATION, self.state
        self.restarted = True
        self.offset, self.offset_epoch = end_offset, epoch
        self.state = FetchState.FETCHING
        self.retry_at_ms = 0

    def reset(self) -> None:
        """Drop the offset; the reset policy decides the next one."""
        self.state = FetchState.AWAIT_RESET
        self.offset, self.offset_epoch = NO_OFFSET, NO_EPOCH
        self.leader, self.leader_epoch = NO_BROKER, NO_EPOCH
        self.retry_at_ms = 0
        self.restarted = True
        self.owner.needs_update = True

    def advance(self, offset: int, epoch: int) -> None:
        """Move past the returned records, to `offset`; `epoch`: the leader epoch of the last
        batch."""
        assert self.state is FetchState.FETCHING, self.state
        assert offset >= self.offset, (offset, self.offset)
        self.offset, self.offset_epoch = offset, epoch

    def prefer(self, replica: int, until_ms: int) -> None:
        """Fetch from this replica, which is closer (KIP-392)."""
        if replica != self.preferred_replica:
            self.preferred_replica, self.preferred_until_ms = replica, until_ms


class Positions(dict[Partition, Position]):
    """The positions of all assigned partitions, in fetch order.

    `needs_update`: whether a position may not be FETCHING, or its fetch ended with an error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.needs_update = False
        self._seen_version = 0

    def assign(self, partitions: list[Partition]) -> None:
        """Replace the assignment; partitions assigned before keep their positions."""
        positions = {key: self.get(key) for key in partitions}
        self.clear()
        for key, position in positions.items():
            self[key] = Position(key, self) if position is None else position
        self.needs_update = True
        self._seen_version = 0

    def follow(self, metadata: Metadata) -> None:
        """Take the leaders from new metadata.
        Kafka: validatePositionsOnMetadataChange."""
        if metadata.version != self._seen_version:
            self._seen_version = metadata.version
            for topic, index in self:
                self[topic, index].follow_leader(
                    metadata.leader(topic, index), metadata.leader_epoch(topic, index)
                )

    def move_to_end(self, position: Position) -> None:
        """Move a partition to the end, so that the other partitions are fetched first.  Kafka:
        movePartitionToEnd."""
        if len(self) > 1 and self.get(position.key) is position:
            del self[position.key]
            self[position.key] = position

    def consumed(self) -> dict[Partition, tuple[int, int]]:
        """(offset, epoch) of each valid position, for a commit.  Kafka: allConsumed."""
        return {
            key: (position.offset, position.offset_epoch)
            for key, position in self.items()
            if position.state is FetchState.FETCHING
        }

    def mark_pending_revocation(self) -> None:
        """Return no more records while offsets are committed before a rebalance."""
        for position in self.values():
            position.pending_revocation = True
