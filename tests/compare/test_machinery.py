"""The comparison itself: filling, restoring, masking, and finding differences."""

from __future__ import annotations

import pytest

from compare import recorded
from compare.case import Case
from compare.differences import differences
from compare.filling import CaseError, Values, request_of
from compare.plain import plain
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

VALUES = {"now": 1_795_000_000_000, "topic": "t1", "topic_id": b"x" * 16, "port_1": 9092}


def values() -> Values:
    return Values(VALUES)


def test_filling__placeholders_become_values_of_their_type() -> None:
    body = {"topics": [{"name": "{topic}", "partitions": [{"timestamp": "{now+5}"}]}]}
    request = request_of("ListOffsets", body, values())
    assert request.topics[0].name == "t1"
    assert request.topics[0].partitions[0].timestamp == VALUES["now"] + 5
    assert values().fill("a-{topic}") == "a-t1"


def test_filling__an_unknown_placeholder_or_field_is_reported() -> None:
    with pytest.raises(CaseError, match="member"):
        values().fill("{member}")
    with pytest.raises(AssertionError, match="nonsense"):
        request_of("ListOffsets", {"nonsense": 1}, values())


def test_plain__known_values_are_restored_and_defaults_left_out() -> None:
    topic = m.MetadataResponse.MetadataResponseTopic(name="t1", topic_id=b"x" * 16)
    broker = m.MetadataResponse.MetadataResponseBroker(1, "localhost", 9092)
    data = plain("Metadata", m.MetadataResponse(brokers=[broker], topics=[topic]), values())
    assert data == {
        "brokers": [{"node_id": 1, "host": "localhost", "port": "{port_1}"}],
        "topics": [{"name": "{topic}", "topic_id": "{topic_id}"}],
    }


def test_plain__masked_values_show_only_their_presence() -> None:
    data = plain("Metadata", m.MetadataResponse(controller_id=3), values())
    assert data == {"controller_id": "<number>"}
    data = plain("Metadata", m.MetadataResponse(throttle_time_ms=3), values())
    assert data == {"throttle_time_ms": 3}, "throttling is compared"


def test_recorded__consecutive_versions_share_equal_outcomes() -> None:
    merged = recorded.merged({3: "a", 4: "a", 5: "b", 7: "b"})
    assert merged == {"3-4": "a", "5": "b", "7": "b"}
    assert recorded.of_version(merged, 4) == "a"
    with pytest.raises(KeyError):
        recorded.of_version(merged, 6)


def test_differences__are_reported_once_with_versions_and_unexplained_at_first() -> None:
    kafka = {"answer": {"topics": [{"error_code": "A"}, {"error_code": "A"}], "same": 1}}
    ours = {"answer": {"topics": [{"error_code": "B"}, {"error_code": "B"}], "same": 1}}
    found = differences("family: case", {3: (kafka, ours), 4: (kafka, ours), 6: (ours, ours)})
    assert [str(one) for one in found] == [
        'family: case v3-4: answer.topics#0.error_code: Kafka "A", ours "B"'
    ]
    assert found[0].reason is None


def test_differences__lists_of_different_length_are_compared_by_name() -> None:
    pair = ([{"name": "a", "x": 1}, {"name": "b"}], [{"name": "a", "x": 2}])
    found = differences("family: case", {0: pair})
    assert [(one.path, one.ours is not None) for one in found] == [("a.x", True), ("b", True)]


def test_case__versions() -> None:
    assert Case("", ApiKey.FETCH, {}, "4,7-9,17+").each_version() == [4, 7, 8, 9, 17, 18]
    assert Case("", ApiKey.INIT_PRODUCER_ID).each_version() == [0, 1, 2, 3, 4, 5], "6 is unstable"
