"""A replica's role, what a leader knows of its followers, and the ISR that it asks for.

Owns: these values.  Never: changes them (replica.py does).
Kafka: ReplicaState, PendingPartitionChange.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

UNKNOWN_OFFSET: Final = -1
NEVER_MS: Final = -(10**12)
"""Before any run began; virtual clocks start at 0."""


class Role(Enum):
    """What a replica is to its partition; NONE until metadata has said."""

    NONE = "none"
    LEADER = "leader"
    FOLLOWER = "follower"


NO_ROLE: Final = Role.NONE


class FollowerProgress(Struct):
    """What a leader knows of one follower.  Kafka: ReplicaState."""

    broker_id: int
    last_caught_up_ms: int
    """Last time at which it had everything that the leader had at its previous fetch."""
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = 0
    leader_end_at_last_fetch: int = 0
    broker_epoch: int = -1


class IsrProposal(Struct, frozen=True):
    """An ISR that this leader has asked the controller for.  Kafka: PendingPartitionChange."""

    isr: tuple[int, ...]
    maximal_isr: tuple[int, ...]
    """Committed and proposed together: all of them hold the watermark back until it is decided."""
    leader_epoch: int
    partition_epoch: int
    reason: str
