"""The assignors of consumer groups: range, round robin, sticky and cooperative sticky.

Owns: assignments, as pure functions of members and partition counts.  Never: knows the encoding
(group_protocol.py) or the metadata.
Kafka: RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor (KIP-54, 429).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Partition

RANGE: Final = "range"
ROUND_ROBIN: Final = "roundrobin"
STICKY: Final = "sticky"
COOPERATIVE_STICKY: Final = "cooperative-sticky"
ASSIGNORS: Final = (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)

NO_GENERATION: Final = -1

Assignment = dict[str, list[Partition]]
"""The partitions of each member, by member id.  Every member has an entry."""


class MemberSubscription(Struct, frozen=True):
    """A member's subscription.  `owned`: the partitions that the member claims to have owned in
    `generation`.  Kafka: ConsumerPartitionAssignor.Subscription, MemberInfo."""

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    owned: tuple[Partition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None


def assign(
    assignor: str, members: Sequence[MemberSubscription], counts: Mapping[str, int]
) -> Assignment:
    """Assign all partitions of the subscribed topics; `counts`: the partition count of each topic.

    DIFFERS: racks of members are ignored (KIP-881).  With a replica in each rack, as here by
    default, Kafka's assignors ignore them, too.
    """
    subscribed = sorted({topic for member in members for topic in member.topics})
    known = {topic: counts[topic] for topic in subscribed if counts.get(topic, 0) > 0}
    if assignor == RANGE:
        return _range(members, known)
    if assignor == ROUND_ROBIN:
        return _round_robin(members, known)
    assigned = _sticky(members, known)
    if assignor == COOPERATIVE_STICKY:
        return _adjust_assignment(assigned, members)
    assert assignor == STICKY, assignor
    return assigned


def _in_order(members: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    """Static members by instance id, then dynamic members by member id.  Kafka: MemberInfo."""
    return sorted(
        members,
        key=lambda x: (
            x.instance_id is None,
            x.member_id if x.instance_id is None else x.instance_id,
        ),
    )


def _range(members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
    assigned: Assignment = {member.member_id: [] for member in members}
    ordered = _in_order(members)
    for topic, count in counts.items():
        subscribers = [member for member in ordered if topic in member.topics]
        each, extra = divmod(count, len(subscribers))
        start = 0
        for rank, member in enumerate(subscribers):
            end = start + each + (rank < extra)
            assigned[member.member_id] += [(topic, index) for index in range(start, end)]
            start = end
    return assigned


def _round_robin(members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
    assigned: Assignment = {member.member_id: [] for member in members}
    ordered = _in_order(members)
    turn = 0
    for topic, count in counts.items():
        for index in range(count):
            while topic not in ordered[turn % len(ordered)].topics:
                turn += 1
            assigned[ordered[turn % len(ordered)].member_id].append((topic, index))
            turn += 1
    return assigned


# ------------------------------------------------------------------------------------------- sticky


def _sticky(members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
    owned, contested = _claims(members, counts)
    everything = [(topic, index) for topic, count in counts.items() for index in range(count)]
    if len({tuple(sorted(member.topics)) for member in members}) == 1:
        return _balanced(owned, contested, everything)
    return _greedy(members, owned, contested, everything)


def _claims(
    members: Sequence[MemberSubscription], counts: Mapping[str, int]
) -> tuple[Assignment, dict[Partition, None]]:
    """(the partitions that each member may keep; the partitions that two members of one generation
    claim, so that neither may keep them)."""
    owned: Assignment = {}
    owners: dict[Partition, MemberSubscription] = {}
    contested: dict[Partition, None] = {}
    for member in members:
        owned[member.member_id] = []
        for partition in member.owned:
            if partition[1] >= counts.get(partition[0], 0) or partition[0] not in member.topics:
                continue
            other = owners.get(partition)
            if other is not None and member.generation < other.generation:
                continue
            if other is not None and partition in owned[other.member_id]:
                owned[other.member_id].remove(partition)
            if other is not None and member.generation == other.generation:
                contested[partition] = None
            else:
                owned[member.member_id].append(partition)
            owners[partition] = member
    return owned, contested


def _balanced(
    owned: Assignment, contested: Mapping[Partition, None], everything: Sequence[Partition]
) -> Assignment:
    """The assignment for members that all subscribe to the same topics: sizes differ by at most
    one. Kafka: ConstrainedAssignmentBuilder."""
    min_quota, max_quota_members = divmod(len(everything), len(owned))
    max_quota = min_quota + (max_quota_members > 0)
    assigned: Assignment = {}
    below_min: list[str] = []
    at_min: list[str] = []
    members_at_max = 0
    for member_id, partitions in owned.items():
        uncontested = sorted(
            (x for x in partitions if x not in contested), key=lambda x: (x[1], x[0])
        )
        if len(uncontested) < min_quota:
            below_min.append(member_id)
        elif len(uncontested) >= max_quota and members_at_max < max_quota_members:
            uncontested = uncontested[:max_quota]
            members_at_max += 1
            if members_at_max == max_quota_members:
                at_min.clear()
        else:
            uncontested = uncontested[:min_quota]
            if members_at_max < max_quota_members:
                at_min.append(member_id)
        assigned[member_id] = uncontested
    assigned_already = {partition: None for share in assigned.values() for partition in share}
    unassigned = [partition for partition in everything if partition not in assigned_already]
    _fill(assigned, deque(sorted(below_min)), deque(sorted(at_min)), unassigned, min_quota)
    return assigned


def _fill(
    assigned: Assignment,
    below_min: deque[str],
    at_min: deque[str],
    unassigned: Sequence[Partition],
    min_quota: int,
) -> None:
    """Assign round robin to the members below the minimum, then one more partition to each member
    that has the minimum."""
    for partition in unassigned:
        member_id = below_min.popleft() if below_min else at_min.popleft()
        assigned[member_id].append(partition)
        if len(assigned[member_id]) < min_quota:
            below_min.append(member_id)
        elif len(assigned[member_id]) == min_quota:
            at_min.append(member_id)


def _greedy(
    members: Sequence[MemberSubscription],
    owned: Assignment,
    contested: Mapping[Partition, None],
    everything: Sequence[Partition],
) -> Assignment:
    """The assignment for members that subscribe to different topics.

    DIFFERS: GeneralAssignmentBuilder searches for the best balance.  Here an unassigned partition
    goes to the subscriber with the fewest; then single partitions move while two subscribers differ
    by two or more."""
    topics = {member.member_id: member.topics for member in members}
    assigned = {
        member_id: [x for x in partitions if x not in contested]
        for member_id, partitions in owned.items()
    }
    assigned_already = {partition: None for share in assigned.values() for partition in share}

    def least_loaded(partition: Partition) -> str:
        subscribers = [x for x in sorted(assigned) if partition[0] in topics[x]]
        return min(subscribers, key=lambda x: len(assigned[x]))

    for partition in everything:
        if partition not in assigned_already:
            assigned[least_loaded(partition)].append(partition)
    moved = True
    while moved:
        moved = False
        for member_id in sorted(assigned, key=lambda x: (-len(assigned[x]), x)):
            for partition in tuple(assigned[member_id]):
                other = least_loaded(partition)
                if len(assigned[member_id]) >= len(assigned[other]) + 2:
                    assigned[member_id].remove(partition)
                    assigned[other].append(partition)
                    moved = True
    return assigned


def _adjust_assignment(assigned: Assignment, members: Sequence[MemberSubscription]) -> Assignment:
    """The assignment without partitions that another member still owns.  The next rebalance assigns
    them, after their owner has revoked them (KIP-429)."""
    owners: dict[Partition, list[str]] = {}
    for member in members:
        for partition in member.owned:
            owners.setdefault(partition, []).append(member.member_id)
    return {
        member_id: [x for x in partitions if owners.get(x, [member_id]) == [member_id]]
        for member_id, partitions in assigned.items()
    }
