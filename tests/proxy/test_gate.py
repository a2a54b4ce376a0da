"""Rules through a proxy: a client gets the answers that it would get from simulated brokers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster.events.network import RuleAdded, RuleHit, RuleRemoved
from kcluster.faults.rules import Rule, RuleError, rule
from kcluster.protocol import messages as m
from tests.rig.patience import PATIENCE_S
from tests.rig.proxied import PlainClient, Proxied, proxied
from tests.rig.requests import batch, commit_request, fetch_request, produce_request

TOPIC = "orders"
KEPT = {"retention.ms": "-1"}
"""The records have timestamps of 1970, so that their CRCs are the same in every run."""
SILENCE_S = 0.25
"""How long a client waits for an answer that must not come."""

RULES: dict[str, dict[str, Any]] = {
    "error instead of an append": {"api": "Produce", "nth": 2, "answer": "NOT_ENOUGH_REPLICAS"},
    "error after the append": {
        "api": "Produce", "nth": 2, "answer": "REQUEST_TIMED_OUT", "after": True,
    },
    "error for one partition": {
        "api": "Produce", "topic": TOPIC, "partition": 1, "first": 2,
        "answer": "KAFKA_STORAGE_ERROR",
    },
    "error in a fetch": {"api": "Fetch", "nth": 1, "answer": "NOT_LEADER_OR_FOLLOWER"},
    "error in one fetched partition": {
        "api": "Fetch", "topic": TOPIC, "partition": 1, "answer": "OFFSET_OUT_OF_RANGE",
    },
    "error in a commit": {"api": "OffsetCommit", "answer": "REBALANCE_IN_PROGRESS"},
    "lost request": {"api": "Produce", "nth": 2, "drop": "request"},
    "lost answer": {"api": "Produce", "nth": 2, "drop": "reply"},
    "lost answer, connection closed": {
        "api": "Produce", "nth": 2, "drop": "reply", "close": True,
    },
    "lost answer of a commit": {"api": "OffsetCommit", "drop": "reply", "close": True},
    "held, and overtaken by none": {"api": "Produce", "nth": 2, "reorder_ms": 2},
    "closed before": {"api": "Produce", "nth": 3, "close": "before"},
    "closed after": {"api": "Produce", "nth": 3, "close": "after"},
    "throttled": {"api": "Produce", "every": 2, "throttle_ms": 1},
    "delayed": {"api": "Produce", "delay_ms": 2},
    "answer delayed": {"api": "Fetch", "delay_ms": 2, "of": "reply"},
    "appended twice": {"api": "Produce", "nth": 2, "duplicate": True},
    "appended twice, one partition": {
        "api": "Produce", "topic": TOPIC, "partition": 1, "duplicate": True,
    },
    "wrong checksum": {"api": "Fetch", "corrupt": "crc"},
    "wrong value": {"api": "Fetch", "nth": 1, "corrupt": "value"},
    "unknown schema id": {"api": "Fetch", "topic": TOPIC, "partition": 0, "schema_id": 999_999},
    "empty fetch": {"api": "Fetch", "nth": 1, "empty": True},
    "capped version": {"api": "Produce", "max_version": 8},
    "of another client": {"client": "nobody*", "close": "before"},
    "of another version": {"api": "Fetch", "version": (0, 3), "close": "before"},
}  # fmt: skip


SCHEMA_ID = b"\0\0\0\0\7"
"""The beginning of a value in Confluent's wire format."""
SILENT = ("lost request", "lost answer")
SILENT_AT = 1
"""The request whose answer these rules withhold."""


def requests() -> Iterator[tuple[Any, int]]:
    """What the client sends, with versions in which topics have names."""
    for number in range(4):
        values = {0: batch(SCHEMA_ID + b"%d" % number), 1: batch(b"b%d" % number)}
        body = produce_request(TOPIC, 0, None)
        body.topic_data[0].partition_data = [
            m.ProduceRequest.PartitionProduceData(index, data) for index, data in values.items()
        ]
        yield body, 9
    for partition in (0, 1):
        wanted = m.FetchRequest.FetchPartition(partition, fetch_offset=0)
        wanted.partition_max_bytes = 1 << 20
        yield fetch_request(TOPIC, wanted, max_wait_ms=0), 12
    yield commit_request("billing", 3), 8
    yield m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=TOPIC)]), 9


def seen(answer: Any) -> Any:
    """What of an answer must be equal: all but addresses and times."""
    match answer:
        case m.MetadataResponse():
            return [(x.name, x.error_code) for x in answer.topics]
        case m.ProduceResponse():
            return answer.throttle_time_ms, sorted(
                (data.index, data.error_code, data.base_offset)
                for topic in answer.responses
                for data in topic.partition_responses
            )
        case m.FetchResponse():
            return answer.error_code, [
                (data.partition_index, data.error_code, zlib.crc32(bytes(data.records or b"")))
                for topic in answer.responses
                for data in topic.partitions
            ]
    return [(x.partition_index, x.error_code) for t in answer.topics for x in t.partitions]


def story(connect: Callable[[], PlainClient], silent_at: int) -> list[Any]:
    """What one client gets for each request; it connects again after a silence or an end.
    `silent_at`: the request whose answer must not come; for all others the client is patient."""
    found: list[Any] = []
    client = connect()
    for number, (body, version) in enumerate(requests()):
        client.socket.settimeout(SILENCE_S if number == silent_at else PATIENCE_S)
        try:
            found.append(seen(client.ask(body, version)))
        except TimeoutError:
            found.append("silence")
        except (ConnectionError, AssertionError):
            found.append("closed")
        if found[-1] in ("silence", "closed"):
            client.socket.close()
            client = connect()
    client.socket.close()
    return found


@pytest.fixture(scope="module")
def one() -> Iterator[Proxied]:
    with proxied(1) as found:
        yield found


def with_topic(found: Proxied, after: Callable[[], list[Any]]) -> list[Any]:
    """A story with a new topic, and a coordinator that is there."""
    found.upstream.create_topic(TOPIC, partitions=2, replication_factor=1, config=KEPT)
    try:
        return after()
    finally:
        found.upstream.delete_topic(TOPIC)


@pytest.mark.parametrize("name", RULES)
def test_gate__answers_are_those_of_simulated_brokers(one: Proxied, name: str) -> None:
    made = rule(**RULES[name])
    silent_at = SILENT_AT if name in SILENT else -1
    upstream = one.upstream

    def on_brokers() -> list[Any]:
        added = upstream.add_rule(made)
        try:
            return story(lambda: PlainClient(upstream.bootstrap), silent_at)
        finally:
            upstream.remove_rule(added)

    def on_proxy() -> list[Any]:
        added = one.running.call(lambda proxy: proxy.gate.add(made))
        try:
            return story(lambda: one.client(1), silent_at)
        finally:
            one.running.call(lambda proxy: proxy.gate.remove(added))

    expected = with_topic(one, on_brokers)
    assert with_topic(one, on_proxy) == expected
    assert len(expected) == 8


def add(one: Proxied, made: Rule) -> str:
    return one.running.call(lambda proxy: proxy.gate.add(made))


def test_gate__a_rules_life_is_in_the_events(one: Proxied) -> None:
    before = len(one.rows.events)
    name = add(one, rule(api="Metadata", close="before"))
    with one.client(1, "cut") as client:
        client.send(m.MetadataRequest(topics=None))
        assert client.is_closed()
    one.running.call(lambda proxy: proxy.gate.remove(name))
    events = one.rows.events[before:]
    added, hit, removed = events
    assert isinstance(added, RuleAdded)
    assert isinstance(hit, RuleHit)
    assert (hit.api, hit.broker, hit.client_id) == ("Metadata", 1, "cut")
    assert isinstance(removed, RuleRemoved)
    assert (removed.hits, removed.calls) == (1, 1)
    with one.client(1) as client:
        assert client.ask(m.MetadataRequest(topics=None)).brokers


def test_gate__a_request_is_overtaken_by_one_of_another_connection(one: Proxied) -> None:
    name = add(one, rule(api="Metadata", nth=1, reorder_ms=30_000))
    with one.client(1) as first, one.client(1) as second:
        held = first.send(m.MetadataRequest(topics=None))
        assert second.ask(m.MetadataRequest(topics=None)).brokers
        assert first.receive(held).brokers
    one.running.call(lambda proxy: proxy.gate.remove(name))


def test_gate__a_removed_rule_lets_go(one: Proxied) -> None:
    name = add(one, rule(api="Metadata", reorder_ms=30_000, first=1))
    with one.client(1) as client:
        held = client.send(m.MetadataRequest(topics=None))
        while not one.running.call(lambda proxy: proxy.gate.book.entries[name].hits):
            pass
        one.running.call(lambda proxy: proxy.gate.remove(name))
        assert client.receive(held).brokers


def test_gate__stale_metadata_is_refused_with_the_reason(one: Proxied) -> None:
    with pytest.raises(RuleError, match="which a proxy does not have"):
        add(one, rule(stale=True))
    add(one, rule(name="twice", close="before", client="x"))
    with pytest.raises(RuleError, match="there is a rule twice already"):
        add(one, rule(name="twice", close="before", client="x"))
    one.running.call(lambda proxy: proxy.gate.remove("twice"))
