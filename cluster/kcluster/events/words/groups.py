"""Words for events of coordinators: groups, transactions, share partitions.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from typing import Final

from kcluster.events.clients import (
    Departure,
    GroupAssigned,
    GroupDeleted,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
    GroupRebalanced,
    MembersEvicted,
    OffsetsReset,
    RebalanceRequested,
)
from kcluster.events.rebalance_reasons import (
    AnyRebalanceReason,
    AssignmentNotStored,
    GroupOverCapacity,
    HeartbeatExpired,
    LeaderRejoined,
    Leaver,
    MemberAdded,
    MembersLeft,
    MetadataUpdated,
    PendingSyncExpired,
    ProtocolChanged,
)
from kcluster.events.share_groups import (
    DeadLetterProblem,
    DeadLettersDropped,
    DeadLettersWritten,
    ShareLocksExpired,
    SharePartitionLoaded,
)
from kcluster.events.transactions import AbortReason, TransactionCompleted, TransactionEnded
from kcluster.events.words.base import counted, text_of

_UUID_CHARS: Final = 36


@text_of.register
def _(event: GroupRebalanced) -> str:
    members = counted(len(event.members), "member") if event.members else "empty"
    return f"generation {event.generation}: {members}; {rebalance_text(event.trigger)}"


def rebalance_text(reason: AnyRebalanceReason) -> str:
    """The reason for a rebalance, in words."""
    match reason:
        case MemberAdded() | LeaderRejoined() | MetadataUpdated() | ProtocolChanged():
            return f"{_joined(reason)}; {_client_reason(reason.client_reason, reason.member)}"
        case MembersLeft(leavers=leavers):
            return "; ".join(map(_left, leavers))
        case HeartbeatExpired(member=member):
            return f"member {member_name(member)} expired: no heartbeat for its session timeout"
        case PendingSyncExpired(members=members):
            return f"no SyncGroup came from {', '.join(map(member_name, members))}"
        case AssignmentNotStored(error=error):
            return f"the assignment was not stored: {error}"
        case GroupOverCapacity(size=size, max_size=max_size):
            return f"the loaded group has {size} members, group.max.size is {max_size}"


def _joined(reason: MemberAdded | LeaderRejoined | MetadataUpdated | ProtocolChanged) -> str:
    """The member that joined, or joined again."""
    name = member_name(reason.member)
    match reason:
        case MemberAdded(instance_id=None):
            return f"new member {name} joined"
        case MemberAdded(instance_id=instance_id):
            return f"new static member {instance_id} joined as {name}"
        case LeaderRejoined():
            return f"leader {name} joined again"
        case MetadataUpdated(instance_id=None):
            return f"member {name} joined again with new metadata"
        case MetadataUpdated(instance_id=instance_id):
            return f"static member {instance_id} is back as {name}"
    return f"static member {reason.instance_id} is back as {name} and changes the group's protocol"


def _left(leaver: Leaver) -> str:
    reason = _client_reason(leaver.client_reason, leaver.member)
    return f"{member_name(leaver.member)} left; {reason}"


def _client_reason(text: str, member: str) -> str:
    """The reason that a client gives, with its own member id shortened."""
    return f"client reason: {text.replace(member, member_name(member)) or 'not provided'}"


@text_of.register
def _(event: GroupMemberExpired) -> str:
    return f"member {member_name(event.member)} sent no heartbeat for {event.session_timeout_ms} ms"


@text_of.register
def _(event: GroupMemberJoined) -> str:
    return f"member {member_name(event.member)} of client {event.client_id} joined"


@text_of.register
def _(event: GroupMemberLeft) -> str:
    return f"member {member_name(event.member)} {departure_text(event)}"


_DEPARTURES: Final = {
    Departure.NOT_JOINED: "removed: it sent no JoinGroup within the rebalance timeout",
    Departure.NOT_SYNCED: "removed: it sent no SyncGroup within the rebalance timeout",
    Departure.NOT_REVOKED: "removed: it did not revoke its partitions within the rebalance timeout",
    Departure.REPLACED: "removed: the same static member joined under another id",
}


@text_of.register
def _(event: MembersEvicted) -> str:
    return f"{counted(len(event.members), 'member')} evicted: {', '.join(event.members)}"


@text_of.register
def _(event: RebalanceRequested) -> str:
    return "a rebalance was requested: a member joined and left again"


@text_of.register
def _(_event: GroupDeleted) -> str:
    return "deleted by the operator, with its offsets"


@text_of.register
def _(event: OffsetsReset) -> str:
    moved = ", ".join(f"{event.topic}-{one.partition} to {one.offset}" for one in event.offsets)
    to = event.asked if event.end is None else event.end
    return f"offsets reset to {to} by the operator: {moved}"


def departure_text(event: GroupMemberLeft) -> str:
    """A member's departure in words: its own action, or the reason for its removal."""
    removed = _DEPARTURES.get(event.departure)
    if removed is not None:
        return removed
    return f"left ({event.client_reason})" if event.client_reason else "left"


def member_name(member_id: str) -> str:
    """A member's id, its UUID shortened to its first eight digits: `billing-9d6262f5`."""
    name, uuid = member_id[:-_UUID_CHARS], member_id[-_UUID_CHARS:]
    return f"{name}{uuid[:8]}" if uuid.count("-") == 4 else member_id


@text_of.register
def _(event: GroupAssigned) -> str:
    shown = "; ".join(
        f"{row.topic}-{','.join(map(str, row.partitions))} to {member_name(row.member)}"
        for row in event.assignments
        if row.partitions
    )
    return f"generation {event.generation}: {shown or 'no partitions assigned'}"


_ABORTED_BY: Final = {
    AbortReason.PRODUCER: "by its producer",
    AbortReason.TIMEOUT: "its timeout has passed",
    AbortReason.NEW_PRODUCER: "a new producer has its transactional id",
}


@text_of.register
def _(event: TransactionEnded) -> str:
    who = f"producer {event.producer_id}, epoch {event.producer_epoch}"
    if event.abort_reason is None:
        return f"commit decided ({who})"
    return f"abort decided ({who}): {_ABORTED_BY[event.abort_reason]}"


@text_of.register
def _(event: TransactionCompleted) -> str:
    what = "committed" if event.committed else "aborted"
    return f"{what} in {counted(event.marked_partitions, 'partition')}"


@text_of.register
def _(event: SharePartitionLoaded) -> str:
    in_flight = counted(event.in_flight_records, "record")
    where = f"{event.topic}-{event.partition} from offset {event.start_offset}"
    return f"broker {event.broker} delivers {where}, {in_flight} in flight"


@text_of.register
def _(event: ShareLocksExpired) -> str:
    again = event.records - event.archived_records
    what = f"{counted(event.records, 'record')} of {event.topic}-{event.partition}"
    fates = [f"{again} to be delivered again"] if again else []
    if event.archived_records:
        fates.append(f"{event.archived_records} archived after the last delivery allowed")
    return f"locks on {what} expired: {', '.join(fates)}"


_NO_DEAD_LETTER: dict[DeadLetterProblem, str] = {
    DeadLetterProblem.NO_QUEUE: "the group has no dead letter queue any more",
    DeadLetterProblem.RESERVED_NAME: "a dead letter queue's name cannot begin with __",
    DeadLetterProblem.WRONG_PREFIX: (
        "its name does not begin with the brokers' errors.deadletterqueue.topic.name.prefix"
    ),
    DeadLetterProblem.NOT_ENABLED: "its errors.deadletterqueue.group.enable is false",
    DeadLetterProblem.NOT_CREATED: (
        "it does not exist, and errors.deadletterqueue.auto.create.topics.enable is false"
    ),
    DeadLetterProblem.CREATION_FAILED: "it could not be created",
    DeadLetterProblem.PRODUCE_FAILED: "it could not be written",
}


@text_of.register
def _(event: DeadLettersWritten) -> str:
    offsets = _offsets(event.first_offset, event.last_offset)
    where = f"{event.queue_topic}-{event.queue_partition}"
    return f"{offsets} of {event.topic}-{event.partition} went to the dead letter queue {where}"


@text_of.register
def _(event: DeadLettersDropped) -> str:
    offsets = _offsets(event.first_offset, event.last_offset)
    reason = _NO_DEAD_LETTER[event.problem] + (f" ({event.error})" if event.error else "")
    queue = f" {event.queue_topic}" if event.queue_topic else ""
    what = f"{offsets} of {event.topic}-{event.partition}"
    return f"{what} archived without a record in the dead letter queue{queue}: {reason}"


def _offsets(first: int, last: int) -> str:
    return f"offset {first}" if first == last else f"offsets {first} to {last}"
