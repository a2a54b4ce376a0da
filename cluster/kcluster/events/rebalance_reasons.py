"""The reasons for rebalances, as values.

Owns: the reasons that GroupRebalanced carries.  Never: words for them (words/).
Kafka: the reason in `Preparing to rebalance group`, in the log of GroupMetadataManager; KIP-800 for
clients' own reasons.

`client_reason` is the text that a member gave in its request; empty if none.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.events.base import kind_of


class RebalanceReason(Struct, frozen=True, gc=False, tag_field="kind", tag=kind_of):
    """The base of the reasons why a rebalance began."""


class MemberAdded(RebalanceReason, frozen=True):
    """A new member joined.  Kafka: `Adding new member`."""

    member: str
    instance_id: str | None = None
    client_reason: str = ""


class LeaderRejoined(RebalanceReason, frozen=True):
    """The leader of a stable group joined again; this counts even with equal metadata, because the
    topics that it consumes may have changed.  Kafka: `Leader ... re-joining group`."""

    member: str
    client_reason: str = ""


class MetadataUpdated(RebalanceReason, frozen=True):
    """A member joined again with other protocols or another subscription; or a static member
    returned under a new id while the leader assigns.  `instance_id`: the static member's. Kafka:
    `Updating metadata for member`, `Updating metadata for static member`."""

    member: str
    instance_id: str | None = None
    client_reason: str = ""


class ProtocolChanged(RebalanceReason, frozen=True):
    """A static member returned, which changes the group's protocol. Kafka: `Group's
    selectedProtocol will change because static member ...`."""

    member: str
    instance_id: str
    client_reason: str = ""


class Leaver(Struct, frozen=True, gc=False):
    """A member that left.  `member`: its member id, or its instance id, if the request has that."""

    member: str
    client_reason: str = ""


class MembersLeft(RebalanceReason, frozen=True):
    """Members left, or were removed by an operator.  Kafka: ``explicit `LeaveGroup` request``."""

    leavers: tuple[Leaver, ...]


class HeartbeatExpired(RebalanceReason, frozen=True):
    """A member sent no heartbeat for its session timeout.
    Kafka: `removing member ... on heartbeat expiration`."""

    member: str


class PendingSyncExpired(RebalanceReason, frozen=True):
    """Members joined and sent no SyncGroup for the rebalance timeout.
    Kafka: `Removing ... on pending sync request expiration`."""

    members: tuple[str, ...]


class AssignmentNotStored(RebalanceReason, frozen=True):
    """The assignment could not be written.  `error`: a name of ErrorCode.
    Kafka: `Error ... when storing group assignment during SyncGroup`."""

    error: str


class GroupOverCapacity(RebalanceReason, frozen=True):
    """A group that was loaded has more members than group.max.size allows.
    Kafka: `Freshly-loaded group ... is over capacity`."""

    size: int
    max_size: int


AnyRebalanceReason = (
    MemberAdded
    | LeaderRejoined
    | MetadataUpdated
    | ProtocolChanged
    | MembersLeft
    | HeartbeatExpired
    | PendingSyncExpired
    | AssignmentNotStored
    | GroupOverCapacity
)
