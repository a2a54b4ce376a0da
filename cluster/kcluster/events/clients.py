"""Events of clients and of their groups.

Owns: their facts.  Never: words for them (words/).
Kafka: the logs of ClientQuotaManager and GroupCoordinator; KIP-714 for telemetry.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kcluster.events.base import TaggedEvent
from kcluster.events.rebalance_reasons import AnyRebalanceReason


class ClientThrottled(TaggedEvent, frozen=True):
    """A client's `rate` exceeded the `limit` of a quota, both in the quota's unit per second. The
    next excess is noted only after the rate has been within the limit again.  `entity`: the entity
    of the quota, as (type, name) pairs; a null name means the default."""

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


class ClientProcessEvent(TaggedEvent, frozen=True):
    """The base of events of a process of the workload's, by its client's name."""

    client: str

    @property
    def subject(self) -> str:
        return f"client {self.client}"


class ClientDown(ClientProcessEvent, frozen=True):
    """A client's process was killed, as by SIGKILL; otherwise it is being closed."""

    is_killed: bool


class ClientStarted(ClientProcessEvent, frozen=True):
    """A client's process was started again.  `life`: the number of its starts, 2 for the first
    restart."""

    life: int


class ClientPaused(ClientProcessEvent, frozen=True):
    """A client's process was stopped, as by SIGSTOP."""


class ClientResumed(ClientProcessEvent, frozen=True):
    """A client's paused process runs again."""


class GroupEvent(TaggedEvent, frozen=True):
    """The base of events that happen to a consumer group."""

    group: str

    @property
    def subject(self) -> str:
        return f"group {self.group}"


class GroupRebalanced(GroupEvent, frozen=True):
    """A rebalance is complete.  `trigger`: the reason why it began."""

    generation: int
    members: tuple[str, ...]
    trigger: AnyRebalanceReason


class GroupMemberJoined(GroupEvent, frozen=True):
    """A member was added.  It has partitions once the rebalance that follows is complete.
    `client_reason`: the reason that the client gave (KIP-800), empty if none."""

    member: str
    client_id: str
    client_host: str
    client_reason: str


class Departure(StrEnum):
    """The reason, other than an expired session, why a member left its group."""

    LEFT = "left"
    """The member sent a LeaveGroup, or an administrator did."""
    NOT_JOINED = "not_joined"
    """The member sent no JoinGroup within the rebalance timeout."""
    NOT_SYNCED = "not_synced"
    """The member sent no SyncGroup within the rebalance timeout."""
    NOT_REVOKED = "not_revoked"
    """The member did not revoke its partitions within the rebalance timeout (KIP-848)."""
    REPLACED = "replaced"
    """The static member joined again under another id (KIP-345)."""


class GroupMemberLeft(GroupEvent, frozen=True):
    """A member was removed.  `client_reason`: the client's reason if it left by itself, empty if it
    gave none."""

    member: str
    departure: Departure
    client_reason: str = ""


class MembersEvicted(GroupEvent, frozen=True):
    """The operator makes members leave, as if they had asked for it.  `member`: the word by which
    the operator chose them, a client's id or `all`; `members`: their ids."""

    member: str
    members: tuple[str, ...]


class RebalanceRequested(GroupEvent, frozen=True):
    """The operator began a rebalance, by a member that joined and left at once."""


class GroupDeleted(GroupEvent, frozen=True):
    """The operator deletes the group, with its offsets."""


class PartitionOffset(Struct, frozen=True, gc=False):
    """An offset of one partition."""

    partition: int
    offset: int


class OffsetSpec(StrEnum):
    """An end of a log.  Kafka: Admin's OffsetSpec."""

    EARLIEST = "earliest"
    LATEST = "latest"


class OffsetsReset(GroupEvent, frozen=True):
    """The operator gives the group other offsets of a topic.  `end`: the end of the log that the
    operator asked for; `asked`: the offset, if it was none; `offsets`: the new offsets;
    `partition`: the partition that the operator named, None for all."""

    topic: str
    offsets: tuple[PartitionOffset, ...]
    end: OffsetSpec | None = None
    asked: int | None = None
    partition: int | None = None


class GroupMemberExpired(GroupEvent, frozen=True):
    """A member sent no heartbeat for its session timeout."""

    member: str
    session_timeout_ms: int


class AssignedPartitions(Struct, frozen=True, gc=False):
    """The partitions of one topic that a member was assigned."""

    member: str
    topic: str
    partitions: tuple[int, ...]


class GroupAssigned(GroupEvent, frozen=True):
    """The assignment of a generation is stored, and its members get it.  The assignment is empty if
    the members' protocol is not the consumer protocol.  In a group of KIP-848 the generation is the
    epoch of the target assignment, which its members reach step by step."""

    generation: int
    assignments: tuple[AssignedPartitions, ...]
