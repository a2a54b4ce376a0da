"""One member of a streams group: a thread of a Kafka Streams application.

Owns: what it reported of itself, and how far it is.  Never: sends or stores anything.
Kafka: StreamsGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.streams.reconciliation import MemberProgress, StreamsMemberState
from kcluster.broker.coordinator.streams.tasks import NOTHING_HELD, HeldTasks, Task

if TYPE_CHECKING:
    from kcluster.protocol.messages import StreamsGroupHeartbeatRequest

TaskOffsets = Mapping[Task, int]
"""How far the state of a task is, as its member reports it: the sum of changelog offsets."""
LEFT_EPOCH: Final = -1
"""Epoch of a member whose assignment was deleted from the log, until the member is, too."""


class Endpoint(Struct, frozen=True):
    """Where an application answers interactive queries."""

    host: str
    port: int


class MemberDetails(Struct, frozen=True):
    """What the member's record has."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    """In order of keys."""
    instance_id: str | None = None
    """Of a static member (from 4.4 on); None: it is dynamic."""


NOT_STARTED: Final = MemberProgress(0, 0, StreamsMemberState.STABLE, NOTHING_HELD, NOTHING_HELD)
LEAVING: Final = MemberProgress(
    LEFT_EPOCH, LEFT_EPOCH, StreamsMemberState.STABLE, NOTHING_HELD, NOTHING_HELD
)


class StreamsMember(Struct, frozen=True):
    """A member and its progress."""

    member_id: str
    details: MemberDetails = MemberDetails()
    progress: MemberProgress = NOT_STARTED

    @property
    def epoch(self) -> int:
        return self.progress.member_epoch


def is_relevant_change(before: MemberDetails, after: MemberDetails) -> bool:
    """Whether the change of a static member needs a new assignment.
    Kafka: hasEpochRelevantMemberConfigChanged."""
    return (before.topology_epoch, before.rack_id, before.client_tags, before.process_id) != (
        after.topology_epoch, after.rack_id, after.client_tags, after.process_id
    )  # fmt: skip


def away(progress: MemberProgress, epoch: int) -> MemberProgress:
    """Of a static member that will be back, under another id: it keeps its tasks, and has had them
    from the beginning then."""
    assigned = progress.assigned
    kept = HeldTasks(dict.fromkeys(assigned.active, 0), assigned.standby, assigned.warmup)
    return replace(progress, member_epoch=epoch, assigned=kept, pending_revocation=NOTHING_HELD)


def updated_details(
    details: MemberDetails,
    body: StreamsGroupHeartbeatRequest,
    client_id: str,
    client_host: str,
    is_endpoint_whole: bool,
) -> MemberDetails:
    """The details after a heartbeat, which reports only what is new.  `is_endpoint_whole`: without
    an endpoint in it the member has none any more."""
    changes: dict[str, object] = {"client_id": client_id, "client_host": client_host}
    if body.instance_id is not None:
        changes["instance_id"] = body.instance_id
    if is_endpoint_whole:
        changes["user_endpoint"] = None
    if body.rack_id is not None:
        changes["rack_id"] = body.rack_id
    if body.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = body.rebalance_timeout_ms
    if body.topology is not None:
        changes["topology_epoch"] = body.topology.epoch
    if body.process_id is not None:
        changes["process_id"] = body.process_id
    if body.user_endpoint is not None:
        changes["user_endpoint"] = Endpoint(body.user_endpoint.host, body.user_endpoint.port)
    if body.client_tags is not None:
        tags = {tag.key: tag.value for tag in body.client_tags}
        changes["client_tags"] = tuple(sorted(tags.items()))
    return replace(details, **changes)
