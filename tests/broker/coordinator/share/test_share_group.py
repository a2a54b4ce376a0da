"""Share groups (KIP-932): members, share partitions and their states, offsets, deletion."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.modern.topics import Assignment
from kcluster.broker.coordinator.share.assignor import ShareMemberSpec, assign_simply
from kcluster.events.clients import AssignedPartitions, GroupAssigned, GroupEvent
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from tests.broker.coordinator.share.share_members import ShareGroupMember, ShareGroupRig

# ------------------------------------------------------------------------------------ assignor

A, B = b"a" * 16, b"b" * 16


def assign(
    members: dict[str, tuple[bytes, ...]],
    partitions: dict[bytes, int],
    before: dict[str, Assignment] | None = None,
) -> dict[str, list[str]]:
    """The partitions of each member, as `a0`."""
    specs = {
        name: ShareMemberSpec(topics, (before or {}).get(name, {}))
        for name, topics in members.items()
    }
    assignable = {topic_id: frozenset(range(count)) for topic_id, count in partitions.items()}
    return {
        name: [f"{topic_id[:1].decode()}{one}" for topic_id in got for one in sorted(got[topic_id])]
        for name, got in assign_simply(specs, assignable).items()
    }


def test_assignor__more_partitions_than_members() -> None:
    found = assign({"m1": (A,), "m2": (A,)}, {A: 4})
    assert found == {"m1": ["a0", "a2"], "m2": ["a1", "a3"]}


def test_assignor__more_members_than_partitions_share_them() -> None:
    members: dict[str, tuple[bytes, ...]] = {f"m{one}": (A,) for one in range(4)}
    found = assign(members, {A: 2})
    assert sorted(found.values()) == [["a0"], ["a0"], ["a1"], ["a1"]]


def test_assignor__members_that_subscribe_to_the_same_balance_all_topics_as_one() -> None:
    found = assign({"m1": (A, B), "m2": (A, B)}, {A: 1, B: 1})
    assert found == {"m1": ["a0"], "m2": ["b0"]}


def test_assignor__each_topic_by_itself_if_subscriptions_differ() -> None:
    found = assign({"m1": (A, B), "m2": (B,)}, {A: 2, B: 2})
    assert found == {"m1": ["a0", "a1", "b0"], "m2": ["b1"]}


def test_assignor__what_members_have_stays_with_them() -> None:
    before: dict[str, Assignment] = {"m1": {A: frozenset({0, 1, 2, 3})}}
    found = assign({"m1": (A,), "m2": (A,)}, {A: 4}, before)
    assert found == {"m1": ["a2", "a3"], "m2": ["a0", "a1"]}


def test_assignor__nothing_is_initialized_yet() -> None:
    assert assign({"m1": (A,), "m2": (A,)}, {}) == {"m1": [], "m2": []}


@pytest.mark.parametrize("members", range(1, 9))
@pytest.mark.parametrize("partitions", range(1, 9))
def test_assignor__everything_is_assigned_and_nobody_is_left_out(
    members: int, partitions: int
) -> None:
    found = assign({f"m{one}": (A,) for one in range(members)}, {A: partitions})
    sizes = [len(one) for one in found.values()]
    assert {one for some in found.values() for one in some} == {f"a{n}" for n in range(partitions)}
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


# ---------------------------------------------------------------------------------- membership


def settled(**more: Any) -> tuple[ShareGroupRig, ShareGroupMember]:
    """A group with one member that has its partition."""
    rig = ShareGroupRig(**more)
    member = rig.member("a")
    assert member.join() == "NONE"
    rig.settle(member)
    assert member.owned == {"orders": [0]}
    return rig, member


def test_join__partitions_come_when_their_state_is_initialized() -> None:
    rig = ShareGroupRig()
    a = rig.member("a")
    assert a.join() == "NONE"
    assert (a.epoch, a.owned) == (2, {})
    assert rig.stored is not None  # by now the persister has been asked
    rig.run_for(1_000)
    assert a.beat() == "NONE"
    assert (a.epoch, a.owned) == (3, {"orders": [0]})
    assert rig.stored.start_offset == -1
    assert rig.stored.state_epoch == 2


def test_join__two_members_share_one_partition() -> None:
    rig, a = settled()
    b = rig.member("b")
    b.join()
    rig.settle(a, b)
    assert a.owned == b.owned == {"orders": [0]}
    assert a.epoch == b.epoch


def test_join__a_member_that_joins_again_keeps_its_place() -> None:
    _, a = settled()
    epoch = a.epoch
    assert a.join() == "NONE"
    assert (a.epoch, a.owned) == (epoch, {"orders": [0]})


def test_heartbeat__says_nothing_about_an_assignment_that_stays() -> None:
    _, a = settled()
    a.beat()
    assert a.answer.assignment is None
    assert a.answer.heartbeat_interval_ms == 5_000


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"member_id": ""}, "INVALID_REQUEST", None),
        ({"member_id": "x" * 37}, "INVALID_REQUEST", None),
        ({"member_id": " "}, "INVALID_REQUEST", "MemberId is empty"),
        ({"rack_id": ""}, "INVALID_REQUEST", "RackId is empty"),
        (
            {"member_epoch": 0, "subscribed_topic_names": []},
            "INVALID_REQUEST",
            "SubscribedTopicNames: a member that joins names at least one",
        ),
        ({"member_epoch": -2}, "INVALID_REQUEST", "MemberEpoch -2: the lowest is -1"),
        ({"member_id": "z"}, "UNKNOWN_MEMBER_ID", "group g has no member z"),
        ({"member_id": "z", "member_epoch": -1}, "UNKNOWN_MEMBER_ID", "group g has no member z"),
        ({"member_epoch": 9}, "FENCED_MEMBER_EPOCH", "member epoch 9: it is 3, before it was 2"),
        ({"member_epoch": 1}, "FENCED_MEMBER_EPOCH", "member epoch 1: it is 3, before it was 2"),
        ({"member_epoch": 2}, "NONE", None),  # the answer with epoch 3 may have been lost
    ],
)
def test_heartbeat__refusals(fields: dict[str, Any], error: str, message: str | None) -> None:
    _, a = settled()
    assert a.epoch == 3
    assert a.beat(**fields) == error
    assert message is None or message in a.answer.error_message


def test_heartbeat__of_a_group_that_is_not_there() -> None:
    rig = ShareGroupRig()
    a = rig.member("a")
    a.epoch = 1
    assert a.beat() == "GROUP_ID_NOT_FOUND"
    assert a.answer.error_message == "there is no share group g"
    assert a.leave() == "GROUP_ID_NOT_FOUND"
    assert a.answer.error_message == "there is no group g"


def test_heartbeat__the_group_is_full() -> None:
    rig = ShareGroupRig(of_brokers={"group.share.max.size": 1})
    rig.member("a").join()
    assert rig.member("b").join() == "GROUP_MAX_SIZE_REACHED"
    assert rig.member("a").join() == "NONE"


def test_leave__the_others_take_over() -> None:
    rig, a = settled()
    b = rig.member("b")
    b.join()
    rig.settle(a, b)
    assert a.leave() == "NONE"
    assert a.answer.member_epoch == -1
    rig.settle(b)
    assert b.owned == {"orders": [0]}
    assert [one.member_id for one in rig.described().members] == ["b"]


def test_session__a_silent_member_is_removed() -> None:
    rig, _ = settled()
    rig.run_for(44_000)
    assert rig.described().group_state == "Stable"
    rig.run_for(2_000)
    assert rig.described().group_state == "Empty"


def test_session__of_the_groups_own_config() -> None:
    configs = m.IncrementalAlterConfigsRequest
    one = configs.AlterableConfig("share.session.timeout.ms", 0, "50000")
    resource = configs.AlterConfigsResource(32, "g", [one])
    rig, _ = settled()
    rig.ask_and_wait(1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, configs([resource]))
    rig.run_for(100)
    rig.group.members["a"]
    rig.member("b").join()
    rig.run_for(49_000)
    assert [one.member_id for one in rig.described().members] == ["b"]
    rig.run_for(2_000)
    assert rig.described().members == []


def test_feature__share_version_is_off() -> None:
    rig = ShareGroupRig(features={"share.version": 0})
    assert rig.member("a").join() == "UNSUPPORTED_VERSION"
    assert rig.described().error_code == 35
    assert rig.offsets() == rig.alter(1) == rig.delete_offsets() == "UNSUPPORTED_VERSION"


def test_events__say_who_came_who_went_and_who_has_what() -> None:
    rig, a = settled()
    b = rig.member("b")
    b.join()
    rig.settle(a, b)
    b.leave()
    rig.run_for(50_000)
    found = [
        (note.event.kind, getattr(note.event, "member", ""))
        for note in rig.notes
        if isinstance(note.event, GroupEvent)
    ]
    assert [one for one in found if one[1]] == [
        ("group_member_joined", "a"),
        ("group_member_joined", "b"),
        ("group_member_left", "b"),
        ("group_member_expired", "a"),
    ]
    shared = AssignedPartitions("a", "orders", (0,)), AssignedPartitions("b", "orders", (0,))
    assert shared in [one.assignments for one in rig.events_of(GroupAssigned)]


# -------------------------------------------------------------------------------------- topics


def test_topic__created_later_is_read_from_then_on() -> None:
    rig = ShareGroupRig()
    a = rig.member("a", "orders", "late")
    a.join()
    rig.settle(a)
    assert a.owned == {"orders": [0]}
    rig.assign_topic("late", [[1, 2, 3], [2, 3, 1]])
    rig.settle(a)
    assert a.owned == {"orders": [0], "late": [0, 1]}


def test_topic__more_partitions() -> None:
    rig, a = settled()
    topic = m.CreatePartitionsRequest.CreatePartitionsTopic("orders", 3, None)
    rig.ask_and_wait(1, ApiKey.CREATE_PARTITIONS, 3, m.CreatePartitionsRequest([topic], 5_000))
    rig.settle(a)
    assert a.owned == {"orders": [0, 1, 2]}


def test_topic__deleted_takes_its_states_along() -> None:
    rig, a = settled()
    partition = rig.share_partition
    rig.delete_orders(via=1)
    rig.run_for(1_000)
    assert rig.shard.states.state(partition) is None
    assert rig.group.states is not None
    assert rig.group.states.topic_ids == frozenset()
    rig.settle(a)
    assert a.owned == {}


def test_topic__deleted_while_the_group_had_no_coordinator() -> None:
    rig, a = settled()
    rig.kill(3)
    rig.kill(1)
    rig.run_for(20_000)
    rig.delete_orders(via=2)
    rig.run_for(1_000)
    rig.start(3)
    rig.start(1)
    rig.wait(lambda: rig.group_coordinator > 0, "coordinator")
    rig.run_for(2_000)
    assert a.beat() == "NONE"
    rig.settle(a)
    epoch = a.epoch
    rig.settle(a)
    assert a.epoch == epoch
    assert a.owned == {}


def test_initialization__is_tried_again() -> None:
    rig = ShareGroupRig(of_brokers={"request.timeout.ms": 300})
    rig.cut(3, 2)  # the group's coordinator does not reach the share coordinator
    a = rig.member("a")
    a.join()
    rig.run_for(5_000)
    assert rig.group.states is not None
    assert not rig.group.states.initialized
    rig.heal(3, 2)
    for _ in range(8):
        rig.run_for(5_000)
        a.beat()
    assert a.owned == {"orders": [0]}


# ----------------------------------------------------------------------------------- failovers


def test_failover__the_next_coordinator_knows_the_group() -> None:
    rig, a = settled()
    b = rig.member("b")
    b.join()
    rig.settle(a, b)
    before = rig.described()
    rig.kill(3)
    rig.wait(lambda: rig.partition(GROUP_METADATA_TOPIC).leader not in (3, None), "new coordinator")
    assert rig.described() == before
    assert a.beat() == "NONE"
    assert rig.group.states is not None
    assert rig.group.states.initialized


def test_failover__while_states_are_being_initialized() -> None:
    rig = ShareGroupRig()
    rig.cut(3, 2)
    a = rig.member("a")
    a.join()
    rig.kill(3)
    rig.wait(lambda: rig.partition(GROUP_METADATA_TOPIC).leader not in (3, None), "new coordinator")
    for _ in range(8):
        rig.run_for(5_000)
        assert a.beat() == "NONE"
    assert a.owned == {"orders": [0]}  # it has been tried again after 30 s


def test_persister__none_keeps_no_state() -> None:
    rig = ShareGroupRig(of_brokers={"group.share.persister.class.name": ""})
    a = rig.member("a")
    a.join()
    rig.settle(a)
    assert a.owned == {"orders": [0]}
    assert rig.stored is None
    assert rig.offsets() == {("orders", 0): (-1, -1)}


# ------------------------------------------------------------------------------------- offsets


def test_offsets__described_with_their_lag() -> None:
    rig, _ = settled()
    rig.produce(b"1", b"2", b"3")
    assert rig.offsets() == {("orders", 0): (-1, -1)}
    rig.write((0, 0, 2, 1), (2, 2, 2, 1), state_epoch=rig.stored.state_epoch, start=0, complete=2)
    assert rig.offsets() == {("orders", 0): (0, 1)}
    assert rig.offsets("orders", via=1) == {("orders", 0): (0, 1)}  # any broker knows
    assert rig.offsets("missing") == {("missing", 0): (-1, -1)}


def test_offsets__are_altered_while_the_group_is_empty() -> None:
    rig, a = settled()
    rig.produce(b"1", b"2", b"3")
    assert rig.alter(1) == "NON_EMPTY_GROUP"
    a.leave()
    assert rig.alter(1) == "NONE"
    assert rig.offsets() == {("orders", 0): (1, 2)}
    assert rig.alter(1, partition=5) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert rig.alter(1, topic="missing") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert rig.listed() == [("g", "share", "Empty")]


def test_offsets__altering_makes_a_group() -> None:
    rig = ShareGroupRig()
    assert rig.alter(0) == "NONE"
    assert rig.listed() == [("g", "share", "Empty")]
    assert rig.offsets() == {("orders", 0): (0, 0)}


def test_offsets__are_deleted_while_the_group_is_empty() -> None:
    rig, a = settled()
    assert rig.delete_offsets() == "NON_EMPTY_GROUP"
    a.leave()
    assert rig.delete_offsets("missing") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert rig.delete_offsets() == "NONE"
    assert rig.stored is None
    assert rig.offsets() == {}
    assert rig.delete_offsets() == "UNKNOWN_TOPIC_OR_PARTITION"  # nothing to delete


def test_offsets__of_no_group() -> None:
    rig = ShareGroupRig()
    assert rig.offsets() == {}
    assert rig.delete_offsets() == "GROUP_ID_NOT_FOUND"


def test_offsets__a_share_group_commits_none() -> None:
    rig, _ = settled()
    kind = m.OffsetCommitRequest
    partition = kind.OffsetCommitRequestPartition(0, 5)
    topic = kind.OffsetCommitRequestTopic("orders", partitions=[partition])
    answer = rig.ask_and_wait(
        rig.group_coordinator, ApiKey.OFFSET_COMMIT, 9, kind(group_id="g", topics=[topic])
    )
    assert answer.topics[0].partitions[0].error_code == 69  # GROUP_ID_NOT_FOUND


# ------------------------------------------------------------------------------------ deletion


def test_deletion__takes_the_states_along() -> None:
    rig, a = settled()
    assert rig.delete_group() == "NON_EMPTY_GROUP"
    a.leave()
    assert rig.delete_group() == "NONE"
    assert rig.stored is None
    assert rig.listed() == []
    assert rig.delete_group() == "GROUP_ID_NOT_FOUND"


def test_deletion__waits_until_the_states_are_deleted() -> None:
    rig, a = settled(of_brokers={"request.timeout.ms": 300})
    a.leave()
    rig.cut(3, 2)
    assert rig.delete_group() == "NETWORK_EXCEPTION"
    assert rig.listed() == [("g", "share", "Empty")]
    rig.heal(3, 2)
    assert rig.delete_group() == "NONE"
    assert rig.stored is None


def test_kinds__a_share_group_is_no_other_group() -> None:
    rig, _ = settled()
    assert rig.listed(types_filter=["share"]) == [("g", "share", "Stable")]
    assert rig.listed(types_filter=["consumer"]) == []
    assert rig.listed(states_filter=["empty"]) == []
    body = m.JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer")
    answer = rig.ask_group(ApiKey.JOIN_GROUP, body)
    assert answer.error_code == 23  # INCONSISTENT_GROUP_PROTOCOL
