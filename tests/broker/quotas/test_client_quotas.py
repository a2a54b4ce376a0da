"""Client quotas: the throttle time, which quota applies to a client, and that clients in virtual
time keep to theirs, however fast they send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcluster.broker.quotas.client_quotas import throttle_ms
from kcluster.clients.wire import Wire
from kcluster.config.kafka.client_quotas import find_limit
from kcluster.events.clients import ClientThrottled
from kcluster.events.words import text_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig import requests
from tests.rig.cluster import TOPIC, Answer, Simulated

LIMIT = 25_000
LONG_S = 220
"""Kafka's rate lets unused quota through in bursts, every eleven seconds; twenty of them."""
VALUE_BYTES = 5_000
A = m.AlterClientQuotasRequest
R = m.CreateTopicsRequest


def test_throttle_ms__lasts_until_the_rate_is_at_the_limit() -> None:
    assert throttle_ms(15.0, 10.0, 10_000) == 5_000
    assert throttle_ms(10.0, 10.0, 10_000) == 0


# ------------------------------------------------------------------------------- whose quota

C, D = ("client-id", "c"), ("client-id", None)
U, E = ("user", "u"), ("user", None)


def test_find_limit__the_most_specific_quota_applies() -> None:
    key = "producer_byte_rate"
    order: list[Any] = [(C, U), (D, U), (U,), (C, E), (D, E), (E,), (C,), (D,)]
    by_both = [("u", "c"), ("u", "c"), ("u", "")]
    keys = [*by_both, *by_both, ("", "c"), ("", "c")]
    for first, entity in enumerate(order):
        limit = find_limit({one: {key: 7.0} for one in order[first:]}, key, "u", "c")
        assert limit is not None
        assert (limit.entity, limit.rate_key) == (entity, (key, *keys[first]))
    assert find_limit({(U,): {"consumer_byte_rate": 7.0}}, key, "u", "c") is None


# ------------------------------------------------------------------------- in virtual time


def set_quota(t: Simulated, key: str, value: float | None, **names: str | None) -> None:
    entity = [A.EntityData(kind.replace("_", "-"), name) for kind, name in names.items()]
    entry = A.EntryData(entity, [A.OpData(key, value or 0.0, value is None)])
    answer = t.ask(2, ApiKey.ALTER_CLIENT_QUOTAS, 1, A([entry]))
    t.run_for(10)
    (result,) = answer.body.entries
    assert result.error_code == ErrorCode.NONE
    t.run_for(100)


class Eager:
    """Sends the next request as soon as the last one is answered, whatever the answer."""

    deadline_ms: int | None = None

    def __init__(self, api_key: ApiKey, version: int, body_of: Callable[[], Any]) -> None:
        self.question = api_key, version, body_of
        self.answers: list[tuple[int, Any]] = []
        """(when, body)."""

    def start(self, wire: Wire, now_ms: int) -> None:
        self.wire = wire
        self.ask()

    def ask(self) -> None:
        api_key, version, body_of = self.question
        self.wire.send(1, api_key, version, body_of())

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.answers.append((now_ms, body))
        self.ask()

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        raise AssertionError("no broker closes the connection")

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("it has no deadline")


def produce_request() -> Any:
    records = requests.batch(bytes(VALUE_BYTES), timestamp_ms=0)
    return requests.produce_request(TOPIC, 0, records, timeout_ms=30_000)


def fetch_request() -> Any:
    return requests.fetch_request(TOPIC, requests.fetch_partition(partition_max_bytes=10_000))


def fetched_bytes(body: Any) -> int:
    return sum(
        batch.size_bytes
        for topic in body.responses
        for partition in topic.partitions
        for batch in partition.records or ()
    )


def test_producer__keeps_to_its_rate() -> None:
    t = Simulated(latency_ms=1)
    set_quota(t, "producer_byte_rate", LIMIT, client_id=None)
    eager = Eager(ApiKey.PRODUCE, 9, produce_request)
    t.add_client(eager)
    t.run_for(20_000)
    before = len(eager.answers)
    t.run_for(LONG_S * 1_000)
    rate = (len(eager.answers) - before) * (VALUE_BYTES + 130) / LONG_S
    assert rate == pytest.approx(LIMIT, rel=0.03)
    assert any(body.throttle_time_ms for _, body in eager.answers[before:])
    for (at, body), (next_at, _) in zip(eager.answers, eager.answers[1:], strict=False):
        assert next_at - at >= body.throttle_time_ms, "answered first, then muted"
    throttled = t.events_of(ClientThrottled)
    assert "client-id (default): producer_byte_rate " in text_of(throttled[0])
    assert len(throttled) <= LONG_S // 10, "once per burst, not once per request"


def test_consumer__keeps_to_its_rate_and_gets_nothing_while_it_is_over_it() -> None:
    t = Simulated(latency_ms=1)
    for _ in range(4):
        t.ask(1, ApiKey.PRODUCE, 9, produce_request())
    t.run_for(1_000)
    set_quota(t, "consumer_byte_rate", LIMIT, user=None)
    eager = Eager(ApiKey.FETCH, 12, fetch_request)
    t.add_client(eager)
    t.run_for(20_000)
    before = len(eager.answers)
    t.run_for(LONG_S * 1_000)
    rate = sum(fetched_bytes(body) for _, body in eager.answers[before:]) / LONG_S
    assert rate == pytest.approx(LIMIT, rel=0.04)
    assert all(not b.responses for _, b in eager.answers if b.throttle_time_ms)


def test_consumer__a_fetch_above_the_quota_is_reduced_to_it() -> None:
    t = Simulated()
    for _ in range(4):
        t.ask(1, ApiKey.PRODUCE, 9, produce_request())
    set_quota(t, "consumer_byte_rate", 600, client_id=None)
    answer = t.ask(1, ApiKey.FETCH, 12, fetch_request())
    assert VALUE_BYTES < fetched_bytes(answer.body) < 2 * VALUE_BYTES


def test_consumer__a_throttled_session_gets_its_records_later() -> None:
    t = Simulated()
    node: Any = t.dispatcher.processes[1].node
    opening = fetch_request()
    opening.session_epoch = 0
    session_id = t.ask(1, ApiKey.FETCH, 12, opening).body.session_id
    assert session_id
    t.ask(1, ApiKey.PRODUCE, 9, produce_request())
    set_quota(t, "consumer_byte_rate", 1_000, client_id=None)
    continuing = [m.FetchRequest(session_id=session_id, session_epoch=e) for e in (1, 2)]
    for body in continuing:
        body.max_wait_ms, body.min_bytes, body.max_bytes = 0, 1, 1 << 20
    limit = A.EntryData([A.EntityData("client-id", None)], [A.OpData("request_percentage", 1e-9)])
    t.ask(2, ApiKey.ALTER_CLIENT_QUOTAS, 1, A([limit]))
    t.run_for(100)
    silent = t.ask(1, ApiKey.FETCH, 12, continuing[0]).body
    assert (silent.throttle_time_ms, silent.responses) == (1_000, [])
    assert silent.session_id == session_id
    sessions = len(node.sessions)
    opening = fetch_request()
    opening.session_epoch = 0
    silent = t.ask(1, ApiKey.FETCH, 12, opening).body
    assert silent.throttle_time_ms
    assert silent.session_id == 0
    assert len(node.sessions) == sessions, "a full fetch that is not answered makes none"
    set_quota(t, "request_percentage", None, client_id=None)
    t.run_for(30_000)
    assert t.ask(1, ApiKey.FETCH, 12, continuing[1]).body.responses[0].partitions[0].high_watermark


def test_consumer__a_throttled_session_gets_a_new_watermark_later() -> None:
    t = Simulated()
    for follower in (2, 3):
        t.plan.fabric.set_latency(1, follower, 5)
    t.produce(b"m1", acks=1)
    opening = fetch_request()
    opening.session_epoch, opening.topics[0].partitions[0].fetch_offset = 0, 1
    opened = t.ask(1, ApiKey.FETCH, 12, opening)
    assert opened.partition.high_watermark == 0, "the followers have not answered yet"
    set_quota(t, "request_percentage", 1e-9, client_id=None)
    session_id = opened.body.session_id
    first, second, third = (
        m.FetchRequest(session_id=session_id, session_epoch=epoch, max_wait_ms=0, min_bytes=1)
        for epoch in (1, 2, 3)
    )
    silent = t.ask(1, ApiKey.FETCH, 12, first).body
    assert (silent.throttle_time_ms, silent.responses) == (1_000, [])
    set_quota(t, "request_percentage", None, client_id=None)
    answered = t.ask(1, ApiKey.FETCH, 12, second).partition
    assert (answered.high_watermark, answered.records or []) == (1, [])
    assert t.ask(1, ApiKey.FETCH, 12, third).body.responses == [], "and once is enough"


def test_requests__count_for_request_percentage() -> None:
    t = Simulated(latency_ms=1)
    set_quota(t, "request_percentage", 0.1, client_id=None)
    eager = Eager(ApiKey.LIST_GROUPS, 4, m.ListGroupsRequest)
    t.add_client(eager)
    t.run_for(20_000)
    before = len(eager.answers)
    t.run_for(LONG_S * 1_000)
    assert (len(eager.answers) - before) / LONG_S == pytest.approx(10, rel=0.04)
    assert max(body.throttle_time_ms for _, body in eager.answers) <= 1_000


def test_quotas__cost_nothing_once_they_are_removed() -> None:
    t = Simulated()
    set_quota(t, "producer_byte_rate", LIMIT, user="ANONYMOUS")
    assert t.replica(1).log is not None
    node: Any = t.dispatcher.processes[1].node
    assert node.quotas.is_active
    set_quota(t, "producer_byte_rate", None, user="ANONYMOUS")
    t.ask(1, ApiKey.LIST_GROUPS, 4, m.ListGroupsRequest())
    assert not node.quotas.is_active


def test_connection__closed_while_muted_is_forgotten() -> None:
    t = Simulated()
    set_quota(t, "producer_byte_rate", 10, client_id=None)
    answer = Answer()
    t.add_client(answer)
    for _ in range(2):
        answer.wire.send(1, ApiKey.PRODUCE, 9, produce_request())
    t.run_for(100)
    end = t.replica(1).log.log_end_offset
    answer.wire.disconnect(1)
    t.run_for(1_000_000)
    assert t.replica(1).log.log_end_offset == end == 1


# ------------------------------------------------------------------------ controller_mutation_rate


def create(t: Simulated, version: int, *partitions: int) -> Any:
    """Create one topic per number of partitions."""
    topics = [R.CreatableTopic(f"t{t.now_ms}-{i}", n, 1) for i, n in enumerate(partitions)]
    return t.ask(1, ApiKey.CREATE_TOPICS, version, R(topics, 5_000)).body


def codes(body: Any) -> list[str]:
    return [ErrorCode(topic.error_code).name for topic in body.topics]


def test_mutations__strict_since_v6() -> None:
    t = Simulated()
    set_quota(t, "controller_mutation_rate", 1, user=None)
    # 11 windows of one second may be used at once, and overdrawn by the last.
    body = create(t, 6, 10, 5, 1)
    assert codes(body) == ["NONE", "NONE", "THROTTLING_QUOTA_EXCEEDED"]
    assert body.throttle_time_ms == 4_000
    t.run_for(1_000)
    body = create(t, 7, 1)
    assert (codes(body), body.throttle_time_ms) == (["THROTTLING_QUOTA_EXCEEDED"], 3_000)
    t.run_for(3_000)
    assert codes(create(t, 7, 1)) == ["NONE"]


def test_mutations__older_clients_are_throttled_only() -> None:
    t = Simulated()
    set_quota(t, "controller_mutation_rate", 1, user=None)
    body = create(t, 5, 10, 5, 1)
    assert (codes(body), body.throttle_time_ms) == (["NONE"] * 3, 5_000)


def test_mutations__partitions_added_and_topics_deleted_count_too() -> None:
    t = Simulated()
    set_quota(t, "controller_mutation_rate", 1, user=None)
    P = m.CreatePartitionsRequest
    for count, wanted in ((20, ErrorCode.NONE), (21, ErrorCode.THROTTLING_QUOTA_EXCEEDED)):
        body = P([P.CreatePartitionsTopic(TOPIC, count, None)], 5_000)
        answer = t.ask(1, ApiKey.CREATE_PARTITIONS, 3, body).body
        assert answer.results[0].error_code == wanted
    answer = t.delete_orders(1).body
    (answered,) = answer.responses
    assert answered.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert answered.topic_id != bytes(16)
    assert answered.error_message is None
    assert answer.throttle_time_ms > 0
