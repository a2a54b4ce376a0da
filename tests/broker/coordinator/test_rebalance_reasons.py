"""Why a group rebalanced: the reason is a value, named as in Kafka's log."""

from __future__ import annotations

import pytest

from kcluster.events.clients import GroupRebalanced
from kcluster.events.rebalance_reasons import (
    AnyRebalanceReason,
    AssignmentNotStored,
    GroupOverCapacity,
    HeartbeatExpired,
    LeaderRejoined,
    Leaver,
    MemberAdded,
    MembersLeft,
    MetadataUpdated,
    PendingSyncExpired,
    ProtocolChanged,
)
from kcluster.events.words import text_of
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, settle


def reasons(broker: GroupBroker) -> list[AnyRebalanceReason]:
    return [event.trigger for event in broker.events if isinstance(event, GroupRebalanced)]


def stable(*members: Consumer) -> GroupBroker:
    """The members' group, stable in generation 1."""
    broker: GroupBroker = members[0].broker
    for member in members:
        member.join()
    broker.at(6000)
    settle(*members)
    assert {member.generation for member in members} == {1}
    return broker


def test_reason__a_member_joined() -> None:
    broker = fresh_broker()
    a = Consumer(broker, name="a")
    stable(a)
    assert reasons(broker) == [MemberAdded(a.member_id)]


def test_reason__members_left() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker, name="a"), Consumer(broker, name="b")
    stable(a, b)
    b.leave()
    settle(a.join())
    assert reasons(broker)[-1] == MembersLeft((Leaver(b.member_id),))


def test_reason__a_member_was_silent() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker, name="a"), Consumer(broker, name="b")
    stable(a, b)
    broker.at(15_999)
    a.heartbeat()
    broker.at(16_000)
    settle(a.join())
    assert reasons(broker)[-1] == HeartbeatExpired(b.member_id)


def test_reason__the_leader_joined_again() -> None:
    broker = fresh_broker()
    a = Consumer(broker, name="a")
    stable(a)
    a.join()
    assert reasons(broker)[-1] == LeaderRejoined(a.member_id)
    a.protocols = {"range": b"\0\0changed"}
    settle(a)
    a.join()
    assert reasons(broker)[-1] == LeaderRejoined(a.member_id), "as in Kafka, changed or not"


def test_reason__a_follower_joined_again_with_other_metadata() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker, name="a"), Consumer(broker, name="b")
    stable(a, b)
    b.protocols = {"range": b"\0\0changed"}
    b.join()
    settle(a.join(), b)
    assert reasons(broker)[-1] == MetadataUpdated(b.member_id)


def test_reason__a_static_member_is_back_while_the_leader_assigns() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker, name="a"), Consumer(broker, name="b", instance_id="i")
    a.join()
    b.join()
    broker.at(6000)
    assert a.joined is not None
    back = Consumer(broker, name="b", instance_id="i").join()
    a.join()
    assert back.joined.generation_id == 2
    assert reasons(broker)[-1] == MetadataUpdated(back.member_id, "i")


def test_reason__a_static_member_is_back_with_another_protocol() -> None:
    broker = fresh_broker()
    a = Consumer(broker, name="a", instance_id="i", protocols={"range": b"", "sticky": b""})
    stable(a)
    back = Consumer(broker, name="a", instance_id="i", protocols={"sticky": b""}).join()
    assert back.joined.protocol_name == "sticky"
    assert reasons(broker)[-1] == ProtocolChanged(back.member_id, "i")


def test_reason__members_sent_no_sync() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker).join(), Consumer(broker).join()
    broker.at(6000)
    assert a.joined is not None
    assert b.joined is not None
    a.sync({})
    for _ in range(8):
        broker.at(broker.now_ms + 7500)
        b.heartbeat()
        a.heartbeat()
    settle(a.join())
    assert reasons(broker)[-1] == PendingSyncExpired((b.member_id,))


def test_reason__the_assignment_was_not_stored() -> None:
    broker = fresh_broker()
    a = Consumer(broker).join()
    broker.at(3000)
    assert a.joined is not None
    broker.drop_follower()
    a.sync({a.member_id: b"x"})
    broker.resume_follower()
    settle(a.join())
    assert reasons(broker)[-1] == AssignmentNotStored("COORDINATOR_NOT_AVAILABLE")


def test_reason__a_loaded_group_is_larger_than_group_max_size() -> None:
    broker = fresh_broker()
    a, b = Consumer(broker, name="a"), Consumer(broker, name="b")
    after = restarted(stable(a, b), group_max_size=1)
    a.broker = b.broker = after
    a.join()
    after.at(after.now_ms + 10_000)
    assert reasons(after) == [GroupOverCapacity(2, 1)]


LONG_ID = "c-9d6262f5-0f2b-4b0f-8f39-6f5b0a3a8f11"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (MemberAdded("m"), "new member m joined; client reason: not provided"),
        (MemberAdded("m", "i", "why"), "new static member i joined as m; client reason: why"),
        (LeaderRejoined("m", "why"), "leader m joined again; client reason: why"),
        (MetadataUpdated("m", None, "x"), "m joined again with new metadata; client reason: x"),
        (MetadataUpdated("m", "i", "why"), "static member i is back as m; client reason: why"),
        (ProtocolChanged("m", "i"), "as m and changes the group's protocol; client reason: not"),
        (MembersLeft((Leaver("a", "x"), Leaver("b"))), "a left; client reason: x; b left; client"),
        (
            MemberAdded(LONG_ID, None, f"need to re-join with the given member-id: {LONG_ID}"),
            "new member c-9d6262f5 joined; client reason: need to re-join with the given"
            " member-id: c-9d6262f5",
        ),
        (HeartbeatExpired("m"), "member m expired: no heartbeat for its session timeout"),
        (PendingSyncExpired(("a", "b")), "no SyncGroup came from a, b"),
        (AssignmentNotStored("NOT_COORDINATOR"), "was not stored: NOT_COORDINATOR"),
        (GroupOverCapacity(3, 2), "the loaded group has 3 members, group.max.size is 2"),
    ],
)
def test_reason__in_words(reason: AnyRebalanceReason, text: str) -> None:
    assert text in text_of(GroupRebalanced("g", 2, ("m",), reason))
