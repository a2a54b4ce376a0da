"""Assignments as Kafka's assignors make them, and their encoding."""

from __future__ import annotations

import pytest

from kcluster.clients.consumer.assignors import (
    ASSIGNORS,
    COOPERATIVE_STICKY,
    RANGE,
    ROUND_ROBIN,
    STICKY,
    Assignment,
    MemberSubscription,
    assign,
)
from kcluster.clients.consumer.group_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kcluster.clients.ledger import Partition


def of(topic: str, *numbers: int) -> list[Partition]:
    return [(topic, number) for number in numbers]


def sizes(assigned: Assignment) -> list[int]:
    return sorted(len(partitions) for partitions in assigned.values())


def test_range__each_topic_separately_and_the_first_members_get_one_more() -> None:
    members = [MemberSubscription("b", ("t", "u")), MemberSubscription("a", ("t", "u"))]
    assert assign(RANGE, members, {"t": 3, "u": 3}) == {
        "a": of("t", 0, 1) + of("u", 0, 1),
        "b": of("t", 2) + of("u", 2),
    }


def test_range__static_members_come_first_by_their_instance_ids() -> None:
    members = [
        MemberSubscription("a", ("t",)),
        MemberSubscription("z", ("t",), "i2"),
        MemberSubscription("y", ("t",), "i1"),
    ]
    assert assign(RANGE, members, {"t": 3}) == {"y": of("t", 0), "z": of("t", 1), "a": of("t", 2)}


def test_round_robin__takes_turns_over_all_topics() -> None:
    members = [
        MemberSubscription("a", ("t", "u")),
        MemberSubscription("b", ("u",)),
        MemberSubscription("c", ("t", "u")),
    ]
    assert assign(ROUND_ROBIN, members, {"t": 2, "u": 3}) == {
        "a": of("t", 0) + of("u", 0),
        "b": of("u", 1),
        "c": of("t", 1) + of("u", 2),
    }


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_assignors__every_partition_has_one_reader_that_subscribed(assignor: str) -> None:
    members = [
        MemberSubscription("a", ("t", "u")),
        MemberSubscription("b", ("u",)),
        MemberSubscription("c", ("t", "v")),
    ]
    counts = {"t": 4, "u": 3, "other": 2}
    assigned = assign(assignor, members, counts)
    assigned_keys = sorted(key for partitions in assigned.values() for key in partitions)
    assert assigned_keys == of("t", 0, 1, 2, 3) + of("u", 0, 1, 2)
    for member in members:
        assert all(topic in member.topics for topic, _ in assigned[member.member_id])


def test_sticky__members_keep_their_partitions_and_sizes_differ_by_at_most_one() -> None:
    had = {"a": of("t", 0, 1, 2), "b": of("t", 3, 4, 5)}
    members = [
        MemberSubscription(name, ("t",), owned=tuple(partitions), generation=4)
        for name, partitions in had.items()
    ]
    assert assign(STICKY, members, {"t": 6}) == had
    more = assign(STICKY, [*members, MemberSubscription("c", ("t",))], {"t": 6})
    assert sizes(more) == [2, 2, 2]
    assert set(more["a"]) < set(had["a"])
    assert set(more["b"]) < set(had["b"])
    fewer = assign(STICKY, members[:1], {"t": 6})
    assert set(had["a"]) < set(fewer["a"])
    assert sizes(fewer) == [6]


def test_sticky__of_two_claims_the_newer_generation_wins_and_a_tie_voids_both() -> None:
    old = MemberSubscription("a", ("t",), owned=tuple(of("t", 0, 1)), generation=3)
    new = MemberSubscription("b", ("t",), owned=tuple(of("t", 0, 1)), generation=4)
    assert set(assign(STICKY, [old, new, MemberSubscription("c", ("t",))], {"t": 6})["b"]) >= {
        ("t", 0)
    }
    tie = [
        MemberSubscription("a", ("t",), owned=tuple(of("t", 0, 1)), generation=4),
        MemberSubscription("b", ("t",), owned=tuple(of("t", 1, 2)), generation=4),
    ]
    assigned = assign(STICKY, tie, {"t": 4})
    assert ("t", 0) in assigned["a"]
    assert ("t", 2) in assigned["b"]
    assert sizes(assigned) == [2, 2]


def test_cooperative_sticky__a_partition_moves_only_after_it_is_revoked() -> None:
    member = MemberSubscription("a", ("t",), owned=tuple(of("t", 0, 1, 2, 3)), generation=7)
    joined = MemberSubscription("b", ("t",))
    first = assign(COOPERATIVE_STICKY, [member, joined], {"t": 4})
    assert first == {"a": of("t", 0, 1), "b": []}
    kept = MemberSubscription("a", ("t",), owned=tuple(first["a"]), generation=8)
    second = assign(COOPERATIVE_STICKY, [kept, joined], {"t": 4})
    assert second == {"a": of("t", 0, 1), "b": of("t", 2, 3)}


# ---------------------------------------------------------------------------------- their bytes


def test_subscription__carries_the_owned_partitions() -> None:
    data = encode_subscription(
        COOPERATIVE_STICKY, ("u", "t"), of("t", 1, 2), of("t", 9), 5, 6, "rack-a"
    )
    assert data[:2] == b"\x00\x03"
    assert decode_subscription(COOPERATIVE_STICKY, "m", "i", data) == MemberSubscription(
        "m", ("t", "u"), "i", tuple(of("t", 1, 2)), 6, "rack-a"
    )


def test_subscription__of_sticky_carries_the_last_assignment_in_its_user_data() -> None:
    data = encode_subscription(STICKY, ("t",), (), of("t", 1) + of("u", 0, 3), 6, 7, None)
    member = decode_subscription(STICKY, "m", None, data)
    assert member is not None
    assert member.owned == tuple(of("t", 1) + of("u", 0, 3))
    assert member.generation == 6
    first = decode_subscription(
        STICKY, "m", None, encode_subscription(STICKY, ("t",), (), (), -1, -1, None)
    )
    assert first == MemberSubscription("m", ("t",))


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\x00\x00", b"\x00\x01\x00\x00\x00\x05"])
def test_subscription__invalid_bytes_decode_to_none(data: bytes) -> None:
    assert decode_subscription(RANGE, "m", None, data) is None
    assert decode_assignment(data) is None


def test_assignment__round_trip() -> None:
    partitions = of("t", 0, 2) + of("u", 1)
    assert decode_assignment(encode_assignment(partitions)) == partitions
    assert decode_assignment(encode_assignment([])) == []
