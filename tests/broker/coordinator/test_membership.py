"""Join, sync, heartbeat, leave: each check and its error, static members."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.group_broker import fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, settle, subscription


def stable(*instance_ids: str | None) -> list[Consumer]:
    broker = fresh_broker()
    members = [
        Consumer(broker, instance_id=one, name=f"m{i}") for i, one in enumerate(instance_ids)
    ]
    for member in members:
        member.join()
    broker.at(9000)
    settle(*members)
    return members


def test_join__new_member_must_come_back_with_its_id() -> None:
    broker = fresh_broker()
    a = Consumer(broker, name="app")
    first = broker.answer(a._send_join(9))
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("app-")
    a.member_id = first.member_id
    assert a.join().is_joining


def test_join__an_unused_member_id_does_not_delay_the_others() -> None:
    (a,) = stable(None)
    broker = a.broker
    Consumer(broker)._send_join(9)
    a.join()
    assert a.is_joining, "one pending member may still come"
    broker.at(broker.now_ms + 9_999)
    assert a.is_joining
    broker.at(broker.now_ms + 1)
    assert a.joined.generation_id == 2


def test_join__before_version_4_a_new_member_is_in_at_once() -> None:
    broker = fresh_broker()
    a = Consumer(broker).join(version=3)
    broker.at(3000)
    assert a.joined.generation_id == 1
    b = Consumer(broker, session_timeout_ms=10_000, rebalance_timeout_ms=-1).join(version=0)
    b.rebalance_timeout_ms = 10_000
    a.join(version=3)
    assert b.joined.generation_id == 2, "v0: the session timeout is the rebalance timeout"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_join__is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    consumer = Consumer(fresh_broker(), **changes)
    for version in range(10):
        answer = consumer.join(version).joined
        assert (answer.error_code, answer.generation_id) == (error, -1)


def test_join__unknown_id_is_refused() -> None:
    (a,) = stable(None)
    for group in ("g", "other"):
        stranger = Consumer(a.broker, group=group)
        stranger.member_id = "nobody"
        assert stranger.join().joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_join__other_protocol_type_is_refused() -> None:
    (a,) = stable(None)
    other = Consumer(a.broker, protocol_type="connect")
    assert other.join().joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_join__full_group_is_refused() -> None:
    broker = fresh_broker(group_max_size=1)
    a = Consumer(broker).join()
    b = Consumer(broker).join()
    assert b.joined.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    broker.at(3000)
    settle(a)
    assert Consumer(broker).join().joined.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_join__repeated_on_another_connection_answers_the_first() -> None:
    broker = fresh_broker()
    a = Consumer(broker).join()
    first = a.joining
    a.join()
    assert first is not None
    assert broker.answer(first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    broker.at(3000)
    assert a.joined.generation_id == 1


def test_generation__old_one_is_fenced() -> None:
    (a,) = stable(None)
    assert a.heartbeat(0) is a.heartbeat(2) is ErrorCode.ILLEGAL_GENERATION
    a.generation = 0
    assert a.sync().synced.error_code == ErrorCode.ILLEGAL_GENERATION
    assert a.commit(5) is ErrorCode.ILLEGAL_GENERATION


def test_sync__other_protocol_is_refused() -> None:
    (a,) = stable(None)
    a.protocols = {"sticky": b""}
    assert a.sync().synced.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unnamed = m.SyncGroupRequest(group_id="g", generation_id=1, member_id=a.member_id)
    assert a.broker.call(unnamed, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert a.broker.call(unnamed, 4).error_code == ErrorCode.NONE


def test_sync__again_while_stable_gives_the_same_part() -> None:
    a, b = stable(None, None)
    assert b.sync().synced.assignment == b"part of m1"
    assert a.sync().synced.assignment == b"part of m0"


# -------------------------------------------------------------------------- static members


def test_static__restart_takes_the_old_place_without_a_rebalance() -> None:
    a, b = stable("i1", "i2")
    old = Consumer(b.broker, instance_id="i2")
    old.member_id, old.generation = b.member_id, b.generation
    b.member_id = ""
    b.join()
    assert b.joined.error_code == ErrorCode.NONE
    assert (b.generation, b.joined.skip_assignment) == (1, False)
    assert b.member_id != old.member_id
    assert b.sync().synced.assignment == b"part of m1"
    assert a.heartbeat() is b.heartbeat() is ErrorCode.NONE
    assert old.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    assert old.commit(1) is ErrorCode.FENCED_INSTANCE_ID


def test_static__a_restarted_leader_skips_the_assignment() -> None:
    a, b = stable("i1", "i2")
    a.member_id = ""
    a.join(version=9)
    assert a.joined.skip_assignment
    assert a.joined.leader == a.member_id
    assert [one.group_instance_id for one in a.joined.members] == ["i2", "i1"]
    former = a.member_id
    a.member_id = ""
    a.join(version=8)
    assert a.joined.leader == former, "before KIP-814 it must not know that it leads"
    assert a.joined.members == []
    assert b.heartbeat() is ErrorCode.NONE


def test_static__restart_with_other_protocols_starts_a_rebalance() -> None:
    a, b = stable("i1", "i2")
    b.member_id, b.protocols = "", {"range": b""}
    a.protocols = {"range": subscription("orders")}
    assert b.join().joined.generation_id == 1, "same protocol, other metadata: no rebalance"
    lonely = stable("i1")[0]
    lonely.member_id, lonely.protocols = "", {"sticky": b""}
    joined = lonely.join().joined
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "others must know it too"


def test_static__restart_is_undone_when_it_cannot_be_stored() -> None:
    (a,) = stable("i1")
    old_id, a.member_id = a.member_id, ""
    a.broker.drop_follower()
    assert a.join().joined.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    a.broker.resume_follower()
    a.member_id = old_id
    assert a.heartbeat() is ErrorCode.NONE


def test_static__second_process_with_the_same_instance_id_fences_a_waiting_first() -> None:
    broker = fresh_broker()
    first = Consumer(broker, instance_id="i1").join()
    second = Consumer(broker, instance_id="i1").join()
    assert first.joined.error_code == ErrorCode.FENCED_INSTANCE_ID
    broker.at(3000)
    assert second.joined.generation_id == 1


def test_static__all_absent_keep_their_places_until_one_comes() -> None:
    a, b = stable("i1", "i2")
    broker = a.broker
    c = Consumer(broker, session_timeout_ms=6000).join()
    for _ in range(12):
        broker.at(broker.now_ms + 5_000)
        a.heartbeat()
        b.heartbeat()
    assert c.joined.generation_id == 2
    assert c.joined.leader == c.member_id
    assert len(c.joined.members) == 3


def test_leave__admin_removes_a_static_member_by_its_instance_id() -> None:
    a, b = stable("i1", "i2")
    identity = m.LeaveGroupRequest.MemberIdentity
    answer = a.broker.call(
        m.LeaveGroupRequest(
            group_id="g",
            members=[
                identity(group_instance_id="i2"),
                identity(group_instance_id="i9"),
                identity(member_id=b.member_id, group_instance_id="i1"),
                identity(member_id="nobody"),
            ],
        )
    )
    assert [one.error_code for one in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_leave__in_old_versions_and_of_strangers() -> None:
    a, b = stable(None, None)
    assert a.leave(version=0) is ErrorCode.NONE
    assert a.leave(version=2) is ErrorCode.UNKNOWN_MEMBER_ID
    stranger = Consumer(a.broker, group="none")
    stranger.member_id = "x"
    assert stranger.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    b.join()
    assert b.joined.generation_id == 2


def test_leave__pending_member_may() -> None:
    (a,) = stable(None)
    pending = Consumer(a.broker)
    pending.member_id = a.broker.answer(pending._send_join(9)).member_id
    a.join()
    assert a.is_joining
    assert pending.leave() is ErrorCode.NONE
    assert a.joined.generation_id == 2


def test_heartbeat__is_answered_when_all_that_was_written_is_committed() -> None:
    """Kafka: a write operation without records completes with the last one that has some."""
    (a,) = stable(None)
    broker = a.broker
    broker.pause_follower()
    broker.post(a.commit_request(42), 9)
    request = a.post_heartbeat()
    assert broker.answer(request) is None
    assert a.heartbeat(generation=9) is ErrorCode.ILLEGAL_GENERATION, "a refusal needs no log"
    broker.resume_follower()
    assert broker.answer(request).error_code == ErrorCode.NONE


def test_heartbeat__after_a_failover_waits_until_what_was_loaded_is_committed() -> None:
    """A member that the last coordinator has written, and whose follower may not have it."""
    broker = fresh_broker()
    broker.pause_follower()
    joining = m.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    assert broker.answer(broker.post(joining)) is None
    next_life = restarted(broker, follower_fetches=False)
    again = next_life.post(joining)
    assert next_life.answer(again) is None
    next_life.resume_follower()
    assert next_life.answer(again).error_code == ErrorCode.NONE


def test_heartbeat__to_a_coordinator_whose_followers_have_left_it_times_out() -> None:
    (a,) = stable(None)
    broker = a.broker
    broker.pause_follower()
    broker.post(a.commit_request(42), 9)
    request = a.post_heartbeat()
    broker.at(9_000 + 5_000)  # offsets.commit.timeout.ms
    assert broker.answer(request).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
