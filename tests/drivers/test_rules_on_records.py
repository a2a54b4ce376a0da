"""Rules on records and versions, on both clocks: what the client sees, and what the log has."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.faults.records import as_bytes
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import check_crc, parse_batches
from kcluster.protocol.records.records import read_records
from tests.drivers.lines import Stage
from tests.rig.lines import CLOSED
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_topic

PRODUCE_VERSION, FETCH_VERSION = 11, 12
MAX_WAIT_MS = 120


@pytest.fixture
def stage(world: Any) -> Any:
    made = Stage(world)
    yield made
    for line in made.lines:
        line.close()


def produce(line: Any, *values: bytes, acks: int = -1, **header: Any) -> dict[int, int]:
    """Produce one batch to orders-0 and, unless acks=0, in vain to orders-1; the errors."""
    records = {at: batch(*values, **header) for at in ((0, 1) if acks else (0,))}
    body = m.ProduceRequest(
        acks=acks, timeout_ms=5_000, topic_data=[produce_topic("orders", records)]
    )
    line.send(ApiKey.PRODUCE, PRODUCE_VERSION, body)
    return {} if not acks else {
        data.index: data.error_code for data in line.outcome().responses[0].partition_responses
    }  # fmt: skip


def fetch(line: Any, offset: int = 0, **more: Any) -> Any:
    """The answer to a fetch of orders-0 from this offset."""
    partitions = [fetch_partition(0, offset)] if offset >= 0 else []
    body = fetch_request("orders", *partitions, max_wait_ms=MAX_WAIT_MS, **more)
    line.send(ApiKey.FETCH, FETCH_VERSION, body)
    return line.outcome()


def values(answer: Any) -> list[bytes | None]:
    """The values of a fetch's answer."""
    return [
        record.value
        for topic in answer.responses
        for data in topic.partitions
        for one in parse_batches(as_bytes(data.records))
        for record in read_records(one)
    ]


def test_duplicate__the_log_has_the_records_twice(stage: Stage) -> None:
    stage.add(api="Produce", topic="orders", nth=2, duplicate=True)
    line = stage.line()
    before = produce(line, b"a")
    assert produce(line, b"b", b"c", producer_id=7, producer_epoch=0, base_sequence=0) == before
    assert produce(line, b"d") == before
    assert values(fetch(line)) == [b"a", b"b", b"c", b"b", b"c", b"d"]
    assert len(stage.hits()) == 1
    assert [(x.calls, x.hits) for x in stage.rig.rules()] == [(3, 1)]


def test_duplicate__only_of_what_a_partition_that_matches_has_appended(stage: Stage) -> None:
    stage.add(partition=1, duplicate=True)
    stage.add(duplicate=True)
    line = stage.line()
    assert produce(line, b"a")[1] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert values(fetch(line)) == [b"a", b"a"]
    assert [(x.calls, x.hits) for x in stage.rig.rules()] == [(0, 0), (1, 1)]


def test_duplicate__not_of_requests_without_an_answer(stage: Stage) -> None:
    stage.add(duplicate=True)
    line = stage.line()
    produce(line, b"a", acks=0)
    assert values(fetch(line)) == [b"a"]
    stage.rig.clear_rules()
    produce(line, b"b", acks=1)
    assert values(fetch(line)) == [b"a", b"b"]


def test_corrupt__the_answer_but_not_the_log(stage: Stage) -> None:
    line = stage.line()
    produce(line, b"a", b"b")
    stage.add(api="Fetch", nth=1, corrupt="crc")
    stage.add(api="Fetch", nth=1, corrupt="value")
    for is_right in (False, True):
        answer = fetch(line)
        assert values(answer) == [b"a", b"\x9d"]
        (data,) = answer.responses[0].partitions
        (one,) = parse_batches(as_bytes(data.records))
        assert (check_crc(one), data.high_watermark) == (is_right, 2)
    assert values(fetch(line)) == [b"a", b"b"]


def test_corrupt__a_rule_counts_answers_with_records(stage: Stage) -> None:
    line = stage.line()
    stage.add(topic="orders", partition=0, times=1, corrupt="value")
    stage.add(topic="orders", partition=1, corrupt="value")
    assert values(fetch(line)) == []
    produce(line, b"a")
    assert values(fetch(line)) == [b"\x9e"]
    assert values(fetch(line)) == [b"a"]
    assert [(x.calls, x.hits) for x in stage.rig.rules()] == [(2, 1), (0, 0)]


def test_corrupt__an_incremental_fetch_too(stage: Stage) -> None:
    line = stage.line()
    produce(line, b"a")
    session_id = fetch(line, session_id=0, session_epoch=0).session_id
    name = stage.add(corrupt="value")
    produce(line, b"b")
    assert values(fetch(line, 1, session_id=session_id, session_epoch=1)) == [b"\x9d"]
    stage.rig.remove_rule(name)
    assert values(fetch(line, 0, session_id=session_id, session_epoch=2)) == [b"a", b"b"]


def test_empty__comes_when_the_fetch_has_waited(stage: Stage) -> None:
    line = stage.line()
    produce(line, b"a")
    stage.add(api="Fetch", first=1, empty=True)
    began = stage.now_ms()
    answer = fetch(line)
    (data,) = answer.responses[0].partitions
    assert (data.error_code, data.high_watermark, as_bytes(data.records)) == (0, 1, b"")
    assert stage.now_ms() - began >= MAX_WAIT_MS - 2
    assert values(fetch(line)) == [b"a"]


def test_schema_id__is_replaced_in_the_answer(stage: Stage) -> None:
    line = stage.line()
    produce(line, b"\0\0\0\0\x07x", b"text", compression="zstd")
    stage.add(api="Fetch", times=1, schema_id=999_999)
    assert values(fetch(line)) == [b"\0\x00\x0f\x42\x3fx", b"text"]
    assert values(fetch(line)) == [b"\0\0\0\0\x07x", b"text"]


def versions(line: Any, version: int = 3) -> Any:
    body = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    line.send(ApiKey.API_VERSIONS, version, body)
    return line.outcome()


def test_max_version__is_reported_and_kept(stage: Stage) -> None:
    line = stage.line()
    highest = {x.api_key: x.max_version for x in versions(line).api_keys}
    name = stage.add(api=["Fetch", "ShareFetch"], max_version=0)
    capped = {x.api_key: x.max_version for x in versions(line).api_keys}
    assert {key for key in highest if key not in capped} == {ApiKey.FETCH, ApiKey.SHARE_FETCH}
    stage.rig.remove_rule(name)
    stage.add(api="Fetch", max_version=FETCH_VERSION - 1)
    capped = {x.api_key: x.max_version for x in versions(line).api_keys}
    assert capped == highest | {ApiKey.FETCH: FETCH_VERSION - 1}
    assert fetch(line) == CLOSED
    again = stage.line()
    again.send(ApiKey.FETCH, FETCH_VERSION - 1, fetch_request("orders", fetch_partition()))
    assert again.outcome().error_code == 0


def test_max_version__of_several_rules_hold_together(stage: Stage) -> None:
    line = stage.line()
    highest = {x.api_key: x.max_version for x in versions(line).api_keys}
    stage.add(api="Fetch", max_version=11)
    stage.add(api="Produce", max_version=9)
    stage.add(api=["Produce", "Metadata"], max_version=8)
    capped = {x.api_key: x.max_version for x in versions(line).api_keys}
    assert capped == highest | {ApiKey.FETCH: 11, ApiKey.PRODUCE: 8, ApiKey.METADATA: 8}


def test_max_version__of_api_versions_itself(stage: Stage) -> None:
    stage.add(api="ApiVersions", max_version=2)
    line = stage.line()
    if hasattr(line, "asked"):
        body = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
        line.send(ApiKey.API_VERSIONS, 3, body)
        line.asked[-1] = (ApiKey.API_VERSIONS, 0)
        answer = line.outcome()
    else:
        answer = versions(line, 3)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    (only,) = answer.api_keys
    assert (only.api_key, only.max_version) == (ApiKey.API_VERSIONS, 2)
    assert versions(line, 2).error_code == 0
