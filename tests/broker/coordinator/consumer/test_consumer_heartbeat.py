"""ConsumerGroupHeartbeat: what is refused, static members, assignors, regular expressions."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from kcluster.metadata.records import FeatureLevelRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.features import GROUP_VERSION
from tests.broker.coordinator.consumer.consumer_members import ModernMember, owned_by, settle
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, committed
from tests.broker.coordinator.members import settle as settle_classic
from tests.rig.requests import commit_request, offset_fetch_request

ALL = [0, 1, 2, 3, 4, 5]


def group_of(broker: GroupBroker) -> ConsumerGroup:
    group = broker.coordinator.group("g")
    assert isinstance(group, ConsumerGroup), group
    return group


def refusal(broker: GroupBroker, version: int = 1, **fields: Any) -> tuple[str, str | None]:
    """The error and its message of a heartbeat that would join, were it not for `fields`."""
    join: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": ["orders"],
        "topic_partitions": [],
    }
    answer = broker.call(m.ConsumerGroupHeartbeatRequest(**{**join, **fields}), version)
    return error_of(answer.error_code).name, answer.error_message


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"member_id": ""}, "INVALID_REQUEST", "MemberId is empty"),
        ({"group_id": " "}, "INVALID_REQUEST", "GroupId is empty"),
        ({"instance_id": ""}, "INVALID_REQUEST", "InstanceId is empty"),
        ({"rack_id": ""}, "INVALID_REQUEST", "RackId is empty"),
        (
            {"rebalance_timeout_ms": -1},
            "INVALID_REQUEST",
            "RebalanceTimeoutMs: a member that joins sets it",
        ),
        (
            {"topic_partitions": None},
            "INVALID_REQUEST",
            "TopicPartitions: a member that joins sends an empty list",
        ),
        (
            {"subscribed_topic_names": None},
            "INVALID_REQUEST",
            "SubscribedTopicNames, SubscribedTopicRegex: a member that joins sets one of them",
        ),
        ({"member_epoch": -3}, "INVALID_REQUEST", "MemberEpoch -3: the lowest is -2"),
        ({"member_epoch": -2}, "INVALID_REQUEST", "InstanceId: member epoch -2 needs one"),
        (
            {"server_assignor": "best"},
            "UNSUPPORTED_ASSIGNOR",
            "ServerAssignor best: there are uniform, range",
        ),
        ({"member_epoch": 1}, "GROUP_ID_NOT_FOUND", "there is no consumer group g"),
        ({"member_epoch": -1}, "GROUP_ID_NOT_FOUND", "there is no group g"),
        (
            {"subscribed_topic_regex": "(a"},
            "INVALID_REGULAR_EXPRESSION",
            "SubscribedTopicRegex `(a`: missing closing )",
        ),
    ],
)
def test_heartbeat__what_is_refused(fields: dict[str, Any], error: str, message: str) -> None:
    broker = fresh_broker()
    assert refusal(broker, **fields) == (error, message)
    assert broker.coordinator.group("g") is ErrorCode.GROUP_ID_NOT_FOUND


def test_heartbeat__epochs_that_are_fenced() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a")
    a.join()
    assert refusal(broker, member_id="b", member_epoch=2) == (
        "UNKNOWN_MEMBER_ID",
        "group g has no member b",
    )
    rejoin = "give up everything assigned and join again"
    assert refusal(broker, member_id="a", member_epoch=9) == (
        "FENCED_MEMBER_EPOCH",
        f"member epoch 9: it is 2, before it was 0; {rejoin}",
    )
    assert refusal(broker, member_id="a", member_epoch=1) == (
        "FENCED_MEMBER_EPOCH",
        f"member epoch 1: it is 2, before it was 0; {rejoin}",
    )
    assert a.join() is ErrorCode.NONE, "epoch 0 joins again (KAFKA-19233)"
    assert a.owned == {"orders": ALL}


def test_heartbeat__the_previous_epoch_is_taken_from_a_member_that_missed_the_answer() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()
    b.join()
    settle(a, b)
    b.leave()
    broker.at(10_000)
    before = a.epoch, dict(a.owned)
    a.beat()
    assert a.epoch == before[0] + 1
    a.epoch, a.owned = before
    full: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"]}
    assert a.beat(**full) is ErrorCode.NONE
    assert a.owned == {"orders": ALL}


def test_heartbeat__a_full_group_takes_nobody_new() -> None:
    broker = fresh_broker(group_consumer_max_size=1)
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    assert [a.join(), b.join(), a.join()] == [
        ErrorCode.NONE,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.NONE,
    ]
    assert b.answer.error_message == "the group is full: 1 members (group.consumer.max.size)"


def test_heartbeat__the_target_is_computed_once_per_assignment_interval() -> None:
    broker = fresh_broker()
    broker.at(1_000)
    a, b, c = (ModernMember(broker, name) for name in "abc")
    a.join()
    broker.at(1_400)
    b.join()
    assert (b.epoch, group_of(broker).target_epoch, group_of(broker).epoch) == (2, 2, 3)
    assert group_of(broker).state is ConsumerGroupState.ASSIGNING
    broker.at(1_999)
    c.join()
    assert group_of(broker).target_epoch == 2
    broker.at(2_000)
    c.beat()
    assert group_of(broker).target_epoch == 4
    settle(a, b, c)
    assert owned_by(a, b, c) == [[0, 1], [2, 3], [4, 5]]


def test_heartbeat__is_refused_where_the_protocol_is_off() -> None:
    off = fresh_broker(group_coordinator_rebalance_protocols="classic")
    assert refusal(off) == ("UNSUPPORTED_VERSION", None)
    request = m.ConsumerGroupDescribeRequest(group_ids=["g"])
    assert off.call(request).groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    old = fresh_broker()
    old.publish([FeatureLevelRecord(GROUP_VERSION, 0)])
    assert refusal(old) == ("UNSUPPORTED_VERSION", None)


def test_heartbeat__v0_gets_its_member_id_from_the_broker() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "")
    assert a.join(version=0) is ErrorCode.NONE
    assert len(a.member_id) == 36


# ------------------------------------------------------------------------------------- static


def test_static_member__comes_back_and_has_its_partitions_without_a_rebalance() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a", instance_id="one"), ModernMember(broker, "b")
    a.join()
    b.join()
    settle(a, b)
    epoch = group_of(broker).epoch
    assert a.leave(-2) is ErrorCode.NONE
    back = ModernMember(broker, "a2", instance_id="one")
    assert back.join() is ErrorCode.NONE
    assert (back.owned, group_of(broker).epoch) == ({"orders": [0, 1, 2]}, epoch)
    assert sorted(group_of(broker).members) == ["a2", "b"]


def test_static_member__its_place_is_taken_only_when_it_is_free() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a", instance_id="one")
    a.join()
    usurper = ModernMember(broker, "x", instance_id="one")
    assert usurper.join() is ErrorCode.UNRELEASED_INSTANCE_ID
    usurper.epoch = 2
    assert usurper.beat() is ErrorCode.FENCED_INSTANCE_ID
    stranger = ModernMember(broker, "y", instance_id="two")
    stranger.epoch = 2
    assert stranger.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member__that_stays_away_loses_its_place_with_its_session() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a", instance_id="one"), ModernMember(broker, "b")
    a.join()
    b.join()
    settle(a, b)
    a.leave(-2)
    broker.at(40_000)
    b.beat()
    assert "a" in group_of(broker).members
    broker.at(47_000)
    settle(b)
    assert b.owned == {"orders": ALL}


# ---------------------------------------------------------------------------------- subscription


def test_subscription__new_topics_and_partitions_are_assigned() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a", topics=("orders", "bills"))
    a.join()
    assert a.owned == {"orders": ALL}
    broker.create_topic("bills", 2)
    settle(a)
    assert a.owned == {"orders": ALL, "bills": [0, 1]}
    broker.delete_topic("bills")
    settle(a)
    assert a.owned == {"orders": ALL}
    assert group_of(broker).state is ConsumerGroupState.STABLE


def test_subscription__a_topic_given_up_is_revoked_at_once() -> None:
    broker = fresh_broker()
    broker.create_topic("bills", 2)
    a = ModernMember(broker, "a", topics=("orders", "bills"))
    a.join()
    a.beat(subscribed_topic_names=["bills"])
    assert a.owned == {"bills": [0, 1]}
    settle(a)
    assert group_of(broker).state is ConsumerGroupState.STABLE


def test_subscription__the_assignor_that_most_members_want() -> None:
    broker = fresh_broker()
    broker.create_topic("bills", 3)
    members = [
        ModernMember(broker, name, topics=("orders", "bills"), server_assignor="range")
        for name in "abc"
    ]
    for member in members:
        member.join()
    settle(*members)
    assert [one.owned for one in members] == [
        {"orders": [2 * i, 2 * i + 1], "bills": [i]} for i in range(3)
    ]


def test_regex__its_topics_are_looked_up_in_the_next_turn() -> None:
    broker = fresh_broker()
    broker.create_topic("bills", 2)
    a = ModernMember(broker, "a", topics=None, subscribed_topic_regex="bi.*|ord.*")
    assert a.join() is ErrorCode.NONE
    assert a.owned == {}
    settle(a)
    assert a.owned == {"bills": [0, 1], "orders": ALL}
    assert group_of(broker).regexes["bi.*|ord.*"].topics == {"bills", "orders"}


def test_regex__a_new_topic_is_found_at_the_next_refresh() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a", topics=None, subscribed_topic_regex=".*s")
    a.join()
    settle(a)
    broker.create_topic("bills", 2)
    settle(a)
    assert set(a.owned) == {"orders", "__consumer_offsets"}
    broker.at(12_000)
    a.beat()
    settle(a)
    assert set(a.owned) == {"orders", "bills", "__consumer_offsets"}


def test_regex__is_forgotten_with_its_last_member_and_kept_by_a_failover() -> None:
    first = fresh_broker()
    a = ModernMember(first, "a", topics=None, subscribed_topic_regex="ord.*")
    b = ModernMember(first, "b")
    a.join()
    b.join()
    settle(a, b)
    broker = a.broker = b.broker = restarted(first)
    assert group_of(broker).regexes == group_of(first).regexes
    settle(a, b)
    a.leave()
    assert not group_of(broker).regexes
    settle(b)
    assert b.owned == {"orders": ALL}


# --------------------------------------------------------------------------------------- offsets


def commit(member: ModernMember, offset: int, epoch: int, version: int = 9) -> str:
    request = commit_request("g", offset, generation=epoch, member_id=member.member_id, partition=0)
    answer = member.broker.call(request, version)
    return error_of(answer.topics[0].partitions[0].error_code).name


def test_commit__an_older_epoch_is_enough_for_what_the_member_had_then() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()
    broker.at(1_000)
    b.join()
    settle(a, b)
    assert (a.epoch, b.epoch) == (3, 3)
    assert commit(a, 7, 3) == "NONE"
    assert commit(a, 8, 2) == "NONE", "it has had the partition since epoch 2"
    assert commit(a, 9, 1) == "STALE_MEMBER_EPOCH"
    assert commit(a, 9, 4) == "STALE_MEMBER_EPOCH"
    assert commit(b, 9, 2) == "STALE_MEMBER_EPOCH", "not its partition"
    assert commit(a, 9, 3, version=8) == "UNSUPPORTED_VERSION"
    assert commit(ModernMember(broker, "x"), 9, 3) == "UNKNOWN_MEMBER_ID"
    assert commit(ModernMember(broker, ""), 9, -1) == "UNKNOWN_MEMBER_ID"
    assert committed(broker, "g") == 8
    a.leave()
    b.leave()
    assert commit(ModernMember(broker, ""), 10, -1) == "NONE", "into an empty group"


def test_fetch_of_offsets__a_member_names_its_epoch() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a")
    a.join()

    def fetched(member_id: str | None, epoch: int) -> str:
        request = offset_fetch_request("g")
        (group,) = request.groups
        group.member_id, group.member_epoch = member_id, epoch
        return error_of(broker.call(request, 9).groups[0].error_code).name

    assert [fetched("a", 2), fetched("a", 1), fetched("x", 2), fetched(None, -1)] == [
        "NONE",
        "STALE_MEMBER_EPOCH",
        "UNKNOWN_MEMBER_ID",
        "NONE",
    ]


# --------------------------------------------------------------------------- the group as a whole


def test_group__is_listed_described_and_deleted() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a", rack_id="r1", topics=("orders",))
    a.join()
    (listed,) = broker.call(m.ListGroupsRequest(types_filter=["Consumer"])).groups
    assert (listed.group_state, listed.group_type, listed.protocol_type) == (
        "Stable",
        "consumer",
        "consumer",
    )
    request = m.ConsumerGroupDescribeRequest(group_ids=["g", "other", ""])
    described, missing, nameless = broker.call(request).groups
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == (
        "Stable",
        2,
        2,
    )
    assert described.assignor_name == "uniform"
    (member,) = described.members
    assert (member.member_id, member.rack_id, member.member_type) == ("a", "r1", 1)
    assert member.subscribed_topic_names == ["orders"]
    assert member.assignment == member.target_assignment
    assert member.assignment.topic_partitions[0].partitions == ALL
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert missing.error_message == "there is no group other"
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID

    def delete() -> int:
        return int(broker.call(m.DeleteGroupsRequest(groups_names=["g"])).results[0].error_code)

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    a.leave()
    assert delete() == ErrorCode.NONE
    assert broker.coordinator.group("g") is ErrorCode.GROUP_ID_NOT_FOUND
    assert restarted(broker).coordinator.group("g") is ErrorCode.GROUP_ID_NOT_FOUND


def test_group__takes_the_place_of_an_empty_classic_group_and_keeps_its_offsets() -> None:
    broker = fresh_broker()
    classic = Consumer(broker).join()
    broker.at(3_000)
    settle_classic(classic)
    classic.commit(42)
    classic.leave()
    a = ModernMember(broker, "a")
    assert a.join() is ErrorCode.NONE
    assert committed(broker, "g") == 42
    assert isinstance(restarted(broker).coordinator.group("g"), ConsumerGroup)


def test_group__its_own_configs_are_obeyed_within_the_brokers_limits() -> None:
    broker = fresh_broker()
    broker.set_group_configs(
        "g",
        {
            "consumer.heartbeat.interval.ms": "7000",
            "consumer.session.timeout.ms": "50000",
            "consumer.assignment.interval.ms": "0",
        },
    )
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()
    b.join()
    assert a.answer.heartbeat_interval_ms == 7_000
    assert group_of(broker).target_epoch == 3, "no interval between targets"
    broker.at(49_999)
    assert len(group_of(broker).members) == 2
    broker.at(50_000)
    assert not group_of(broker).members
