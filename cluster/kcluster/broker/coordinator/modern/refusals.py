"""Why a heartbeat is refused, for what all kinds of these groups refuse.

Owns: those errors and their words.  Never: decides that a heartbeat is refused.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.coordinator.modern.group import GroupRefusal
from kcluster.protocol.errors import ErrorCode

_JOIN_AGAIN: Final = "give up everything assigned and join again"


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


def fenced_epoch(sent: int, known: int, previous: int) -> GroupRefusal:
    message = f"member epoch {sent}: it is {known}, before it was {previous}; {_JOIN_AGAIN}"
    return GroupRefusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def unknown_state() -> GroupRefusal:
    """Of a member; a later version may have recorded it."""
    message = f"the member's state is not known here; {_JOIN_AGAIN}"
    return GroupRefusal(ErrorCode.FENCED_MEMBER_EPOCH, message)
