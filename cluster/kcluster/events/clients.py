"""Events of clients and of their groups, as brokers see them.

Owns: their facts.  Never: words for them (words/).
Kafka: the logs of ClientQuotaManager and GroupCoordinator; KIP-714 for telemetry.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kcluster.events.base import TaggedEvent
from kcluster.events.rebalance_reasons import AnyRebalanceReason


class ClientThrottled(TaggedEvent, frozen=True):
    """A client's `rate` exceeded the `limit` of a quota, both in the quota's unit per second.
    Noted once, until the rate is within the limit again.  `entity`: the entity of the quota, as
    (type, name) pairs; a null name means the default."""

    client_id: str
    quota: str
    entity: tuple[tuple[str, str | None], ...]
    rate: float
    limit: float
    throttle_ms: int

    @property
    def subject(self) -> str:
        return self.client_id


class TelemetryPushed(TaggedEvent, frozen=True):
    """A client pushed metrics.  `pushes`, `total_bytes`: its totals so far."""

    client_id: str
    client_instance_id: str
    size_bytes: int
    pushes: int
    total_bytes: int

    @property
    def subject(self) -> str:
        return self.client_id or self.client_instance_id


class GroupEvent(TaggedEvent, frozen=True):
    """Something happened to a consumer group."""

    group: str

    @property
    def subject(self) -> str:
        return f"group {self.group}"


class GroupRebalanced(GroupEvent, frozen=True):
    """A rebalance is complete.  `trigger`: why it began."""

    generation: int
    members: tuple[str, ...]
    trigger: AnyRebalanceReason


class GroupMemberJoined(GroupEvent, frozen=True):
    """A member was added.  It has partitions once the rebalance that follows is complete.
    `client_reason`: what the client gave as its reason (KIP-800), empty if nothing."""

    member: str
    client_id: str
    client_host: str
    client_reason: str


class Departure(StrEnum):
    """Why a member is no longer in its group, if its session did not expire."""

    LEFT = "left"
    """LeaveGroup: by itself, or by an administrator."""
    NOT_JOINED = "not_joined"
    """It sent no JoinGroup within the rebalance timeout."""
    NOT_SYNCED = "not_synced"
    """It sent no SyncGroup within the rebalance timeout."""
    NOT_REVOKED = "not_revoked"
    """It has not revoked its partitions within the rebalance timeout (KIP-848)."""
    REPLACED = "replaced"
    """The same static member joined under another id (KIP-345)."""


class GroupMemberLeft(GroupEvent, frozen=True):
    """A member was removed.  `client_reason`: that of the client if it left by itself, empty if it
    gave none."""

    member: str
    departure: Departure
    client_reason: str = ""


class GroupMemberExpired(GroupEvent, frozen=True):
    """A member sent no heartbeat for its session timeout."""

    member: str
    session_timeout_ms: int


class AssignedPartitions(Struct, frozen=True, gc=False):
    """Partitions of one topic that a member was assigned."""

    member: str
    topic: str
    partitions: tuple[int, ...]


class GroupAssigned(GroupEvent, frozen=True):
    """The assignment of a generation is stored, and its members get it.  Empty if their protocol is
    not that of consumers.  In a group of KIP-848 the generation is the epoch of the target
    assignment, towards which its members go step by step."""

    generation: int
    assignments: tuple[AssignedPartitions, ...]
