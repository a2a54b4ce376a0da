"""Streams groups on one real broker: joining, tasks that move, statuses, ends of members."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.streams.configured import StreamsStatus
from kcluster.events.clients import (
    AssignedPartitions,
    Departure,
    GroupAssigned,
    GroupEvent,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
)
from kcluster.metadata.records import GROUP_RESOURCE, ConfigRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.group_broker import GroupBroker, restarted
from tests.broker.coordinator.members import Consumer, committed
from tests.broker.coordinator.streams.declared import declared, part, topic
from tests.broker.coordinator.streams.streams_members import (
    Heartbeat,
    StreamsThread,
    settle,
    streams_broker,
)
from tests.rig.one_broker import topic_records
from tests.rig.requests import commit_request

LINES = declared(part("0", ["lines"]))
"""An application without state, that reads `lines`, three partitions."""
DELAY_MS = 3_000
"""group.streams.initial.rebalance.delay.ms."""


@pytest.fixture
def broker() -> GroupBroker:
    return streams_broker()


def described(
    broker: GroupBroker, group: str = "g"
) -> m.StreamsGroupDescribeResponse.DescribedGroup:
    (one,) = broker.call(m.StreamsGroupDescribeRequest([group])).groups
    assert isinstance(one, m.StreamsGroupDescribeResponse.DescribedGroup)
    return one


def settled(broker: GroupBroker, *threads: StreamsThread) -> None:
    """All of them have joined, and have their tasks."""
    for thread in threads:
        assert thread.join() is ErrorCode.NONE
        thread.beat()
    broker.at(broker.now_ms + DELAY_MS)
    settle(*threads)


def test_streams_group__waits_for_more_members_before_the_first_tasks(broker: GroupBroker) -> None:
    a, b = StreamsThread(broker, "a", LINES), StreamsThread(broker, "b", LINES)
    a.join()
    assert (a.epoch, a.active, a.statuses) == (1, [], [StreamsStatus.ASSIGNMENT_DELAYED])
    b.join()
    a.beat()
    assert described(broker).group_state == "Assigning"
    broker.at(DELAY_MS)
    settle(a, b)
    assert (a.active, b.active) == (["0_0", "0_2"], ["0_1"])
    assert a.statuses == []
    assert described(broker).group_state == "Stable"


def test_streams_group__a_task_is_given_back_before_another_member_gets_it(
    broker: GroupBroker,
) -> None:
    a, b = StreamsThread(broker, "a", LINES), StreamsThread(broker, "b", LINES)
    settled(broker, a)
    assert a.active == ["0_0", "0_1", "0_2"]
    broker.at(broker.now_ms + 1_000)  # the assignment interval is over
    b.join()
    assert b.active == []
    a.beat(active_tasks=None, standby_tasks=None, warmup_tasks=None)
    assert a.active == ["0_0", "0_1"]
    b.beat()
    assert b.active == []  # a has not said that 0_2 is gone
    a.beat()
    b.beat()
    assert b.active == ["0_2"]
    settle(a, b)
    assert described(broker).group_state == "Stable"


def test_streams_group__an_assignment_is_not_computed_again_within_the_interval(
    broker: GroupBroker,
) -> None:
    a, b = StreamsThread(broker, "a", LINES), StreamsThread(broker, "b", LINES)
    settled(broker, a)
    b.join()
    assert b.statuses == [StreamsStatus.ASSIGNMENT_DELAYED]
    broker.at(broker.now_ms + 1_000)
    settle(a, b)
    assert len(b.active) == 1


def test_streams_group__who_does_not_give_a_task_back_is_fenced(broker: GroupBroker) -> None:
    a = StreamsThread(broker, "a", LINES, rebalance_timeout_ms=10_000)
    b = StreamsThread(broker, "b", LINES)
    settled(broker, a)
    broker.at(broker.now_ms + 1_000)
    b.join()
    a.beat()
    assert a.active == ["0_0", "0_1"]
    broker.at(broker.now_ms + 10_000)
    a.active = ["0_0", "0_1", "0_2"]
    b.beat()
    assert b.active == ["0_0", "0_1", "0_2"]


def test_streams_group__a_silent_member_is_removed_after_its_session(broker: GroupBroker) -> None:
    a = StreamsThread(broker, "a", LINES)
    settled(broker, a)
    broker.at(broker.now_ms + 44_999)
    assert len(described(broker).members) == 1
    broker.at(broker.now_ms + 1)
    assert described(broker).group_state == "Empty"


def test_streams_group__a_member_leaves(broker: GroupBroker) -> None:
    a, b = StreamsThread(broker, "a", LINES), StreamsThread(broker, "b", LINES)
    settled(broker, a, b)
    assert b.leave() is ErrorCode.NONE
    assert b.epoch == -1
    assert b.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    broker.at(broker.now_ms + 1_000)
    settle(a)
    assert a.active == ["0_0", "0_1", "0_2"]


def test_streams_group__after_a_lost_answer_only_the_epoch_is_given_again(
    broker: GroupBroker,
) -> None:
    # Seen on a 4.3.1 broker: such a member has no tasks until its assignment changes.
    a = StreamsThread(broker, "a", LINES)
    settled(broker, a)
    assert a.epoch == 2
    a.epoch, a.active = 1, []
    assert a.beat() is ErrorCode.NONE
    assert (a.epoch, a.answer.active_tasks) == (2, None)
    a.epoch, a.active = 1, ["0_0"]
    assert a.beat() is ErrorCode.NONE  # a part of what it has
    assert a.join() is ErrorCode.NONE
    assert a.active == ["0_0", "0_1", "0_2"]


@pytest.mark.parametrize(
    ("epoch", "joins"), [(3, False), (0, True), (1, False)], ids=["newer", "join", "older"]
)
def test_streams_group__other_epochs_are_fenced(
    broker: GroupBroker, epoch: int, joins: bool
) -> None:
    a = StreamsThread(broker, "a", LINES)
    settled(broker, a)
    a.epoch = epoch
    if joins:
        assert a.beat() is ErrorCode.INVALID_REQUEST
        return
    a.active = ["0_0", "0_7"]
    assert a.beat() is ErrorCode.FENCED_MEMBER_EPOCH
    assert a.answer.error_message == (
        f"member epoch {epoch}: it is 2, before it was 1; "
        "give up everything assigned and join again"
    )


def test_streams_group__standbys_are_on_other_processes() -> None:
    broker = streams_broker(group_streams_num_standby_replicas=1)
    broker.create_topic("g-log", 3)
    stateful = declared(part("0", ["lines"], changelogs=[topic("g-log")]))
    a, b = StreamsThread(broker, "a", stateful), StreamsThread(broker, "b", stateful)
    settled(broker, a, b)
    assert (a.active, a.standby) == (["0_0", "0_2"], ["0_1"])
    assert (b.active, b.standby) == (["0_1"], ["0_0", "0_2"])


def test_streams_group__a_config_of_the_group_moves_tasks(broker: GroupBroker) -> None:
    broker.create_topic("g-log", 3)
    stateful = declared(part("0", ["lines"], changelogs=[topic("g-log")]))
    a, b = StreamsThread(broker, "a", stateful), StreamsThread(broker, "b", stateful)
    settled(broker, a, b)
    assert b.standby == []
    broker.publish([ConfigRecord(GROUP_RESOURCE, "g", "streams.num.standby.replicas", "1")])
    broker.at(broker.now_ms + 1_000)
    settle(a, b)
    assert b.standby == ["0_0", "0_2"]


def test_streams_group__another_topology_is_refused(broker: GroupBroker) -> None:
    settled(broker, StreamsThread(broker, "a", LINES))
    other = StreamsThread(broker, "b", declared(part("0", ["lines"]), part("1", ["lines"])))
    assert other.join() is ErrorCode.INVALID_REQUEST
    assert other.answer.error_message == "Topology: that of a group cannot change yet"


def test_streams_group__missing_source_topics_are_reported_until_they_are_there(
    broker: GroupBroker,
) -> None:
    a = StreamsThread(broker, "a", declared(part("0", ["later"])))
    a.join()
    a.beat()
    broker.at(DELAY_MS)
    a.beat()
    assert a.statuses == [StreamsStatus.MISSING_SOURCE_TOPICS]
    assert described(broker).group_state == "NotReady"
    broker.create_topic("later", 2)
    broker.at(broker.now_ms + 1_000)
    settle(a)
    assert a.active == ["0_0", "0_1"]


def test_streams_group__more_partitions_are_more_tasks(broker: GroupBroker) -> None:
    a = StreamsThread(broker, "a", LINES)
    settled(broker, a)
    broker.create_topic("other", 1)
    a.beat()
    assert a.epoch == 2
    broker.publish(topic_records("lines", *[(1,)] * 4)[-1:])
    broker.at(broker.now_ms + 1_000)
    settle(a)
    assert a.active == ["0_0", "0_1", "0_2", "0_3"]


def test_streams_group__one_member_shuts_the_application_down(broker: GroupBroker) -> None:
    a, b = StreamsThread(broker, "a", LINES), StreamsThread(broker, "b", LINES)
    settled(broker, a, b)
    a.beat(shutdown_application=True)
    b.beat()
    (status,) = b.answer.status
    assert status.status_code == StreamsStatus.SHUTDOWN_APPLICATION
    assert status.status_detail == "member a has failed and asked all members to shut down"
    a.leave()
    b.leave()
    a.join()
    assert StreamsStatus.SHUTDOWN_APPLICATION not in a.statuses  # an empty group forgets it


def test_streams_group__endpoints_are_told_apart_by_their_epoch(broker: GroupBroker) -> None:
    endpoint = m.StreamsGroupHeartbeatRequest.Endpoint("host", 80)
    a = StreamsThread(broker, "a", LINES, user_endpoint=endpoint)
    b = StreamsThread(broker, "b", LINES)
    settled(broker, a, b)
    b.beat(endpoint_information_epoch=0)
    (row,) = b.answer.partitions_by_user_endpoint
    assert row.user_endpoint.host == "host"
    assert [(one.topic, one.partitions) for one in row.active_partitions] == [("lines", [0, 2])]
    seen = b.answer.endpoint_information_epoch
    b.beat(endpoint_information_epoch=seen)
    assert b.answer.partitions_by_user_endpoint is None


def test_streams_group__survives_a_failover_with_its_tasks(broker: GroupBroker) -> None:
    a, b = StreamsThread(broker, "a", LINES), StreamsThread(broker, "b", LINES)
    settled(broker, a, b)
    before = described(broker)
    again = restarted(broker)
    assert described(again) == before
    a.broker = b.broker = again
    settle(a, b)
    assert (a.epoch, a.active, b.active) == (3, ["0_0", "0_2"], ["0_1"])


def test_streams_group__a_write_that_is_refused_changes_nothing(broker: GroupBroker) -> None:
    a, b = StreamsThread(broker, "a", LINES), StreamsThread(broker, "b", LINES)
    settled(broker, a)
    broker.drop_follower()
    assert b.join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(described(broker).members) == 1
    assert described(broker).group_epoch == 2


def test_streams_group__no_member_joins_a_full_group() -> None:
    broker = streams_broker(group_streams_max_size=1)
    StreamsThread(broker, "a", LINES).join()
    b = StreamsThread(broker, "b", LINES)
    assert b.join() is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_streams_group__is_deleted_when_it_is_empty(broker: GroupBroker) -> None:
    a = StreamsThread(broker, "a", LINES)
    settled(broker, a)
    delete = m.DeleteGroupsRequest(["g"])
    assert broker.call(delete).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    a.leave()
    assert broker.call(delete).results[0].error_code == ErrorCode.NONE
    assert described(broker).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described(restarted(broker)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_streams_group__is_listed_with_its_type(broker: GroupBroker) -> None:
    StreamsThread(broker, "a", LINES).join()
    (row,) = broker.call(m.ListGroupsRequest(types_filter=["streams"])).groups
    assert (row.group_id, row.protocol_type, row.group_type) == ("g", "streams", "streams")
    assert broker.call(m.ListGroupsRequest(types_filter=["classic"])).groups == []


def test_streams_group__takes_the_place_of_an_empty_classic_group_and_yields_to_one(
    broker: GroupBroker,
) -> None:
    broker.call(commit_request("g", 5), 9)
    a = StreamsThread(broker, "a", LINES)
    assert a.join() is ErrorCode.NONE
    assert described(broker).group_state == "Assigning"
    classic = Consumer(broker).join()
    assert classic.joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    a.leave()
    Consumer(broker).join()
    assert described(broker).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert committed(broker, "g") == 5
    assert a.join() is ErrorCode.GROUP_ID_NOT_FOUND
    assert a.answer.error_message == "group g exists, but is no streams group"


def test_streams_group__what_happens_to_its_members_is_noted(broker: GroupBroker) -> None:
    a = StreamsThread(broker, "a", LINES)
    b = StreamsThread(broker, "b", LINES, rebalance_timeout_ms=500)
    settled(broker, a)
    broker.at(broker.now_ms + 1_000)
    b.join()
    a.leave()
    broker.at(broker.now_ms + 45_000)
    assert [event for event in broker.events if isinstance(event, GroupEvent)] == [
        GroupMemberJoined("g", "a", "c", "127.0.0.1", ""),
        GroupAssigned("g", 2, (AssignedPartitions("a", "lines", (0, 1, 2)),)),
        GroupMemberJoined("g", "b", "c", "127.0.0.1", ""),
        GroupAssigned(
            "g",
            3,
            (AssignedPartitions("a", "lines", (0, 1)), AssignedPartitions("b", "lines", (2,))),
        ),
        GroupMemberLeft("g", "a", Departure.LEFT),
        GroupMemberExpired("g", "b", 45_000),
    ]


def test_streams_group__a_silent_member_is_removed_as_soon_as_that_can_be_written(
    broker: GroupBroker,
) -> None:
    settled(broker, StreamsThread(broker, "a", LINES))
    broker.drop_follower()
    broker.at(broker.now_ms + 45_000)
    assert len(described(broker).members) == 1
    broker.resume_follower()
    broker.at(broker.now_ms + 500)
    assert described(broker).members == []


# ----------------------------------------------------------------------------------- since 4.4


def test_static_member__comes_back_under_another_id_with_its_tasks(broker: GroupBroker) -> None:
    a = StreamsThread(broker, "a", LINES, instance_id="i", process_id="p")
    b = StreamsThread(broker, "b", LINES)
    settled(broker, a, b)
    assert a.take(broker.call(a._request(-2, instance_id="i"))) is ErrorCode.NONE
    assert described(broker).members[0].member_epoch == -2
    broker = a.broker = b.broker = restarted(broker)
    assert b.beat() is ErrorCode.NONE
    back = StreamsThread(broker, "a2", LINES, instance_id="i", process_id="p")
    assert back.join() is ErrorCode.NONE
    assert (back.epoch, back.active) == (b.epoch, ["0_0", "0_2"])
    assert [one.member_id for one in described(broker).members] == ["b", "a2"]
    assert a.beat(instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert back.leave(instance_id="i") is ErrorCode.NONE
    assert [one.member_id for one in described(broker).members] == ["b"]


def test_static_member__has_its_instance_id_alone(broker: GroupBroker) -> None:
    a = StreamsThread(broker, "a", LINES, instance_id="i")
    settled(broker, a)
    b = StreamsThread(broker, "b", LINES, instance_id="i")
    assert b.join() is ErrorCode.UNRELEASED_INSTANCE_ID
    assert a.beat(instance_id="other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert a.beat(instance_id="i") is ErrorCode.NONE


def test_static_member__comes_back_to_a_full_group_and_is_removed_if_it_does_not() -> None:
    broker = streams_broker(group_streams_max_size=1)
    a = StreamsThread(broker, "a", LINES, instance_id="i")
    settled(broker, a)
    broker.call(a._request(-2, instance_id="i"))
    back = StreamsThread(broker, "a2", LINES, instance_id="i")
    assert back.join() is ErrorCode.NONE
    broker.call(back._request(-2, instance_id="i"))
    broker.at(broker.now_ms + 46_000)
    assert described(broker).group_state == "Empty"
    assert described(broker).assignment_epoch == described(broker).group_epoch


def test_tags__that_are_missing_are_told_to_clients_that_know_of_them(broker: GroupBroker) -> None:
    name = "streams.rack.aware.assignment.tags"
    broker.publish([ConfigRecord(GROUP_RESOURCE, "g", name, "zone,row")])
    tag = Heartbeat.KeyValue("zone", "1")
    a = StreamsThread(broker, "a", LINES, client_tags=[tag])
    a.join()
    assert a.statuses[-1] == StreamsStatus.MISSING_CLIENT_TAGS
    a.take(broker.call(a.heartbeat(), version=0))
    assert a.statuses == [StreamsStatus.ASSIGNMENT_DELAYED]


def test_offsets__decide_who_takes_a_task_over(broker: GroupBroker) -> None:
    a, b, c = (StreamsThread(broker, name, LINES) for name in "abc")
    settled(broker, a)
    b.join()
    c.join()
    offsets = [Heartbeat.TaskOffset("0", partition, 100) for partition in range(3)]
    assert c.beat(task_offsets=offsets * 2) is ErrorCode.INVALID_REQUEST
    assert c.beat(task_offsets=offsets) is ErrorCode.NONE
    a.leave()
    broker.at(broker.now_ms + 2_000)
    settle(b, c)
    assert (len(b.active), len(c.active)) == (1, 2)


def test_topology_description__is_not_kept_without_a_plugin(broker: GroupBroker) -> None:
    StreamsThread(broker, "a", LINES).join()
    update = m.StreamsGroupTopologyDescriptionUpdateRequest(group_id="g", member_id="a")
    assert broker.call(update).error_code == ErrorCode.UNSUPPORTED_VERSION
    asked = m.StreamsGroupDescribeRequest(["g"], include_topology_description=True)
    (one,) = broker.call(asked).groups
    assert (one.topology_description_status, one.topology_description) == (1, None)
    assert one.assignor_name == "sticky"
