"""Where a consumer stands in each partition: all its states, and every way from one to another.

Owns: the positions of the partitions that are assigned.  Never: sends; knows why it is told to.
Kafka: SubscriptionState; KIP-320 (positions are validated when the leader changes), KIP-392.

                      a committed offset            another leader, and the epoch is known
    INITIALIZING ----------------------> FETCHING ----------------------------------------.
         |                                 |  ^                                           v
         | none, reset policy              |  '------- as long as that or longer -- AWAIT_VALIDATION
         v          out of range           |  '------- cut off: the end of that epoch ----'
    AWAIT_RESET <--------------------------'
         '-----> FETCHING, at the earliest or latest offset
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import NO_EPOCH, NOBODY, Metadata

NO_OFFSET: Final = -1


class State(IntEnum):
    """Of one partition's position.  Kafka: SubscriptionState.FetchStates."""

    INITIALIZING = 0
    FETCHING = 1
    AWAIT_RESET = 2
    AWAIT_VALIDATION = 3


class Position:
    """Of one partition.  Written to by nobody but these methods and Positions, but for what answers
    tell of the log (`high_watermark`, …) and `is_buffered`."""

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
        "preferred_replica",
        "preferred_until_ms",
        "restarted",
        "retry_at_ms",
        "state",
        "topic",
        "will_be_revoked",
    )

    def __init__(self, key: Partition, owner: Positions) -> None:
        self.key = key
        self.topic, self.index = key
        self.owner = owner
        self.state = State.INITIALIZING
        self.offset = NO_OFFSET
        """Of the next record."""
        self.offset_epoch = NO_EPOCH
        """Leader epoch of the record before, or of the committed offset."""
        self.leader = NOBODY
        self.leader_epoch = NO_EPOCH
        self.retry_at_ms = 0
        """Not to be asked about before: a question is under way, or has failed."""
        self.fetch_at_ms = 0
        """Not to be fetched before: the last answer was an error."""
        self.restarted = True
        """The application has seen no record since the consumer chose this position itself."""
        self.is_buffered = False
        """Records of it are here and not given out yet."""
        self.will_be_revoked = False
        self.preferred_replica = NOBODY
        self.preferred_until_ms = 0
        self.high_watermark = self.last_stable_offset = self.log_start_offset = NO_OFFSET

    def seek(self, offset: int, offset_epoch: int, leader: int, leader_epoch: int) -> None:
        """Begin at a committed offset, or one that was asked for; the epoch, if one is known, is
        compared with the leader's log first."""
        self.restarted = True
        self._stand(offset, offset_epoch, leader, leader_epoch)

    def follow_leader(self, leader: int, leader_epoch: int) -> None:
        """The metadata says who leads: if that is news, the position is validated there."""
        if self.state is State.AWAIT_RESET or leader < 0 or self.offset < 0:
            return
        if (leader, leader_epoch) != (self.leader, self.leader_epoch):
            self._stand(self.offset, self.offset_epoch, leader, leader_epoch)
            self.preferred_replica = NOBODY

    def _stand(self, offset: int, offset_epoch: int, leader: int, leader_epoch: int) -> None:
        self.offset, self.offset_epoch = offset, offset_epoch
        self.leader, self.leader_epoch = leader, leader_epoch
        self.retry_at_ms = self.fetch_at_ms = 0
        if offset_epoch >= 0 and leader_epoch >= 0:
            self.state = State.AWAIT_VALIDATION
            self.owner.need_care = True
        else:
            self.state = State.FETCHING

    def validated(self) -> None:
        """The leader's log goes as far as this position, in the same epoch."""
        assert self.state is State.AWAIT_VALIDATION, self.state
        self.state = State.FETCHING
        self.retry_at_ms = 0

    def truncated(self, end_offset: int, epoch: int) -> None:
        """The log was cut off below this position: go on where the two last agreed."""
        assert self.state is State.AWAIT_VALIDATION, self.state
        self.restarted = True
        self.offset, self.offset_epoch = end_offset, epoch
        self.state = State.FETCHING
        self.retry_at_ms = 0

    def reset(self) -> None:
        """Forget the position; the reset policy says where to begin."""
        self.state = State.AWAIT_RESET
        self.offset, self.offset_epoch = NO_OFFSET, NO_EPOCH
        self.leader, self.leader_epoch = NOBODY, NO_EPOCH
        self.retry_at_ms = 0
        self.restarted = True
        self.owner.need_care = True

    def advance(self, offset: int, epoch: int) -> None:
        """Records up to `offset` were given out; `epoch`: of the last one's batch."""
        assert self.state is State.FETCHING, self.state
        assert offset >= self.offset, (offset, self.offset)
        self.offset, self.offset_epoch = offset, epoch

    def prefer(self, replica: int, until_ms: int) -> None:
        """Fetch from this replica, for it is nearer (KIP-392)."""
        if replica != self.preferred_replica:
            self.preferred_replica, self.preferred_until_ms = replica, until_ms


class Positions(dict[Partition, Position]):
    """Of all partitions assigned, in the order in which they are fetched.

    `need_care`: one may have come to be in another state than FETCHING, or was refused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.need_care = False
        self._seen_version = 0

    def assign(self, partitions: list[Partition]) -> None:
        """These from now on; those that were there before stay where they are."""
        kept = {key: self.get(key) for key in partitions}
        self.clear()
        for key, position in kept.items():
            self[key] = Position(key, self) if position is None else position
        self.need_care = True
        self._seen_version = 0

    def follow(self, metadata: Metadata) -> None:
        """Validate all positions against metadata that is new."""
        if metadata.version != self._seen_version:
            self._seen_version = metadata.version
            for topic, index in self:
                self[topic, index].follow_leader(
                    metadata.leader(topic, index), metadata.leader_epoch(topic, index)
                )

    def move_to_end(self, position: Position) -> None:
        """Fetch the others first."""
        if len(self) > 1 and self.get(position.key) is position:
            del self[position.key]
            self[position.key] = position

    def consumed(self) -> dict[Partition, tuple[int, int]]:
        """(offset, epoch) of each position that stands: what a commit of all commits."""
        return {
            key: (position.offset, position.offset_epoch)
            for key, position in self.items()
            if position.state is State.FETCHING
        }

    def mark_revoked_soon(self) -> None:
        """Give nothing more out of these: their offsets are being committed before a rebalance."""
        for position in self.values():
            position.will_be_revoked = True
