"""Committed offsets: commit, fetch, delete, expire, and what a failover keeps."""

from __future__ import annotations

import pytest

from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.java import java_hash_code
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, committed, settle
from tests.rig.requests import commit_request

MINUTE_MS = 60_000


def one_member(**config: object) -> Consumer:
    broker = fresh_broker(**config)
    member = Consumer(broker, name="a").join()
    broker.at(3000)
    settle(member)
    return member


def error_of(broker: GroupBroker, request: Request) -> int | None:
    answer = broker.answer(request)
    return None if answer is None else answer.topics[0].partitions[0].error_code


# ----------------------------------------------------------------------------- commit, fetch


def test_commit__member_commits_and_anybody_fetches() -> None:
    a = one_member()
    assert a.commit(42) is ErrorCode.NONE
    assert committed(a.broker, "g") == 42
    assert committed(a.broker, "g", partition=1) == -1
    assert committed(a.broker, "other") == -1


def test_commit__counts_as_a_heartbeat() -> None:
    a = one_member()
    for _ in range(3):
        a.broker.at(a.broker.now_ms + 9_000)
        assert a.commit(1) is ErrorCode.NONE
    assert a.heartbeat() is ErrorCode.NONE


def test_commit__without_a_group_creates_a_simple_group() -> None:
    broker = fresh_broker()
    for version in (2, 7, 9):
        broker.call(commit_request("tool", version), version)
        assert committed(broker, "tool") == version
    with_generation = commit_request("none", 1, generation=3, member_id="m")
    assert error_of(broker, broker.post(with_generation, 8)) == ErrorCode.ILLEGAL_GENERATION
    # KIP-848
    assert error_of(broker, broker.post(with_generation, 9)) == ErrorCode.GROUP_ID_NOT_FOUND


def test_commit__into_a_group_with_members_requires_membership() -> None:
    a = one_member()
    broker = a.broker
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(broker, broker.post(commit_request("g", 1), 9)) == unknown
    assert (
        error_of(broker, broker.post(commit_request("g", 1, generation=1, member_id="x"), 9))
        == unknown
    )
    a.join()
    assert a.joined is not None
    assert a.commit(1) is ErrorCode.REBALANCE_IN_PROGRESS, "it has joined and not yet synced"


def test_commit__during_a_rebalance_is_taken_from_the_old_generation() -> None:
    a = one_member()
    Consumer(a.broker).join()
    assert a.commit(5) is ErrorCode.NONE
    assert committed(a.broker, "g") == 5


def test_commit__each_partition_has_its_own_error() -> None:
    broker = fresh_broker(offset_metadata_max_bytes=4)
    request = commit_request("g", 1, partition=0, metadata="12345")
    part = m.OffsetCommitRequest.OffsetCommitRequestPartition
    request.topics[0].partitions += [part(partition_index=6), part(partition_index=1)]
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    request.topics.append(topic(name="nowhere", partitions=[part(partition_index=0)]))
    answer = broker.call(request, 9)
    found = {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
    assert found == {
        ("orders", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ("orders", 6): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 1): ErrorCode.NONE,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_commit__by_topic_id() -> None:
    broker = fresh_broker()
    topic_id = broker.image.topics["orders"].topic_id
    request = commit_request("g", 11, topic="")
    request.topics[0].topic_id = topic_id
    answer = broker.call(request, 10)
    assert answer.topics[0].topic_id == topic_id
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    request.topics[0].topic_id = bytes(15) + b"\xee"
    assert broker.call(request, 10).topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    (group,) = broker.call(m.OffsetFetchRequest(groups=[asked]), 10).groups
    assert [t.topic_id for t in group.topics] == [topic_id]
    one = m.OffsetFetchRequest.OffsetFetchRequestTopics
    asked.topics = [one(topic_id=bytes(15) + b"\xee", partition_indexes=[0])]
    (group,) = broker.call(m.OffsetFetchRequest(groups=[asked]), 10).groups
    assert group.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_commit__is_answered_and_visible_once_replicated() -> None:
    broker = fresh_broker()
    broker.pause_follower()
    request = broker.post(commit_request("g", 9), 9)
    assert broker.answer(request) is None
    assert committed(broker, "g") == -1
    stable = broker.post(m.OffsetFetchRequest(group_id="g", topics=None, require_stable=True), 7)
    assert broker.answer(stable) is None
    broker.resume_follower()
    assert error_of(broker, request) == ErrorCode.NONE
    assert broker.answer(stable).topics[0].partitions[0].committed_offset == 9


def test_commit__that_timed_out_counts_once_the_log_has_it() -> None:
    broker = fresh_broker()
    broker.pause_follower()
    request = broker.post(commit_request("g", 9), 9)
    broker.at(broker.now_ms + broker.config.offsets_commit_timeout_ms)
    assert error_of(broker, request) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(broker, "g") == -1
    fetch = m.OffsetFetchRequest(group_id="g", topics=None, require_stable=True)
    assert broker.call(fetch, 7).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.resume_follower()
    assert committed(broker, "g") == 9


def test_commit__that_was_refused_never_counts() -> None:
    broker = fresh_broker()
    broker.drop_follower()
    request = broker.post(commit_request("g", 9), 9)
    assert error_of(broker, request) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.resume_follower()
    broker.call(commit_request("g", 1, partition=1), 9)
    assert committed(broker, "g") == -1


def test_fetch__old_versions_and_many_groups() -> None:
    broker = fresh_broker()
    broker.call(commit_request("g", 3, metadata="note"), 6)
    broker.call(commit_request("h", 4, partition=5), 6)
    topic = m.OffsetFetchRequest.OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])
    for version in range(1, 8):
        answer = broker.call(m.OffsetFetchRequest(group_id="g", topics=[topic]), version)
        found = [(p.committed_offset, p.metadata) for p in answer.topics[0].partitions]
        assert found == [(3, "note"), (-1, "")]
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup
    groups = [group(group_id=name, topics=None) for name in ("h", "g", "none")]
    answer = broker.call(m.OffsetFetchRequest(groups=groups), 9)
    assert [(g.group_id, len(g.topics)) for g in answer.groups] == [("h", 1), ("g", 1), ("none", 0)]


def test_not_coordinator__is_answered_by_every_api() -> None:
    broker = GroupBroker()
    broker.create_offsets_topic(leader=2)
    broker.create_topic("orders", 1)
    wrong = ErrorCode.NOT_COORDINATOR
    a = Consumer(broker)
    a.member_id = "x"
    assert a.join().joined.error_code == wrong
    assert a.sync().synced.error_code == wrong
    assert a.heartbeat() is a.leave() is a.commit(1) is wrong
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    assert broker.call(m.OffsetFetchRequest(groups=[group]), 9).groups[0].error_code == wrong
    assert broker.call(m.DescribeGroupsRequest(groups=["g"])).groups[0].error_code == wrong
    assert broker.call(m.DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == wrong
    assert broker.call(m.OffsetDeleteRequest(group_id="g")).error_code == wrong


# ------------------------------------------------------------------------------ going away


def test_offset_delete__not_while_the_topic_is_read() -> None:
    a = one_member()
    broker = a.broker
    broker.create_topic("old", 1)
    a.commit(5)
    a.commit(6, topic="old")
    topic = m.OffsetDeleteRequest.OffsetDeleteRequestTopic
    part = m.OffsetDeleteRequest.OffsetDeleteRequestPartition
    request = m.OffsetDeleteRequest(
        group_id="g",
        topics=[topic(name=n, partitions=[part(partition_index=0)]) for n in ("orders", "old")],
    )
    answer = broker.call(request)
    assert [t.partitions[0].error_code for t in answer.topics] == [
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.NONE,
    ]
    assert (committed(broker, "g"), committed(broker, "g", topic="old")) == (5, -1)


def test_offsets__of_a_deleted_topic_are_removed() -> None:
    a = one_member()
    a.commit(5)
    a.broker.delete_topic("orders")
    assert committed(a.broker, "g") == -1
    assert committed(restarted(a.broker), "g") == -1


def test_offsets__under_way_end_with_their_topic() -> None:
    """A commit is in the log, and no other broker has it yet, when its topic is deleted."""
    a = one_member()
    broker = a.broker
    broker.pause_follower()
    broker.post(commit_request("g", 5, generation=1, member_id=a.member_id), 9)
    broker.delete_topic("orders")
    broker.resume_follower()
    assert committed(broker, "g") == -1
    assert committed(restarted(broker), "g") == -1


def test_offsets__under_way_end_with_their_group() -> None:
    broker = fresh_broker()
    broker.pause_follower()
    broker.post(commit_request("tool", 4), 9)
    broker.resume_follower()
    broker.pause_follower()
    broker.post(commit_request("tool", 5, partition=1), 9)
    broker.post(m.DeleteGroupsRequest(groups_names=["tool"]))
    broker.resume_follower()
    assert committed(broker, "tool", partition=1) == -1
    assert committed(restarted(broker), "tool", partition=1) == -1


@pytest.mark.parametrize(
    ("retention_ms", "is_kept"),
    [
        (MINUTE_MS * 600, True),
        (2**62, True),
        (2**63 - 1, False),  # the sum overflows in Kafka, and lies in the past
        (0, False),
        (-2, False),
        (-(2**63), False),
    ],
)
def test_offsets__an_old_client_may_ask_for_any_retention(retention_ms: int, is_kept: bool) -> None:
    broker = fresh_broker()
    broker.at(MINUTE_MS)
    request = commit_request("tool", 5)
    request.retention_time_ms = retention_ms
    broker.call(request, 2)
    assert committed(broker, "tool") == 5
    broker.at(broker.now_ms + 11 * MINUTE_MS)
    assert committed(broker, "tool") == (5 if is_kept else -1)


def test_offsets__expire_after_retention_when_the_group_is_empty() -> None:
    a = one_member(offsets_retention_minutes=30)
    broker = a.broker
    a.commit(5)
    broker.call(commit_request("simple", 6), 9)
    a.session_timeout_ms = 1_800_000
    for _ in range(40):
        broker.at(broker.now_ms + MINUTE_MS // 10)
        a.heartbeat()
    a.leave()
    left_ms = broker.now_ms
    broker.at(left_ms + 29 * MINUTE_MS)
    assert committed(broker, "g") == 5
    broker.at(left_ms + 41 * MINUTE_MS)
    assert committed(broker, "g") == committed(broker, "simple") == -1
    assert broker.call(m.ListGroupsRequest()).groups == []
    assert restarted(broker).call(m.ListGroupsRequest()).groups == []


def test_delete_group__takes_its_offsets_with_it() -> None:
    a = one_member()
    a.commit(5)
    a.leave()
    a.broker.call(m.DeleteGroupsRequest(groups_names=["g"]))
    assert committed(a.broker, "g") == -1
    assert committed(restarted(a.broker), "g") == -1


# -------------------------------------------------------------------------------- failover


def test_failover__new_coordinator_knows_members_and_offsets() -> None:
    a = one_member()
    a.commit(5)
    a.commit(6, partition=3)
    a.commit(7)
    a.broker = restarted(a.broker)
    assert (committed(a.broker, "g"), committed(a.broker, "g", partition=3)) == (7, 6)
    assert a.heartbeat() is ErrorCode.NONE, "members need not join again"
    assert a.sync().synced.assignment == b"part of a"
    assert a.commit(8) is ErrorCode.NONE
    a.broker.at(a.broker.now_ms + 10_000)
    assert a.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID, "sessions count from the loading"


def test_failover__offsets_wait_until_they_are_known_to_be_committed() -> None:
    a = one_member()
    a.commit(5)
    broker = restarted(a.broker, follower_fetches=False)
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    request = m.OffsetFetchRequest(groups=[group])
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert broker.call(request, 9).groups[0].error_code == loading
    broker.resume_follower()
    assert committed(broker, "g") == 5


def test_failover__half_joined_group_starts_again() -> None:
    broker = fresh_broker()
    a = Consumer(broker).join()
    a.broker = restarted(broker)
    assert a.join().joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    a.member_id = ""
    a.join()
    a.broker.at(3000)
    assert a.joined.generation_id == 1


def test_failover__waiting_members_get_not_coordinator() -> None:
    a = one_member()
    broker = a.broker
    b = Consumer(broker).join()
    broker.pause_follower()
    commit = broker.post(a.commit_request(5), 9)
    broker.resign()
    assert b.joined.error_code == ErrorCode.NOT_COORDINATOR
    assert error_of(broker, commit) == ErrorCode.NOT_COORDINATOR
    assert a.heartbeat() is ErrorCode.NOT_COORDINATOR
    broker.resume_follower()
    assert not len(broker.timers)


def test_failover__a_waiting_sync_gets_not_coordinator() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker).join(), Consumer(broker).join()
    broker.at(6000)
    assert a.joined is not None
    assert b.joined is not None
    b.sync()
    broker.resign()
    assert b.synced.error_code == ErrorCode.NOT_COORDINATOR


def test_failover__static_member_keeps_its_place() -> None:
    broker = fresh_broker()
    a = Consumer(broker, instance_id="i", name="a").join()
    broker.at(3000)
    settle(a)
    a.broker, a.member_id = restarted(broker), ""
    a.join()
    assert a.joined.generation_id == 1
    assert a.sync().synced.assignment == b"part of a"


def test_java_hash_code__is_javas() -> None:
    # From jshell: "".hashCode(), "group".hashCode(), …
    known = {"": 0, "group": 98629247, "polygenelubricants": -2147483648, "\U0001f600": 1772899}
    assert {text: java_hash_code(text) for text in known} == known


def test_fetch__unknown_topics_come_last_where_topics_are_named_by_id() -> None:
    broker = fresh_broker()
    broker.create_topic("orders", 1)
    topic = m.OffsetFetchRequest.OffsetFetchRequestTopics
    orders = broker.image.topics["orders"].topic_id
    asked = [topic(topic_id=one, partition_indexes=[0]) for one in (b"?" * 16, orders, b"!" * 16)]
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=asked)
    answer = broker.call(m.OffsetFetchRequest(groups=[group]), version=10)
    topics = answer.groups[0].topics
    assert [one.topic_id for one in topics] == [orders, b"?" * 16, b"!" * 16]
    errors = [ErrorCode(one.partitions[0].error_code).name for one in topics]
    assert errors == ["NONE", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_ID"]
