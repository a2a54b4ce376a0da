"""Words for events of coordinators: groups, transactions, share partitions.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from typing import Final

from kcluster.events.clients import (
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
    GroupRebalanced,
)
from kcluster.events.rebalance_reasons import (
    AnyRebalanceReason,
    AssignmentNotStored,
    GroupOverCapacity,
    HeartbeatExpired,
    LeaderRejoined,
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
        case MemberAdded(member=member, instance_id=None, client_reason=why):
            return f"new member {member} joined; {_client_reason(why)}"
        case MemberAdded(member=member, instance_id=instance_id, client_reason=why):
            return f"new static member {instance_id} joined as {member}; {_client_reason(why)}"
        case LeaderRejoined(member=member, client_reason=why):
            return f"leader {member} joined again; {_client_reason(why)}"
        case MetadataUpdated(member=member, instance_id=None, client_reason=why):
            return f"member {member} joined again with new metadata; {_client_reason(why)}"
        case MetadataUpdated(member=member, instance_id=instance_id, client_reason=why):
            return f"static member {instance_id} is back as {member}; {_client_reason(why)}"
        case ProtocolChanged(member=member, instance_id=instance_id, client_reason=why):
            back = f"static member {instance_id} is back as {member}"
            return f"{back} and changes the group's protocol; {_client_reason(why)}"
        case MembersLeft(leavers=leavers):
            return "; ".join(f"{x.member} left; {_client_reason(x.client_reason)}" for x in leavers)
        case HeartbeatExpired(member=member):
            return f"member {member} expired: no heartbeat for its session timeout"
        case PendingSyncExpired(members=members):
            return f"no SyncGroup came from {', '.join(members)}"
        case AssignmentNotStored(error=error):
            return f"the assignment was not stored: {error}"
        case GroupOverCapacity(size=size, max_size=max_size):
            return f"the loaded group has {size} members, group.max.size is {max_size}"


def _client_reason(text: str) -> str:
    return f"client reason: {text or 'not provided'}"


@text_of.register
def _(event: GroupMemberExpired) -> str:
    return f"member {event.member} sent no heartbeat for {event.session_timeout_ms} ms"


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
