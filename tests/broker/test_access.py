"""A broker that decides by the ACLs of its own metadata: what lags, what waits, what is noted."""

from __future__ import annotations

from typing import Any

from kcluster.contract import CONTROLLER_ID, ConnectionClosed
from kcluster.events.security import AclsApplied, AclsChanged, AuthorizationDenied
from kcluster.events.words import text_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.security.acls import AclOperation
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_request
from tests.rig.secured import ADMIN, CLOSED, Secured, acl, deny

READ_ORDERS = acl("alice", "read", topic="orders")
DENIED, OK = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE


def fetch(rig: Secured, user: str = "alice", topic: str = "orders", **more: Any) -> int:
    body = fetch_request(topic, fetch_partition(0, 0), max_wait_ms=0)
    answer = rig.ask_as(user, ApiKey.FETCH, 12, body, **more)
    return int(answer.responses[0].partitions[0].error_code)


def produced(rig: Secured, user: str, *topics: str, acks: int = -1, **more: Any) -> Any:
    body = produce_request(topics[0], 0, batch(b"x"), acks=acks)
    for topic in topics[1:]:
        body.topic_data += produce_request(topic, 0, batch(b"x"), acks=acks).topic_data
    return rig.ask_as(user, ApiKey.PRODUCE, 9, body, **more)


def codes(answer: Any) -> dict[str, int]:
    return {row.name: row.partition_responses[0].error_code for row in answer.responses}


# ------------------------------------------------------------------------------ what a broker knows


def test_a_revoked_right__works_until_the_broker_knows_better() -> None:
    rig = Secured(READ_ORDERS, brokers=2, topics={"orders": [[2]]})
    rig.cut(2, CONTROLLER_ID)
    rig.revoke(READ_ORDERS)
    revoked = rig.notes_of(AclsChanged)[-1]
    rig.run_for(3_000)
    assert fetch(rig, broker=2) == OK
    rig.heal()
    rig.run_for(1_000)
    assert fetch(rig, broker=2) == DENIED
    applied = [note for note in rig.notes_of(AclsApplied) if note.cause == revoked.note_id]
    assert [text_of(note.event) for note in applied] == [
        "broker 1 decides by 0 ACLs now: 1 deleted",
        "broker 2 decides by 0 ACLs now: 1 deleted",
    ]
    assert applied[0].at_ms == revoked.at_ms
    assert applied[1].at_ms >= revoked.at_ms + 3_000


def test_the_controller__decides_by_its_own_metadata() -> None:
    """A broker that lags passes the request on, and learns from the answer."""
    rig = Secured(acl("alice", "delete", topic="orders"))
    wanted = m.DeleteTopicsRequest(
        topics=[m.DeleteTopicsRequest.DeleteTopicState("orders")], timeout_ms=5_000
    )
    rig.allow(deny("alice", "delete", topic="*"))
    answer = rig.ask_as("alice", ApiKey.DELETE_TOPICS, 6, wanted)
    assert answer.responses[0].error_code == DENIED
    (event,) = rig.events_of(AuthorizationDenied)
    assert (event.node, event.operation) == (CONTROLLER_ID, AclOperation.DELETE)
    assert text_of(event) == (
        "User:alice denied DELETE on topic orders (test from 10.0.0.5, at the controller):"
        " deny User:alice DELETE on any topic"
    )


def test_brokers__replicate_whatever_the_acls_say() -> None:
    rig = Secured(deny("*", "all", topic="*"), brokers=3, topics={"orders": [[1, 2, 3]]})
    assert codes(produced(rig, ADMIN, "orders")) == {"orders": OK}
    assert sorted(rig.isr) == [1, 2, 3]
    assert not rig.events_of(AuthorizationDenied)


def test_hosts__are_the_clients_addresses() -> None:
    rig = Secured(acl("alice", "read", topic="orders", host="10.0.0.5"))
    assert fetch(rig, host="10.0.0.5") == OK
    assert fetch(rig, host="10.0.0.6") == DENIED


# ------------------------------------------------------------------------------ what waits


def test_a_fetch_session__keeps_a_denied_topic_until_it_is_allowed() -> None:
    rig = Secured(READ_ORDERS)
    produced(rig, ADMIN, "secret")
    body = fetch_request("orders", fetch_partition(0, 0), max_wait_ms=0, session_epoch=0)
    body.topics += fetch_request("secret", fetch_partition(0, 0)).topics

    def rows(answer: Any) -> dict[str, int]:
        return {row.topic: row.partitions[0].error_code for row in answer.responses}

    first = rig.ask_as("alice", ApiKey.FETCH, 12, body)
    assert rows(first) == {"orders": OK, "secret": DENIED}
    again = m.FetchRequest(max_wait_ms=0, session_id=first.session_id, session_epoch=1)
    assert rows(rig.ask_as("alice", ApiKey.FETCH, 12, again)) == {"secret": DENIED}
    rig.allow(acl("alice", "read", topic="secret"))
    again.session_epoch = 2
    allowed = rig.ask_as("alice", ApiKey.FETCH, 12, again)
    assert rows(allowed) == {"secret": OK}
    assert allowed.responses[0].partitions[0].records
    rig.revoke(acl("alice", "read", topic="secret"))
    again.session_epoch = 3
    assert rows(rig.ask_as("alice", ApiKey.FETCH, 12, again)) == {"secret": DENIED}


def test_a_produce__waits_with_what_is_allowed_and_its_answer_has_everything() -> None:
    rig = Secured(acl("alice", "write", topic="orders"), brokers=2, topics={
        "orders": [[1, 2]], "secret": [[1]],
    })  # fmt: skip
    rig.pause(2)
    body = produce_request("orders", 0, batch(b"x"), acks=-1)
    body.topic_data += produce_request("secret", 0, batch(b"x"), acks=-1).topic_data
    number = rig.send("alice", ApiKey.PRODUCE, 9, body)
    rig.run_for(100)
    assert number not in rig.replies
    rig.resume(2)
    rig.wait(lambda: number in rig.replies, "answer")
    assert codes(rig.replies[number]) == {"orders": OK, "secret": DENIED}


def test_a_connection_that_closes__leaves_nothing_behind() -> None:
    rig = Secured(acl("alice", "write", topic="orders"), brokers=2, topics={
        "orders": [[1, 2]], "secret": [[1]],
    })  # fmt: skip
    rig.pause(2)
    body = produce_request("orders", 0, batch(b"x"), acks=-1)
    body.topic_data += produce_request("secret", 0, batch(b"x"), acks=-1).topic_data
    number = rig.send("alice", ApiKey.PRODUCE, 9, body, connection=7)
    rig.dispatcher.dispatch(1, ConnectionClosed(7))
    rig.resume(2)
    rig.run_for(5_000)
    assert number not in rig.replies or codes(rig.replies[number]) == {"orders": OK}
    assert fetch(rig, ADMIN, connection=7) == OK


def test_without_acks__what_is_allowed_is_written_and_the_connection_closed() -> None:
    rig = Secured(acl("alice", "write", topic="orders"))
    assert produced(rig, "alice", "secret", acks=0) == CLOSED
    assert produced(rig, "alice", "orders", "secret", acks=0) == CLOSED
    assert len(rig.values(1)) == 1


# ------------------------------------------------------------------------------ what is noted


def test_a_loop_of_denials__is_four_events() -> None:
    rig = Secured(acl("bob", "read", topic="orders"))
    for _ in range(1_000):
        rig.send("alice", ApiKey.FETCH, 12, fetch_request("orders", fetch_partition(0, 0)))
    events = rig.events_of(AuthorizationDenied)
    assert [event.times for event in events] == [1, 10, 100, 1_000]
    assert text_of(events[-1]) == (
        "User:alice denied READ on topic orders (test from 10.0.0.5, at broker 1, 1,000 times):"
        " no ACL allows it"
    )


def test_a_denial__is_noted_again_after_the_acls_changed() -> None:
    rig = Secured()
    fetch(rig)
    rig.allow(READ_ORDERS)
    fetch(rig)
    rig.revoke(READ_ORDERS)
    fetch(rig)
    events = rig.events_of(AuthorizationDenied)
    assert [event.times for event in events] == [1, 1]
    assert text_of(events[0]).endswith("no ACL concerns topic orders")


def test_what_is_only_left_out__is_no_denial() -> None:
    rig = Secured(READ_ORDERS)
    answer = rig.ask_as("alice", ApiKey.METADATA, 12, m.MetadataRequest(None))
    assert [topic.name for topic in answer.topics] == ["orders"]
    rig.ask_as("alice", ApiKey.LIST_GROUPS, 5, m.ListGroupsRequest())
    assert not rig.events_of(AuthorizationDenied)


# ----------------------------------------------------------------------------- what a group may see


def test_a_regular_expression__does_not_match_what_its_member_may_not_see() -> None:
    rig = Secured(acl("alice", "read", group="g"), READ_ORDERS)
    wanted: dict[str, Any] = {
        "group_id": "g", "member_id": "member", "rebalance_timeout_ms": 60_000,
    }  # fmt: skip
    first = m.ConsumerGroupHeartbeatRequest(
        **wanted, member_epoch=0, subscribed_topic_regex=".*", topic_partitions=[]
    )
    epoch = 0

    def joined() -> bool:
        nonlocal epoch
        body = m.ConsumerGroupHeartbeatRequest(**wanted, member_epoch=epoch) if epoch else first
        answer = rig.ask_as("alice", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)
        epoch = max(epoch, answer.member_epoch) if not answer.error_code else epoch
        assert answer.error_code in (
            OK,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        )
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    rig.ask_as(
        "alice", ApiKey.FIND_COORDINATOR, 6, m.FindCoordinatorRequest(coordinator_keys=["g"])
    )
    rig.run_for(1_000)
    for _ in range(50):
        if joined():
            break
        rig.run_for(5_000)
    described = rig.ask_as(
        ADMIN, ApiKey.CONSUMER_GROUP_DESCRIBE, 1, m.ConsumerGroupDescribeRequest(["g"])
    )
    (member,) = described.groups[0].members
    topics = [topic.topic_name for topic in member.assignment.topic_partitions]
    assert topics == ["orders"]
