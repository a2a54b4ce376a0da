"""The requests that evict members, make groups rebalance, reset offsets and delete groups, at a
broker's coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.events.clients import OffsetSpec, PartitionOffset
from kcluster.operations.group_calls import (
    Calls,
    GroupCallRefused,
    GroupMember,
    delete,
    evict,
    rebalance,
    reset,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator import members
from tests.broker.coordinator.consumer.consumer_members import ModernMember
from tests.broker.coordinator.consumer.consumer_members import settle as settle_modern
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker
from tests.broker.coordinator.members import Consumer
from tests.broker.coordinator.streams.declared import declared, part, topic
from tests.broker.coordinator.streams.streams_members import StreamsThread, streams_broker


def run(broker: Any, calls: Calls) -> list[str]:
    """Send a coordinator all calls; the names of the requests."""
    sent: list[str] = []
    answer: Any = None
    while True:
        try:
            call = calls.send(answer)
        except StopIteration:
            return sent
        sent.append(type(call.request).__name__.removesuffix("Request"))
        answer = (
            broker.call(call.request) if call.is_awaited else broker.post(call.request) and None
        )


def evicted(broker: Any, name: str, group: str = "g") -> list[str]:
    """The ids of the members that had to leave."""
    chosen: list[GroupMember] = []
    run(broker, evict(group, name, chosen.extend))
    return [member.member_id for member in chosen]


def classic(*names: str, **more: Any) -> tuple[GroupBroker, list[Consumer]]:
    """A broker with a stable classic group."""
    broker = fresh_broker()
    joined = [Consumer(broker, name=name, **more).join() for name in names]
    broker.at(6_000)
    members.settle(*joined)
    return broker, joined


def test_evict__a_classic_member_has_to_join_again() -> None:
    broker, (a, b) = classic("a", "b")
    assert evicted(broker, "a") == [a.member_id]
    assert a.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert b.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert evicted(broker, b.member_id) == [b.member_id]
    with pytest.raises(GroupCallRefused, match="group g has no members"):
        evicted(broker, "all")


def test_evict__all_members_and_a_static_one() -> None:
    broker, (a, b) = classic("a", "b")
    assert sorted(evicted(broker, "all")) == sorted([a.member_id, b.member_id])
    broker, (static,) = classic("a", instance_id="one")
    assert evicted(broker, "one") == [static.member_id]
    assert static.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_evict__an_unknown_name_is_refused() -> None:
    broker, _ = classic("shop")
    with pytest.raises(GroupCallRefused, match=r"shap in group g: .*did you mean shop"):
        evicted(broker, "shap")
    with pytest.raises(GroupCallRefused, match="there is no group other"):
        evicted(broker, "all", "other")


def test_rebalance__all_classic_members_join_again_and_get_a_new_generation() -> None:
    broker, (a, b) = classic("a", "b")
    generation = a.generation
    sent = run(broker, rebalance("g", "p"))
    assert sent == [
        "ListGroups", "DescribeGroups", "JoinGroup", "JoinGroup", "ListGroups", "DescribeGroups",
        "LeaveGroup",
    ]  # fmt: skip
    for one in (a, b):
        assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    with pytest.raises(GroupCallRefused, match="is in a rebalance: PreparingRebalance"):
        run(broker, rebalance("g", "p"))
    members.settle(a.join(), b.join())
    assert a.generation == b.generation == generation + 1
    (group,) = broker.call(m.DescribeGroupsRequest(groups=["g"])).groups
    assert len(group.members) == 2


def test_rebalance__a_consumer_group_has_a_new_epoch_and_its_members() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    for one in (a, b):
        assert one.join() is ErrorCode.NONE
    settle_modern(a, b)
    epoch, owned = a.epoch, a.owned
    run(broker, rebalance("g", "p"))
    settle_modern(a, b)
    assert a.epoch == b.epoch > epoch
    assert a.owned == owned
    assert evicted(broker, "a") == ["a"]
    assert a.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert b.beat() is ErrorCode.NONE


def test_rebalance__a_streams_group_with_its_topology() -> None:
    broker = streams_broker()
    topology = declared(part("0", ["lines"], changelogs=[topic("g-counts")]))
    broker.create_topic("g-counts", 3)
    thread = StreamsThread(broker, "a", topology)
    assert thread.join() is ErrorCode.NONE
    epoch = thread.epoch
    run(broker, rebalance("g", "p"))
    broker.at(broker.now_ms + 5_000)
    assert thread.beat() is ErrorCode.NONE
    assert thread.epoch > epoch
    assert evicted(broker, "all") == ["a"]
    assert thread.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_delete__only_what_was_deleted_is_noted() -> None:
    broker, (a,) = classic("a")
    deleted: list[str] = []
    with pytest.raises(GroupCallRefused, match="NON_EMPTY_GROUP: The group still has members"):
        run(broker, delete("g", lambda: deleted.append("too early")))
    assert evicted(broker, "all") == [a.member_id]
    sent = run(broker, delete("g", lambda: deleted.append("g")))
    assert sent == ["ListGroups", "DescribeGroups", "DeleteGroups"]
    assert deleted == ["g"]
    with pytest.raises(GroupCallRefused, match="there is no group g"):
        run(broker, delete("g", deleted.clear))


def test_reset__to_the_ends_of_the_log_and_to_an_offset_within_it() -> None:
    broker, _ = classic("a")
    broker.create_topic("parcels", 2)
    evicted(broker, "all")

    def reset_to(to: OffsetSpec | int, partition: int | None = None) -> list[tuple[int, int]]:
        offsets: list[PartitionOffset] = []
        run(broker, reset("g", "parcels", partition, to, offsets.extend))
        return [(one.partition, one.offset) for one in offsets]

    assert reset_to(OffsetSpec.EARLIEST) == [(0, 0), (1, 0)]
    assert reset_to(5, partition=1) == [(1, 0)]
    with pytest.raises(GroupCallRefused, match="there is no partition 2 of parcels"):
        reset_to(OffsetSpec.LATEST, partition=2)
    with pytest.raises(GroupCallRefused, match="UNKNOWN_TOPIC_OR_PARTITION: topic letters"):
        run(broker, reset("g", "letters", None, OffsetSpec.LATEST, lambda _: None))
