"""Replies that brokers owe: how long one may take, and when none is owed any more."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import Reply, Request
from kcluster.invariants.replies import Patience, Replies
from kcluster.invariants.throttled import MutedConnections
from kcluster.protocol import messages as m

BROKER = 1
PATIENCE = Patience(1_000, 30_000)


def request(api_key: int, body: Any = None, connection: int = 7) -> Request:
    return Request(connection, api_key, 0, 1, None, body)


def overdue(replies: Replies, at_ms: int) -> bool:
    return bool(list(replies.overdue(at_ms, PATIENCE)))


@pytest.mark.parametrize(
    ("api_key", "body", "limit_ms"),
    [
        (3, m.MetadataRequest(), 1_000),
        (0, m.ProduceRequest(acks=1, timeout_ms=30_000), 1_000),
        (0, m.ProduceRequest(acks=-1, timeout_ms=5_000), 6_000),
        (0, m.ProduceRequest(acks=-1, timeout_ms=5_000, transactional_id="t"), 36_000),
        (13, m.LeaveGroupRequest(), 31_000),
        (1, m.FetchRequest(max_wait_ms=500), 1_500),
        (19, m.CreateTopicsRequest(timeout_ms=10_000), 41_000),
        (8, m.OffsetCommitRequest(), 31_000),
        (9, m.OffsetFetchRequest(), 31_000),
        (11, m.JoinGroupRequest(session_timeout_ms=10_000, rebalance_timeout_ms=20_000), 71_000),
    ],
)
def test_replies__may_take_as_long_as_the_requests_timeout(
    api_key: int, body: Any, limit_ms: int
) -> None:
    replies = Replies()
    replies.on_request(BROKER, request(api_key, body), 0)
    assert not overdue(replies, limit_ms)
    assert overdue(replies, limit_ms + 1)
    assert not overdue(replies, limit_ms + 2), "it is reported once"


def test_replies__that_were_sent_are_not_owed() -> None:
    replies, sent = Replies(), request(3)
    replies.on_request(BROKER, sent, 0)
    assert replies.on_reply(sent)
    assert not replies.on_reply(sent), "twice"
    assert not overdue(replies, 99_999)


def test_replies__that_a_rule_withholds_are_not_owed_and_may_still_come() -> None:
    replies, sent = Replies(), request(3)
    replies.on_request(BROKER, sent, 0)
    replies.on_withheld(sent)
    assert not overdue(replies, 99_999)
    assert replies.on_reply(sent)


def test_replies__to_what_waits_for_a_group_are_owed_when_its_coordinator_resigns() -> None:
    joins = [request(11, m.JoinGroupRequest("g", 10_000, 20_000)), request(9)]
    replies, other = Replies(), request(14, m.SyncGroupRequest("h"), connection=8)
    for each in (*joins, other):
        replies.on_request(BROKER, each, 0)
    replies.on_resigned(BROKER, lambda group: group == "g", 500)
    replies.on_resigned(2, lambda _: True, 500)
    assert not overdue(replies, 1_500)
    assert [unanswered.request for _, unanswered in replies.overdue(1_501, PATIENCE)] == [
        "JoinGroupRequest"
    ]
    assert not overdue(replies, 31_000)


@pytest.mark.parametrize("how", [{"connection": 7}, {"broker": BROKER}])
def test_replies__are_owed_until_the_connection_or_the_process_ends(how: dict[str, int]) -> None:
    in_time, too_late = Replies(), Replies()
    for replies, at_ms in ((in_time, 1_000), (too_late, 1_001)):
        replies.on_request(BROKER, request(3), 0)
        replies.on_end(at_ms, connection=99)
        replies.on_end(at_ms, **how)
    assert not overdue(in_time, 99_999)
    assert overdue(too_late, 99_999)


def test_replies__of_a_paused_broker_wait_until_it_runs_again() -> None:
    replies = Replies()
    replies.on_request(BROKER, request(3), 0)
    replies.on_pause(BROKER, 500)
    assert not overdue(replies, 99_000)
    replies.on_resume(BROKER, 99_000)
    assert not overdue(replies, 100_000)
    assert overdue(replies, 100_001)


def test_replies__on_a_muted_connection_are_owed_from_its_end() -> None:
    replies, muted = Replies(), MutedConnections()
    throttled = Reply(request(1), m.FetchResponse(throttle_time_ms=2_000))
    assert muted.on_reply(throttled, 500) is None
    replies.on_request(BROKER, request(3), muted.on_request(request(3), 600))
    assert not overdue(replies, 3_500)
    assert overdue(replies, 3_501)


def test_replies__of_a_broker_that_dies_while_paused_are_not_owed() -> None:
    replies = Replies()
    replies.on_request(BROKER, request(3), 0)
    replies.on_pause(BROKER, 500)
    replies.on_end(90_000, broker=BROKER)
    assert not overdue(replies, 99_000)
