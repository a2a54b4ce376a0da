"""Stories of classic groups in virtual time: who joins, who leaves, who is too late."""

from __future__ import annotations

from typing import Any

from kcluster.clients.consumer.group_protocol import encode_assignment
from kcluster.events.clients import (
    AssignedPartitions,
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
    GroupRebalanced,
)
from kcluster.events.words import text_of
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.group_broker import fresh_broker
from tests.broker.coordinator.members import Consumer, settle


def two_members() -> tuple[Consumer, Consumer]:
    """A stable group of two, generation 1, on a broker at 3 s."""
    broker = fresh_broker()
    a, b = Consumer(broker, name="a").join(), Consumer(broker, name="b").join()
    broker.at(6000)
    settle(a, b)
    return a, b


def test_rebalance__two_members_join_and_split() -> None:
    broker = fresh_broker()
    a = Consumer(broker, name="a").join()
    broker.at(1000)
    b = Consumer(broker, name="b").join()
    broker.at(2999)
    assert a.is_joining, "group.initial.rebalance.delay.ms is 3 s"

    broker.at(6000)
    assert a.joined.generation_id == b.joined.generation_id == 1
    assert a.joined.leader == b.joined.leader == a.member_id
    assert [one.member_id for one in a.joined.members] == [a.member_id, b.member_id]
    assert b.joined.members == []
    assert a.joined.protocol_name == "range"
    assert a.member_id.startswith("a-")

    b.sync()
    assert b.is_syncing, "it waits for the leader"
    a.sync({a.member_id: b"0,1,2", b.member_id: b"3,4,5"})
    assert (a.synced.assignment, b.synced.assignment) == (b"0,1,2", b"3,4,5")
    assert a.heartbeat() is b.heartbeat() is ErrorCode.NONE


def test_rebalance__initial_delay_is_extended_while_members_come() -> None:
    broker = fresh_broker()
    a = Consumer(broker, rebalance_timeout_ms=7000).join()
    broker.at(2000)
    Consumer(broker).join()
    broker.at(5000)
    c = Consumer(broker).join()
    broker.at(6000)
    assert a.is_joining, "b came within the first delay, c within the second"
    broker.at(7000)
    assert a.joined.error_code == ErrorCode.NONE, "the third delay is what is left of 7 s"
    assert len(a.joined.members) == 3
    assert c.joined.generation_id == 1


def test_rebalance__third_member_makes_all_join_again() -> None:
    a, b = two_members()
    c = Consumer(a.broker, name="c").join()
    assert c.is_joining
    assert a.heartbeat() is b.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS

    a.join()
    assert a.is_joining
    b.join()
    settle(a, b, c)
    assert a.generation == b.generation == c.generation == 2
    assert c.synced.assignment == b"part of c"


def test_rebalance__member_that_is_silent_expires() -> None:
    a, b = two_members()
    broker = a.broker
    broker.at(15_999)
    assert a.heartbeat() is ErrorCode.NONE
    broker.at(16_000)
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS, "b was silent for 10 s"
    assert b.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(broker.events[-1], GroupMemberExpired)

    a.join()
    settle(a)
    assert a.generation == 2
    assert [one.member_id for one in a.joined.members] == [a.member_id]


def test_rebalance__member_that_does_not_join_again_in_time_is_dropped() -> None:
    a, b = two_members()
    broker = a.broker
    c = Consumer(broker).join()
    a.join()
    for _ in range(8):
        broker.at(broker.now_ms + 8000)
        if c.is_joining:
            assert b.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert c.joined.generation_id == 2, "60 s rebalance timeout"
    assert [one.member_id for one in a.joined.members] == [a.member_id, c.member_id]
    assert b.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalance__leader_leaves_and_the_next_one_leads() -> None:
    a, b = two_members()
    assert a.leave() is ErrorCode.NONE
    assert b.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    b.join()
    assert b.joined.leader == b.member_id
    settle(b)
    assert b.generation == 2


def test_rebalance__last_member_leaves_an_empty_group() -> None:
    a, b = two_members()
    assert a.leave() is ErrorCode.NONE
    assert b.leave() is ErrorCode.NONE
    assert text_of(a.broker.events[-1]).startswith("generation 2: empty; ")
    c = Consumer(a.broker).join()
    assert c.is_joining, "an empty group waits again for more members"
    a.broker.at(a.broker.now_ms + 3000)
    assert c.joined.generation_id == 3


def test_rebalance__leader_that_joins_again_starts_one() -> None:
    a, b = two_members()
    a.join()
    assert a.is_joining
    assert b.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_rebalance__follower_that_joins_again_unchanged_gets_its_generation() -> None:
    a, b = two_members()
    b.join()
    assert b.joined.generation_id == 1
    assert a.heartbeat() is ErrorCode.NONE
    b.protocols = {"range": b"\0\0changed"}
    b.join()
    assert b.is_joining
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_rebalance__member_without_sync_is_removed() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker).join(), Consumer(broker).join()
    broker.at(6000)
    assert a.joined is not None
    assert b.joined is not None
    a.sync({})
    for _ in range(8):
        broker.at(broker.now_ms + 7500)
        if b.member_id:
            b.heartbeat()
            a.heartbeat()
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert b.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalance__sync_waiters_learn_of_the_next_one() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker).join(), Consumer(broker).join()
    broker.at(6000)
    assert a.joined is not None
    assert b.joined is not None
    b.sync()
    Consumer(broker).join()
    assert b.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    a.sync({})
    assert a.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_rebalance__assignment_that_cannot_be_stored_starts_another() -> None:
    broker = fresh_broker()
    a = Consumer(broker).join()
    broker.at(3000)
    assert a.joined is not None
    broker.drop_follower()
    a.sync({a.member_id: b"x"})
    assert a.synced.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_rebalance__assignment_waits_until_it_is_committed() -> None:
    broker = fresh_broker()
    a = Consumer(broker).join()
    broker.at(3000)
    assert a.joined is not None
    broker.pause_follower()
    a.sync({a.member_id: b"x"})
    assert a.is_syncing
    broker.resume_follower()
    assert a.synced.assignment == b"x"


def test_rebalance__protocol_is_chosen_by_votes_among_the_common() -> None:
    broker = fresh_broker()
    old = {"range": b"", "sticky": b""}
    a = Consumer(broker, protocols={"cooperative": b"", "sticky": b"", "range": b""}).join()
    b = Consumer(broker, protocols=old).join()
    c = Consumer(broker, protocols=old).join()
    d = Consumer(broker, protocols={"other": b""}).join()
    assert d.joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    broker.at(9000)
    assert {x.joined.protocol_name for x in (a, b, c)} == {"range"}


def test_events__of_a_member_from_its_join_to_its_end() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker, name="a").join(), Consumer(broker, name="b").join()
    broker.at(6000)
    assert a.joined.leader == b.joined.leader == a.member_id
    b.sync()
    a.sync(
        {
            a.member_id: encode_assignment([("orders", 0), ("orders", 1)]),
            b.member_id: encode_assignment([("orders", 2)]),
        }
    )
    a.leave()
    kinds = (GroupMemberJoined, GroupRebalanced, GroupAssigned, GroupMemberLeft)
    joined_a, joined_b, rebalanced, assigned, left = (
        event for event in broker.events if isinstance(event, kinds)
    )
    assert isinstance(joined_a, GroupMemberJoined)
    assert isinstance(joined_b, GroupMemberJoined)
    assert (joined_a.member, joined_b.member) == (a.member_id, b.member_id)
    assert joined_a.client_id == "a"
    assert isinstance(rebalanced, GroupRebalanced)
    assert assigned == GroupAssigned(
        rebalanced.group,
        1,
        (
            AssignedPartitions(a.member_id, "orders", (0, 1)),
            AssignedPartitions(b.member_id, "orders", (2,)),
        ),
    )
    assert left == GroupMemberLeft(rebalanced.group, a.member_id, Departure.LEFT)
    short = a.member_id[:10]
    assert text_of(assigned).startswith(f"generation 1: orders-0,1 to {short}; orders-2 to b-")
    assert text_of(left) == f"member {short} left"


def test_events__a_member_that_does_not_join_again_in_time_was_removed() -> None:
    broker = fresh_broker()
    patient: dict[str, Any] = {"session_timeout_ms": 100_000, "rebalance_timeout_ms": 60_000}
    a = Consumer(broker, name="a", **patient).join()
    b = Consumer(broker, name="b", **patient).join()
    broker.at(6000)
    settle(a, b)
    Consumer(broker, name="c", **patient).join()
    a.join()
    broker.at(70_000)
    (left,) = [one for one in broker.events if isinstance(one, GroupMemberLeft)]
    assert (left.member, left.departure) == (b.member_id, Departure.NOT_JOINED)
    assert text_of(left).endswith("removed: it sent no JoinGroup within the rebalance timeout")


def test_rebalance__a_static_member_without_a_rebalance_timeout_does_not_stop_time() -> None:
    broker = fresh_broker()
    static = Consumer(broker, instance_id="one", rebalance_timeout_ms=-1).join()
    other = Consumer(broker).join()
    broker.at(6_000)
    settle(static, other)
    assert other.leave() is ErrorCode.NONE
    broker.at(6_100)
    assert broker.now_ms == 6_100
