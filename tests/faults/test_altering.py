"""What effects make of requests and answers: functions of messages, without a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec import Struct

from kcluster.contract import Request
from kcluster.events.rule_effects import AnswerError
from kcluster.faults.altering import (
    batches_of,
    duplicate_of,
    has_records,
    with_altered_records,
    with_caps,
    with_error,
)
from kcluster.faults.calls import served_call_of
from kcluster.faults.records import as_bytes
from kcluster.faults.rules import Rule, rule
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import parse_batches
from kcluster.protocol.records.records import read_records
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_topic

ORDERS, OTHER = b"o" * 16, b"x" * 16


class Part(Struct):
    topic: str
    topic_id: bytes
    partition: int


class Known:
    """What a proxy has seen: one topic, and one fetch session."""

    broker = 1

    def topic_name(self, topic_id: bytes) -> str | None:
        return "orders" if topic_id == ORDERS else None

    def topics(self) -> Iterable[str]:
        return ("orders",)

    def session(self, session_id: int) -> Iterable[Part]:
        return [Part("", ORDERS, 3)] if session_id == 7 else []


KNOWN = Known()


def request(body: Any, version: int = 13) -> Request:
    key = ApiKey.PRODUCE if isinstance(body, m.ProduceRequest) else ApiKey.FETCH
    return Request(5, key, version, 1, "shop", body)


def fetched(parts: Mapping[int, Any], topic_id: bytes = ORDERS) -> m.FetchResponse:
    kind = m.FetchResponse
    data = [kind.PartitionData(at, high_watermark=9, records=each) for at, each in parts.items()]
    return kind(responses=[kind.FetchableTopicResponse("", topic_id, data)])


def values(answer: Any) -> dict[int, list[bytes | None]]:
    return {
        data.partition_index: [
            record.value
            for one in parse_batches(as_bytes(data.records))
            for record in read_records(one)
        ]
        for topic in answer.responses
        for data in topic.partitions
    }


def test_records__only_of_the_partition_that_a_rule_matches() -> None:
    answer = fetched({0: batch(b"a"), 1: batch(b"b"), 2: b""})
    chosen = rule(topic="ord*", partition=1, corrupt="value")
    changed = with_altered_records(chosen, KNOWN, answer)
    assert values(changed) == {0: [b"a"], 1: [b"\x9d"], 2: []}
    assert values(answer) == {0: [b"a"], 1: [b"b"], 2: []}
    assert values(with_altered_records(rule(empty=True), KNOWN, answer)) == {0: [], 1: [], 2: []}
    left = with_altered_records(rule(partition=1, empty=True), KNOWN, answer)
    assert has_records(left)
    assert [data.high_watermark for data in left.responses[0].partitions] == [9, 9, 9]


def test_records__of_a_topic_of_unknown_name_only_for_a_rule_that_takes_all() -> None:
    answer = fetched({0: batch(b"a")}, OTHER)
    assert values(with_altered_records(rule(topic="*", corrupt="value"), KNOWN, answer)) == {
        0: [b"a"]
    }
    assert values(with_altered_records(rule(corrupt="value"), KNOWN, answer)) == {0: [b"\x9e"]}


def test_records__acquired_by_a_share_group_too() -> None:
    kind = m.ShareFetchResponse
    data = kind.PartitionData(partition_index=0, records=parse_batches(batch(b"a")))
    answer = kind(responses=[kind.ShareFetchableTopicResponse(ORDERS, [data])])
    assert values(with_altered_records(rule(corrupt="value"), KNOWN, answer)) == {0: [b"\x9e"]}


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (fetched({0: b"", 1: []}), None),
        (fetched({0: b"", 1: batch(b"a")}), [("orders", 1)]),
        (fetched({0: batch(b"a")}, OTHER), []),
        (None, None),
    ],
)
def test_calls__are_fetches_that_bring_records(answer: Any, named: Any) -> None:
    call = served_call_of(KNOWN, request(fetch_request("orders")), answer)
    assert (None if call is None else call.named()) == named


def produced(transactional_id: str | None = None) -> tuple[m.ProduceRequest, m.ProduceResponse]:
    """A Produce to two partitions, of which one was refused."""
    topic = produce_topic("", {0: batch(b"a", producer_id=4), 1: batch(b"b")}, ORDERS)
    body = m.ProduceRequest(acks=-1, transactional_id=transactional_id, topic_data=[topic])
    kind = m.ProduceResponse
    answers = [
        kind.PartitionProduceResponse(0, 0, 40),
        kind.PartitionProduceResponse(1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
    ]
    return body, kind([kind.TopicProduceResponse("", ORDERS, answers)])


def test_duplicate__copies_what_was_appended_and_no_transaction() -> None:
    body, answer = produced()
    copy = duplicate_of(rule(duplicate=True), KNOWN, batches_of(body), answer)
    assert copy is not None
    assert copy.transactional_id is None
    ((data,),) = (topic.partition_data for topic in copy.topic_data)
    (one,) = parse_batches(data.records)
    assert (data.index, one.producer_id, copy.topic_data[0].topic_id) == (0, -1, ORDERS)
    other = rule(topic="orders", partition=1, duplicate=True)
    assert duplicate_of(other, KNOWN, batches_of(body), answer) is None
    for transactional_id, count in (("t", 0), (None, 1)):
        body, answer = produced(transactional_id)
        call = served_call_of(KNOWN, request(body), answer)
        assert (0 if call is None else 1) == count


def test_error__an_incremental_fetch_gets_it_for_a_partition_of_its_session() -> None:
    failing = rule(api="Fetch", topic="orders", partition=3, answer="KAFKA_STORAGE_ERROR")
    asked = request(fetch_request("orders", session_id=7, max_wait_ms=500))
    assert isinstance(failing.effect, AnswerError)
    altered = with_error(failing, failing.effect, KNOWN, asked)
    assert altered.request is not None
    assert altered.change is not None
    changed: Any = altered.change(m.FetchResponse(session_id=7))
    (data,) = changed.responses[0].partitions
    assert (data.partition_index, data.error_code) == (3, ErrorCode.KAFKA_STORAGE_ERROR)


def test_caps__close_newer_requests_and_show_in_api_versions() -> None:
    caps: list[Rule] = [
        rule(api="Fetch", max_version=4),
        rule(api=["Fetch", "Produce"], max_version=9),
    ]
    closed = with_caps(caps[:1], request(fetch_request("orders", fetch_partition()), 13))
    assert closed.request is None
    assert closed.close_reason == "Fetch version 13 is not served: a rule caps it at 4"
    kind = m.ApiVersionsResponse
    asked = Request(5, ApiKey.API_VERSIONS, 3, 1, "shop", m.ApiVersionsRequest())
    altered = with_caps(caps, asked)
    assert altered.change is not None
    before = kind(
        api_keys=[kind.ApiVersion(0, 3, 13), kind.ApiVersion(1, 4, 18), kind.ApiVersion(3, 0, 13)]
    )
    after: Any = altered.change(before)
    assert [(x.api_key, x.max_version) for x in after.api_keys] == [(0, 9), (1, 4), (3, 13)]
