"""The uniform and range assignors: every partition once, evenly, few of them moved."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from kcluster.broker.coordinator.modern.assignors.assignor import GroupSpec, MemberSpec
from kcluster.broker.coordinator.modern.assignors.range import assign_ranges
from kcluster.broker.coordinator.modern.assignors.uniform import assign_uniformly
from kcluster.broker.coordinator.modern.topics import Assignment

TOPICS = {b"a": 6, b"b": 3, b"c": 1}


def group(
    subscriptions: Mapping[str, tuple[bytes, ...]],
    assigned: Mapping[str, Assignment] | None = None,
    counts: Mapping[bytes, int] | None = None,
) -> GroupSpec:
    had = assigned or {}
    counts = TOPICS if counts is None else counts
    read = {topic for some in subscriptions.values() for topic in some}
    return GroupSpec(
        {name: MemberSpec(topics, had.get(name, {})) for name, topics in subscriptions.items()},
        {topic: count for topic, count in counts.items() if topic in read},
    )


def sizes(assignment: Mapping[str, Assignment]) -> dict[str, int]:
    return {name: sum(map(len, some.values())) for name, some in assignment.items()}


def partitions(assignment: Mapping[str, Assignment]) -> list[tuple[bytes, int]]:
    """All that are assigned, sorted; one twice if it has two owners."""
    return sorted(
        (topic, one) for some in assignment.values() for topic, part in some.items() for one in part
    )


def moved(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """Partitions that a member has lost."""
    return sum(
        len(part - after.get(name, {}).get(topic, frozenset()))
        for name, some in before.items()
        for topic, part in some.items()
    )


def test_uniform__spreads_all_topics_over_the_members() -> None:
    assignment = assign_uniformly(group(dict.fromkeys("xyz", (b"a", b"b", b"c"))))
    assert sorted(sizes(assignment).values()) == [3, 3, 4]


def test_uniform__a_new_member_takes_no_more_than_its_share() -> None:
    two = assign_uniformly(group(dict.fromkeys("xy", (b"a",))))
    three = assign_uniformly(group(dict.fromkeys("xyz", (b"a",)), two))
    assert sizes(three) == {"x": 2, "y": 2, "z": 2}
    assert moved(two, three) == 2


def test_uniform__what_a_member_had_goes_to_the_others_alone() -> None:
    three = assign_uniformly(group(dict.fromkeys("xyz", (b"a",))))
    two = assign_uniformly(group(dict.fromkeys("xy", (b"a",)), three))
    assert sizes(two) == {"x": 3, "y": 3}
    assert moved({name: three[name] for name in "xy"}, two) == 0


def test_uniform__the_member_with_the_extra_partition_keeps_it() -> None:
    before = {"x": {b"b": frozenset({0})}, "y": {b"b": frozenset({1, 2})}}
    assert assign_uniformly(group(dict.fromkeys("xy", (b"b",)), before)) == before


def test_uniform__members_with_different_topics_are_balanced_too() -> None:
    assignment = assign_uniformly(group({"x": (b"a",), "y": (b"a", b"b"), "z": (b"b",)}))
    assert sizes(assignment) == {"x": 3, "y": 3, "z": 3}


def test_range__gives_each_topic_in_order_so_that_equal_topics_meet() -> None:
    counts = {b"a": 4, b"b": 4, b"c": 3}
    assignment = assign_ranges(group(dict.fromkeys("yx", tuple(counts)), counts=counts))
    assert assignment["x"] == {b"a": {0, 1}, b"b": {0, 1}, b"c": {0, 1}}
    assert assignment["y"] == {b"a": {2, 3}, b"b": {2, 3}, b"c": {2}}


def test_range__static_members_come_first_in_order_of_their_names() -> None:
    spec = GroupSpec(
        {
            "a": MemberSpec((b"b",)),
            "z": MemberSpec((b"b",), instance_id="1"),
            "b": MemberSpec((b"b",), instance_id="2"),
        },
        {b"b": 3},
    )
    assert assign_ranges(spec) == {"z": {b"b": {0}}, "b": {b"b": {1}}, "a": {b"b": {2}}}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("same", [True, False], ids=["same", "different"])
def test_uniform__members_come_and_go(seed: int, same: bool) -> None:
    rng = Random(seed)
    counts = {bytes([97 + i]): rng.randrange(1, 9) for i in range(4)}
    members: dict[str, tuple[bytes, ...]] = {}
    before: dict[str, Assignment] = {}
    for step in range(30):
        if members and rng.random() < 0.4:
            members.pop(rng.choice(list(members)))
        else:
            some = tuple(counts) if same else tuple(rng.sample(sorted(counts), rng.randrange(1, 4)))
            members[f"m{step}"] = tuple(sorted(some))
        if rng.random() < 0.2:
            topic = rng.choice(sorted(counts))
            counts[topic] += 1
        spec = group(members, before, counts)
        after = assign_uniformly(spec)
        wanted = [(t, one) for t, count in spec.partition_counts.items() for one in range(count)]
        assert partitions(after) == sorted(wanted if members else [])
        for name, assignment in after.items():
            assert set(assignment) <= set(members[name])
        if same and members:
            assert max(sizes(after).values()) - min(sizes(after).values()) <= 1
        again = assign_uniformly(group(members, after, counts))
        assert again == after, "nothing moves without a reason"
        before = after
