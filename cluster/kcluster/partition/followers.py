"""A replica's role, what a leader knows of its followers, and the ISR that it asks for.

Owns: these values.  Never: changes them (replica.py does).
Kafka: ReplicaState, PendingPartitionChange.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from msgspec import Struct

UNKNOWN_OFFSET: Final = -1
BEFORE_START_MS: Final = -(10**12)
"""The time of what has not happened yet: before any run began; virtual clocks start at 0."""


class Role(Enum):
    """What a replica is to its partition; NONE until metadata has said."""

    NONE = "none"
    LEADER = "leader"
    FOLLOWER = "follower"


NO_ROLE: Final = Role.NONE


@final
class FollowerProgress:
    """What a leader knows of one follower.  Kafka: ReplicaState."""

    __slots__ = (
        "broker_epoch", "broker_id", "last_caught_up_ms", "last_fetch_ms",
        "leader_end_at_last_fetch", "log_end_offset", "log_start_offset",
    )  # fmt: skip

    def __init__(self, broker_id: int, last_caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.last_caught_up_ms = last_caught_up_ms
        """Last time at which it had everything that the leader had at its previous fetch."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_ms = BEFORE_START_MS
        self.leader_end_at_last_fetch = 0
        self.broker_epoch = -1


class IsrProposal(Struct, frozen=True):
    """An ISR that this leader has asked the controller for.  Kafka: PendingPartitionChange."""

    isr: tuple[int, ...]
    maximal_isr: tuple[int, ...]
    """Committed and proposed together: all of them hold the watermark back until it is decided."""
    leader_epoch: int
    partition_epoch: int
    reason: str
