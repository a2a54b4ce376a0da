"""Why a heartbeat is refused, for what all kinds of these groups refuse.

Owns: those errors and their words, and whether a static member is whom it says.  Never: makes any
other decision about a heartbeat.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

from kcluster.broker.coordinator.modern.group import GroupRefusal
from kcluster.protocol.errors import ErrorCode

_JOIN_AGAIN: Final = "give up everything assigned and join again"


class _Member(Protocol):
    @property
    def member_id(self) -> str: ...


MemberT = TypeVar("MemberT", bound=_Member)


def invalid(message: str) -> GroupRefusal:
    """The request itself is wrong."""
    return GroupRefusal(ErrorCode.INVALID_REQUEST, message)


def empty_field(**fields: str | None) -> GroupRefusal | None:
    """The first of these fields that is set, and blank."""
    for name, value in fields.items():
        if value is not None and not value.strip():
            return invalid(f"{name} is empty")
    return None


def full_group(limit: int, config: str) -> GroupRefusal:
    """`config`: where the limit is set."""
    message = f"the group is full: {limit} members ({config})"
    return GroupRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def unknown_member(group_id: str, member_id: str) -> GroupRefusal:
    return GroupRefusal(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} has no member {member_id}")


def known_static_member(
    holder: MemberT | None, instance_id: str, member_id: str
) -> MemberT | GroupRefusal:
    """`holder`: the member that has this instance id, None for none.  Returns it if that is the
    member of `member_id`."""
    if holder is None:
        message = f"the group has no static member {instance_id}"
        return GroupRefusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
    if holder.member_id != member_id:
        message = f"instance id {instance_id} is member {holder.member_id} now, not {member_id}"
        return GroupRefusal(ErrorCode.FENCED_INSTANCE_ID, message)
    return holder


def fenced_epoch(sent: int, known: int, previous: int) -> GroupRefusal:
    message = f"member epoch {sent}: it is {known}, before it was {previous}; {_JOIN_AGAIN}"
    return GroupRefusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def unknown_state() -> GroupRefusal:
    """Of a member; a later version may have recorded it."""
    message = f"the member's state is not known here; {_JOIN_AGAIN}"
    return GroupRefusal(ErrorCode.FENCED_MEMBER_EPOCH, message)
