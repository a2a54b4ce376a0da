"""A member's way to its target: the partitions that it must revoke first, and the partitions that
it may have already.

Owns: that decision.  Never: changes a group, writes a record.
Kafka: CurrentAssignmentBuilder; KIP-848, KIP-1251 (assignment epochs).

A member gets a partition only when no other member has it, or must still revoke it.

    STABLE ──▶ UNREVOKED_PARTITIONS ──▶ UNRELEASED_PARTITIONS ──▶ STABLE
       │       (old epoch; waits for     (epoch of the target;       ▲
       │        the client to revoke)     waits for other members)   │
       └─────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.consumer.member import (
    NONE_ASSIGNED,
    AssignedPartitions,
    ConsumerMember,
    ConsumerMemberState,
)
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.modern.refusals import unknown_state
from kcluster.broker.coordinator.modern.topics import Assignment

Owned = Mapping[bytes, Collection[int]]
"""The partitions that the member reports as its own, by topic id."""


class Destination(Struct, frozen=True):
    """The facts with which a member is reconciled."""

    target_epoch: int
    target: Assignment
    subscribed_ids: Collection[bytes]
    """Ids of the existing topics that the member subscribes to now."""
    is_taken: Callable[[bytes, int], bool]
    """(topic id, partition) -> whether any member has it."""
    owned: Owned | None
    """The reported partitions; None if the heartbeat did not report them."""
    subscription_changed: bool = False


def reconcile(member: ConsumerMember, to: Destination) -> ConsumerMember | RequestRefused:
    """The member after this heartbeat; itself if nothing changes."""
    match member.state:
        case ConsumerMemberState.STABLE:
            if member.epoch != to.target_epoch:
                return _next(member, to, member.epoch)
            return _drop_unsubscribed(member, to) if to.subscription_changed else member
        case ConsumerMemberState.UNREVOKED_PARTITIONS:
            if _owns_any(member.revoking, to.owned):
                return _drop_unsubscribed(member, to) if to.subscription_changed else member
            return _next(member, to, member.epoch)
        case ConsumerMemberState.UNRELEASED_PARTITIONS:
            return _next(member, to, member.epoch)
    if to.owned is None or any(to.owned.values()):
        return unknown_state()
    return _next(member, to, to.target_epoch)


def _owns_any(revoking: AssignedPartitions, owned: Owned | None) -> bool:
    """Whether the client still has a partition to revoke; true without a report."""
    if owned is None:
        return True
    return any(
        partition in revoking.get(topic_id, {})
        for topic_id, partitions in owned.items()
        for partition in partitions
    )


def _drop_unsubscribed(member: ConsumerMember, to: Destination) -> ConsumerMember:
    """The step without a new target: only topics that the member no longer subscribes to are
    revoked."""
    kept = {one: some for one, some in member.assigned.items() if one in to.subscribed_ids}
    if len(kept) == len(member.assigned):
        return member
    revoking = {topic_id: dict(some) for topic_id, some in member.revoking.items()}
    for topic_id, partitions in member.assigned.items():
        if topic_id not in kept:
            revoking.setdefault(topic_id, {}).update(partitions)
    changed = replace(member, previous_epoch=member.epoch, assigned=kept)
    if _owns_any(revoking, to.owned):
        return replace(changed, state=ConsumerMemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    return changed


def _next(member: ConsumerMember, to: Destination, epoch: int) -> ConsumerMember:
    """One step towards the target: revoke first, then take free partitions."""
    assigned: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    free: dict[bytes, list[int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*to.target, *member.assigned)):
        target = to.target.get(topic_id, frozenset())
        if topic_id not in to.subscribed_ids:
            target = frozenset()
        current = member.assigned.get(topic_id, {})
        kept = {one: since for one, since in current.items() if one in target}
        lost = {one: since for one, since in current.items() if one not in target}
        own = member.revoking.get(topic_id, {})
        gained = [one for one in sorted(target) if one not in kept]
        # A partition that it must still revoke itself is free for it, because no other member can
        # have it.
        ready = [one for one in gained if one in own or not to.is_taken(topic_id, one)]
        waits = waits or len(ready) < len(gained)
        for partitions, found in ((assigned, kept), (revoking, lost)):
            if found:
                partitions[topic_id] = found
        if ready:
            free[topic_id] = ready
    if revoking and _owns_any(revoking, to.owned):
        return replace(
            member,
            state=ConsumerMemberState.UNREVOKED_PARTITIONS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=assigned,
            revoking=revoking,
        )
    for topic_id, some in free.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(some, to.target_epoch))
    return replace(
        member,
        state=ConsumerMemberState.UNRELEASED_PARTITIONS if waits else ConsumerMemberState.STABLE,
        epoch=to.target_epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=NONE_ASSIGNED,
    )
