"""A proxy before simulated brokers: what clients see, and what they do not."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from msgspec import Struct

from kcluster.protocol import messages as m
from kcluster.protocol.records.batches import parse_batches
from kcluster.proxy.proxy import ProxySettings
from kcluster.proxy.running import RunningProxy
from kcluster.runs.proxied_rows import EXCHANGES
from tests.rig.patience import PATIENCE_S
from tests.rig.proxied import PlainClient, Proxied, Rows, addresses, proxied
from tests.rig.requests import batch, fetch_request, produce_request

TOPIC = "orders"
VERSIONS = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")


def leader(three: Proxied) -> int:
    return int(three.upstream.leader(TOPIC, 0))


def coordinator(client: PlainClient, version: int) -> Any:
    """The answer about a group's coordinator, once there is one."""
    request = m.FindCoordinatorRequest(key="g", coordinator_keys=["g"])
    while True:
        answer = client.ask(request, version)
        place = answer if version < 4 else answer.coordinators[0]
        if not place.error_code:
            return place


def test_proxy__brokers_have_the_proxys_addresses(three: Proxied) -> None:
    with three.client() as client:
        answer = client.ask(m.MetadataRequest(topics=None))
        cluster = client.ask(m.DescribeClusterRequest())
    expected = {key: three.broker(key) for key in (1, 2, 3)}
    assert {x.node_id: (x.host, x.port) for x in answer.brokers} == expected
    assert {x.broker_id: (x.host, x.port) for x in cluster.brokers} == expected


def test_proxy__a_coordinators_address_too_in_each_version(three: Proxied) -> None:
    with three.client() as client:
        for version in range(1, 7):
            place = coordinator(client, version)
            assert (place.host, place.port) == three.broker(place.node_id)


def test_proxy__records_go_in_and_come_out(three: Proxied) -> None:
    with three.client(leader(three)) as client:
        topic_id = client.ask(m.MetadataRequest(topics=None)).topics[0].topic_id
        now_ms = time.time_ns() // 1_000_000  # younger than any retention time
        sent = produce_request(TOPIC, 0, batch(b"a", b"b", timestamp_ms=now_ms), topic_id=topic_id)
        (answer,) = client.ask(sent).responses[0].partition_responses
        offset = answer.base_offset
        assert answer.error_code == 0
        wanted = m.FetchRequest.FetchPartition(0, fetch_offset=offset)
        body = client.ask(fetch_request(TOPIC, wanted, topic_id=topic_id, max_wait_ms=5_000))
    (read,) = parse_batches(body.responses[0].partitions[0].records)
    assert (read.base_offset, read.record_count) == (offset, 2)
    (row,) = [x for x in three.rows_of("produced.jsonl") if x.base_offset == offset]
    assert (row.topic, row.partition, row.acks, row.error) == (TOPIC, 0, -1, "")
    assert [x.count for x in row.batches] == [2]
    (row,) = [x for x in three.rows_of("fetched.jsonl") if x.fetch_offset == offset]
    assert [(x.first, x.last, x.count) for x in row.batches] == [(offset, offset + 1, 2)]


def test_proxy__the_new_leader_of_a_refusal_has_the_proxys_address(three: Proxied) -> None:
    other = next(x for x in (1, 2, 3) if x != leader(three))
    with three.client(other) as client:
        topic_id = client.ask(m.MetadataRequest(topics=None)).topics[0].topic_id
        answer = client.ask(produce_request(TOPIC, 0, batch(b"a"), topic_id=topic_id))
    (place,) = answer.node_endpoints
    assert (place.host, place.port) == three.broker(leader(three))


def test_proxy__pipelined_requests_are_answered_in_order(three: Proxied) -> None:
    with three.client() as client:
        sent = [client.send(m.MetadataRequest(topics=None)) for _ in range(50)]
        assert all(client.receive(each).brokers for each in sent)


def test_proxy__without_acks_there_is_no_answer_and_the_next_request_gets_its_own(
    three: Proxied,
) -> None:
    with three.client(leader(three)) as client:
        topic_id = client.ask(m.MetadataRequest(topics=None)).topics[0].topic_id
        client.send(produce_request(TOPIC, 0, batch(b"c"), acks=0, topic_id=topic_id))
        assert client.ask(m.MetadataRequest(topics=None)).brokers


def test_proxy__a_connection_to_a_dead_broker_is_closed_as_by_the_broker() -> None:
    with proxied(2) as pair:
        place = pair.broker(2)
        with PlainClient(place) as before:
            before.ask(VERSIONS)
            pair.upstream.kill(2)
            assert before.is_closed()
        for _ in range(3):
            with PlainClient(place) as after:
                assert after.is_closed()
        pair.upstream.start(2)
        with PlainClient(place) as again:
            assert again.ask(VERSIONS).api_keys
        said = [line for line in pair.lines() if line.startswith("broker 2")]
        assert [line.partition(":")[0] for line in said] == [
            "broker 2 cannot be reached",
            "broker 2 is reached again",
        ]


class SlowRows(Rows):
    """A record that is written once the client has its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.has_answer = threading.Event()
        self.waited: list[bool] = []

    def put(self, file: str, row: Struct) -> None:
        self.waited.append(self.has_answer.wait(PATIENCE_S))
        super().put(file, row)


def test_proxy__no_client_waits_for_the_record(three: Proxied) -> None:
    rows = SlowRows()
    settings = ProxySettings(addresses(three.upstream.bootstrap), base_port=0)
    with RunningProxy(settings, sink=rows) as running:
        with PlainClient(running.bootstrap) as client:
            client.ask(m.ListGroupsRequest(), 4)
            rows.has_answer.set()
        running.call(lambda _proxy: None)
    assert rows.waited
    assert all(rows.waited)
    assert [row.api for row in rows.of[EXCHANGES]] == ["ListGroups"]


def test_proxy__an_exchange_is_a_row_with_its_latency_and_sizes(three: Proxied) -> None:
    with three.client(2, "measured") as client:
        sent = client.send(m.ListGroupsRequest())
        answer = client.frame()
    (row,) = [x for x in three.rows_of("exchanges.jsonl") if x.client_id == "measured"]
    assert (row.api, row.broker, row.version, row.error) == ("ListGroups", 2, sent[1], "")
    assert (row.correlation_id, row.answer_bytes) == (sent[2], len(answer))
    assert row.latency_us > 0
    assert row.answered_ms >= row.asked_ms


@pytest.mark.parametrize("version", [3, 9, 13])
def test_proxy__acks_are_found_in_each_form_of_the_header(three: Proxied, version: int) -> None:
    with three.client(leader(three)) as client:
        topic_id = client.ask(m.MetadataRequest(topics=None)).topics[0].topic_id
        quiet = produce_request(TOPIC, 0, batch(b"d"), acks=0, topic_id=topic_id)
        quiet.transactional_id = None
        client.send(quiet, version)
        assert client.ask(VERSIONS).error_code == 0
