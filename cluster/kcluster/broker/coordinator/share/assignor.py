"""The simple assignor of share groups: several members may get one partition.

Owns: that decision.  Never: knows a group's records.
Kafka: SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder.

A partition has several members if there are more members than partitions; a member has several
partitions if there are more partitions.  Members keep their partitions if the balance allows it.
If all members subscribe to the same topics, the partitions of all topics are balanced together;
otherwise each topic is balanced by itself.

DIFFERS: Kafka iterates over members and partitions in the order of its hash maps; here members are
in the order in which they joined, and topics in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

from msgspec import Struct

from kcluster.broker.coordinator.modern.topics import Assignment

_Partition = tuple[bytes, int]


class ShareMemberSpec(Struct, frozen=True):
    """A member of a share group, in the form that the assignor needs."""

    topic_ids: tuple[bytes, ...]
    """The existing topics that the member subscribes to, in order of their names."""
    assigned: Assignment
    """The member's part of the last target assignment."""


def assign_simply(
    members: Mapping[str, ShareMemberSpec], assignable: Assignment
) -> dict[str, Assignment]:
    """The new target of each member.  `assignable`: the initialized partitions."""
    if len({one.topic_ids for one in members.values()}) == 1:
        topic_ids = next(iter(members.values())).topic_ids
        return _grouped(_balance(members, _partitions_of(topic_ids, assignable), topic_ids))
    every = dict.fromkeys(topic_id for one in members.values() for topic_id in one.topic_ids)
    found: dict[str, list[_Partition]] = {member_id: [] for member_id in members}
    for topic_id in every:
        subscribed = {id_: one for id_, one in members.items() if topic_id in one.topic_ids}
        partitions = _partitions_of((topic_id,), assignable)
        for member_id, some in _balance(subscribed, partitions, (topic_id,)).items():
            found[member_id] += some
    return _grouped(found)


def _partitions_of(topic_ids: Iterable[bytes], assignable: Assignment) -> list[_Partition]:
    return [
        (topic_id, partition)
        for topic_id in topic_ids
        for partition in sorted(assignable.get(topic_id, ()))
    ]


def _balance(
    members: Mapping[str, ShareMemberSpec],
    partitions: list[_Partition],
    topic_ids: tuple[bytes, ...],
) -> dict[str, list[_Partition]]:
    """Balance these partitions among these members, which all subscribe to them."""
    sharing = ceil(len(members) / len(partitions)) if partitions else 0
    wanted = _wanted_counts(len(members), sharing * len(partitions))
    of_member = {
        member_id: _partitions_of(topic_ids, one.assigned) for member_id, one in members.items()
    }
    limits = dict(zip(members, wanted, strict=True))
    for member_id, some in of_member.items():
        del some[: max(0, len(some) - limits[member_id])]
    holders: dict[_Partition, list[str]] = {}
    for member_id, some in of_member.items():
        for partition in some:
            holders.setdefault(partition, []).append(member_id)
    for partition, their in holders.items():
        while len(their) > sharing:
            of_member[their.pop(0)].remove(partition)
    for partition in partitions:
        holders.setdefault(partition, [])
    _fill(of_member, limits, holders, sharing)
    return of_member


def _wanted_counts(members: int, places: int) -> list[int]:
    """The number of partitions that each member takes."""
    each = places / members
    return [ceil(each * (index + 1)) - ceil(each * index) for index in range(members)]


def _fill(
    of_member: dict[str, list[_Partition]],
    limits: Mapping[str, int],
    holders: Mapping[_Partition, list[str]],
    sharing: int,
) -> None:
    """Give partitions without enough holders to members without enough partitions, in turn."""
    lacking = [member_id for member_id, some in of_member.items() if len(some) < limits[member_id]]
    turn = 0
    for partition, their in holders.items():
        passed = 0
        while lacking and len(their) < sharing and passed < len(lacking):
            turn %= len(lacking)
            member_id = lacking[turn]
            if member_id in their:
                # The member has this partition already; other partitions may be left for the
                # member.
                turn, passed = turn + 1, passed + 1
                continue
            their.append(member_id)
            of_member[member_id].append(partition)
            passed = 0
            if len(of_member[member_id]) >= limits[member_id]:
                del lacking[turn]
            else:
                turn += 1


def _grouped(found: Mapping[str, list[_Partition]]) -> dict[str, Assignment]:
    assignments: dict[str, Assignment] = {}
    for member_id, some in found.items():
        by_topic: dict[bytes, set[int]] = {}
        for topic_id, partition in some:
            by_topic.setdefault(topic_id, set()).add(partition)
        assignments[member_id] = {
            topic_id: frozenset(partitions) for topic_id, partitions in by_topic.items()
        }
    return assignments
