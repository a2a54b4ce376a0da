"""The comparison itself: filling, restoring, masking, and finding differences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compare.case import Case
from compare.cases import families
from compare.checking import repeated
from compare.differences import differences
from compare.filling import CaseError, Values, request_of
from compare.plain import plain
from compare.recorded import Outcomes, Recordings
from compare.references import NEWEST, REFERENCES
from kcluster.broker.registry import SERVED_APIS
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

OLDER = REFERENCES[1]
NOW_MS = 1_795_000_000_000
VALUES = {"now": NOW_MS, "topic": "t1", "topic_id": b"x" * 16, "port_1": 9092}


def values() -> Values:
    return Values(VALUES)


def test_filling__placeholders_become_values_of_their_type() -> None:
    body = {"topics": [{"name": "{topic}", "partitions": [{"timestamp": "{now+5}"}]}]}
    request = request_of("ListOffsets", body, values())
    assert request.topics[0].name == "t1"
    assert request.topics[0].partitions[0].timestamp == NOW_MS + 5
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


def test_recorded__consecutive_versions_share_equal_outcomes(tmp_path: Path) -> None:
    recordings = Recordings(tmp_path)
    outcomes: Outcomes = {"case": {3: "a", 4: "a", 5: "b", 7: "b"}}
    recordings.save("family", NEWEST, outcomes)
    lines = (tmp_path / "family.json").read_text().splitlines()
    assert lines[2:5] == ['  "3-4": "a",', '  "5": "b",', '  "7": "b"']
    assert recordings.load("family", NEWEST) == outcomes
    assert recordings.load("another", NEWEST) == {}


def test_recorded__an_older_release_keeps_what_it_answered_differently(tmp_path: Path) -> None:
    recordings = Recordings(tmp_path)
    recordings.save("family", NEWEST, {"same": {0: "a"}, "new": {0: 1}, "other": {0: "a", 1: "b"}})
    older: Outcomes = {"same": {0: "a"}, "other": {0: "a", 1: "B"}, "gone": {2: "c"}}
    recordings.save("family", OLDER, older)
    text = (tmp_path / OLDER.name / "family.json").read_text()
    assert json.loads(text) == {
        "same": ["same"], "different": {"other": {"1": "B"}, "gone": {"2": "c"}},
    }  # fmt: skip
    loaded = recordings.load("family", OLDER)
    assert loaded == older, "what it was not asked is not in it"


def test_recorded__a_new_recording_of_the_newest_leaves_the_older_ones_as_they_were(
    tmp_path: Path,
) -> None:
    recordings = Recordings(tmp_path)
    outcomes: Outcomes = {"case": {0: "a", 1: "b"}, "dropped": {0: "d"}}
    recordings.save("family", NEWEST, outcomes)
    recordings.save("family", OLDER, outcomes)
    recordings.save("family", NEWEST, {"case": {0: "A", 1: "b", 2: "c"}})
    older = recordings.load("family", OLDER)
    assert older == {"case": {0: "a", 1: "b", 2: "c"}, "dropped": {0: "d"}}, (
        "it serves no version 2"
    )


def test_differences__are_reported_once_with_versions_and_unexplained_at_first() -> None:
    kafka = {"answer": {"topics": [{"error_code": "A"}, {"error_code": "A"}], "same": 1}}
    ours = {"answer": {"topics": [{"error_code": "B"}, {"error_code": "B"}], "same": 1}}
    pairs = {3: (kafka, ours), 4: (kafka, ours), 6: (ours, ours)}
    found = differences("4.4.0", "family: case", pairs)
    assert [str(one) for one in found] == [
        'family: case v3-4: answer.topics#0.error_code: Kafka 4.4.0 "A", ours "B"'
    ]
    assert found[0].reason is None


def test_differences__lists_of_different_length_are_compared_by_name() -> None:
    pair = ([{"name": "a", "x": 1}, {"name": "b"}], [{"name": "a", "x": 2}])
    found = differences("4.4.0", "family: case", {0: pair})
    assert [(one.path, one.ours is not None) for one in found] == [("a.x", True), ("b", True)]


def test_case__versions() -> None:
    assert Case("", ApiKey.FETCH, {}, "4,7-9,17+").each_version(NEWEST) == [4, 7, 8, 9, 17, 18]
    of_transactions = Case("", ApiKey.INIT_PRODUCER_ID)
    assert of_transactions.each_version(NEWEST) == [0, 1, 2, 3, 4, 5], "6 is unstable"


def test_case__an_older_release_is_asked_only_what_it_serves() -> None:
    assert Case("", ApiKey.API_VERSIONS, {}, "newest").each_version(NEWEST) == [5]
    assert Case("", ApiKey.API_VERSIONS, {}, "newest").each_version(OLDER) == [4]
    assert Case("", ApiKey.API_VERSIONS, {}, "5").each_version(OLDER) == []
    assert Case("", ApiKey.UNREGISTER_CONTROLLER).each_version(OLDER) == []
    assert Case("", ApiKey.VOTE).each_version(OLDER) == [0, 1, 2], "the controllers' own"


@pytest.mark.parametrize(
    ("answers", "asked", "recorded"),
    [
        (["a"], 1, "a"),
        (["b", "a"], 2, "a"),
        (["b", "b"], 2, "b"),
        (["b", "c", "b"], 3, "b"),
        (["b", "c", "d"], 3, "d"),
    ],
)
def test_recording__an_answer_that_differs_from_the_known_one_must_come_twice(
    answers: list[str], asked: int, recorded: str
) -> None:
    left = iter(answers)
    assert repeated(lambda: next(left), "a") == recorded
    assert len(answers) - len(list(left)) == asked


OWN_CASES = {
    ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}  # fmt: skip
"""Conversations log in; telemetry is listed only with a reporter of metrics."""


def test_rights__every_api_is_asked_by_each_role() -> None:
    asked = {case.api for case in families(NEWEST)["rights"] if case.by_each_role}
    assert set(SERVED_APIS) - OWN_CASES <= asked
