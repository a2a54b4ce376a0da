"""Who of a group reads what: range, round robin, sticky and cooperative sticky.

Owns: assignments, as pure functions of members and partitions.  Never: knows how members tell each
other (group_protocol.py), asks how many partitions there are.
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
"""By member id; every member is in it."""


class Member(Struct, frozen=True):
    """A member as the leader sees it.  `owned`: what it says it had in `generation`."""

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    owned: tuple[Partition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None


def assign(assignor: str, members: Sequence[Member], counts: Mapping[str, int]) -> Assignment:
    """Share out all partitions of the subscribed topics; `counts`: partitions of each topic.

    DIFFERS: racks of members are not looked at (KIP-881): with a replica in each rack, as here by
    default, Kafka's assignors do not either.
    """
    wanted = sorted({topic for member in members for topic in member.topics})
    known = {topic: counts[topic] for topic in wanted if counts.get(topic, 0) > 0}
    if assignor == RANGE:
        return _range(members, known)
    if assignor == ROUND_ROBIN:
        return _round_robin(members, known)
    assigned = _sticky(members, known)
    if assignor == COOPERATIVE_STICKY:
        return _without_what_is_to_be_revoked(assigned, members)
    assert assignor == STICKY, assignor
    return assigned


def _in_order(members: Iterable[Member]) -> list[Member]:
    """Static members by instance id, before the others by member id.  Kafka: MemberInfo."""
    return sorted(
        members,
        key=lambda x: (
            x.instance_id is None,
            x.member_id if x.instance_id is None else x.instance_id,
        ),
    )


def _range(members: Sequence[Member], counts: Mapping[str, int]) -> Assignment:
    assigned: Assignment = {member.member_id: [] for member in members}
    ordered = _in_order(members)
    for topic, count in counts.items():
        readers = [member for member in ordered if topic in member.topics]
        each, extra = divmod(count, len(readers))
        start = 0
        for at, member in enumerate(readers):
            end = start + each + (at < extra)
            assigned[member.member_id] += [(topic, index) for index in range(start, end)]
            start = end
    return assigned


def _round_robin(members: Sequence[Member], counts: Mapping[str, int]) -> Assignment:
    assigned: Assignment = {member.member_id: [] for member in members}
    ordered = _in_order(members)
    at = 0
    for topic, count in counts.items():
        for index in range(count):
            while topic not in ordered[at % len(ordered)].topics:
                at += 1
            assigned[ordered[at % len(ordered)].member_id].append((topic, index))
            at += 1
    return assigned


# ---------------------------------------------------------------------------------- sticky


def _sticky(members: Sequence[Member], counts: Mapping[str, int]) -> Assignment:
    owned, contested = _claims(members, counts)
    everything = [(topic, index) for topic, count in counts.items() for index in range(count)]
    if len({tuple(sorted(member.topics)) for member in members}) == 1:
        return _balanced(owned, contested, everything)
    return _greedy(members, owned, contested, everything)


def _claims(
    members: Sequence[Member], counts: Mapping[str, int]
) -> tuple[Assignment, dict[Partition, None]]:
    """What each member may keep, and what two of one generation claim, so that neither may."""
    owned: Assignment = {}
    owners: dict[Partition, Member] = {}
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
    """All members read the same topics: nobody gets more than one above the least.
    Kafka: ConstrainedAssignmentBuilder."""
    least, over = divmod(len(everything), len(owned))
    most = least + (over > 0)
    assigned: Assignment = {}
    under: list[str] = []
    exact: list[str] = []
    full = 0
    for name, partitions in owned.items():
        keep = sorted((x for x in partitions if x not in contested), key=lambda x: (x[1], x[0]))
        if len(keep) < least:
            under.append(name)
        elif len(keep) >= most and full < over:
            keep = keep[:most]
            full += 1
            if full == over:
                exact.clear()
        else:
            keep = keep[:least]
            if full < over:
                exact.append(name)
        assigned[name] = keep
    taken = {partition: None for keep in assigned.values() for partition in keep}
    left = [partition for partition in everything if partition not in taken]
    _fill(assigned, deque(sorted(under)), deque(sorted(exact)), left, least)
    return assigned


def _fill(
    assigned: Assignment,
    under: deque[str],
    exact: deque[str],
    left: Sequence[Partition],
    least: int,
) -> None:
    """Round robin to those that have too little; then one each to those that have just enough."""
    for partition in left:
        name = under.popleft() if under else exact.popleft()
        assigned[name].append(partition)
        if len(assigned[name]) < least:
            under.append(name)
        elif len(assigned[name]) == least:
            exact.append(name)


def _greedy(
    members: Sequence[Member],
    owned: Assignment,
    contested: Mapping[Partition, None],
    everything: Sequence[Partition],
) -> Assignment:
    """Members read different topics.

    DIFFERS: GeneralAssignmentBuilder searches for the best balance; here what is nobody's goes to
    the member that has least, then single partitions move while that narrows a gap of two."""
    topics = {member.member_id: member.topics for member in members}
    assigned = {name: [x for x in keep if x not in contested] for name, keep in owned.items()}
    taken = {partition: None for keep in assigned.values() for partition in keep}

    def least_of(partition: Partition) -> str:
        readers = [name for name in sorted(assigned) if partition[0] in topics[name]]
        return min(readers, key=lambda name: len(assigned[name]))

    for partition in everything:
        if partition not in taken:
            assigned[least_of(partition)].append(partition)
    moved = True
    while moved:
        moved = False
        for name in sorted(assigned, key=lambda x: (-len(assigned[x]), x)):
            for partition in tuple(assigned[name]):
                other = least_of(partition)
                if len(assigned[name]) >= len(assigned[other]) + 2:
                    assigned[name].remove(partition)
                    assigned[other].append(partition)
                    moved = True
    return assigned


def _without_what_is_to_be_revoked(assigned: Assignment, members: Sequence[Member]) -> Assignment:
    """What another member still has is given to nobody until that one has let go (KIP-429)."""
    owners: dict[Partition, list[str]] = {}
    for member in members:
        for partition in member.owned:
            owners.setdefault(partition, []).append(member.member_id)
    return {
        name: [partition for partition in given if owners.get(partition, [name]) == [name]]
        for name, given in assigned.items()
    }
