"""The refusals of a heartbeat that groups with epochs of all kinds share.

Owns: these errors and their words, and the check of a static member's identity.  Never: makes any
other decision about a heartbeat.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

from kcluster.broker.coordinator.interface import RequestRefused, invalid
from kcluster.protocol.errors import ErrorCode

_JOIN_AGAIN: Final = "give up everything assigned and join again"


class _Member(Protocol):
    @property
    def member_id(self) -> str: ...


MemberT = TypeVar("MemberT", bound=_Member)


def empty_field(**fields: str | None) -> RequestRefused | None:
    """The first of these fields that is set, and blank."""
    for name, value in fields.items():
        if value is not None and not value.strip():
            return invalid(f"{name} is empty")
    return None


def full_group(limit: int, config: str) -> RequestRefused:
    """The refusal by a full group; `config`: the name of its limit."""
    message = f"the group is full: {limit} members ({config})"
    return RequestRefused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def unknown_member(group_id: str, member_id: str) -> RequestRefused:
    return RequestRefused(
        ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} has no member {member_id}"
    )


def known_static_member(
    holder: MemberT | None, instance_id: str, member_id: str
) -> MemberT | RequestRefused:
    """Check that a static member may use its instance id.  `holder`: the member with that instance
    id, None if there is none; it is returned if its id is `member_id`."""
    if holder is None:
        message = f"the group has no static member {instance_id}"
        return RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, message)
    if holder.member_id != member_id:
        message = f"instance id {instance_id} is member {holder.member_id} now, not {member_id}"
        return RequestRefused(ErrorCode.FENCED_INSTANCE_ID, message)
    return holder


def unreleased_instance(instance_id: str, holder_id: str, member_id: str) -> RequestRefused:
    """The refusal of an instance id whose member is still there."""
    message = f"{member_id} cannot join as instance id {instance_id}: member {holder_id} has it"
    return RequestRefused(ErrorCode.UNRELEASED_INSTANCE_ID, message)


def fenced_epoch(sent: int, known: int, previous: int) -> RequestRefused:
    message = f"member epoch {sent}: it is {known}, before it was {previous}; {_JOIN_AGAIN}"
    return RequestRefused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def unknown_state() -> RequestRefused:
    """The refusal of a member's unknown state, which a later version may have recorded."""
    message = f"the member's state is not known here; {_JOIN_AGAIN}"
    return RequestRefused(ErrorCode.FENCED_MEMBER_EPOCH, message)
