"""Filling placeholders, restoring them, masking, the recorded files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kcluster.conform.filling import CaseError, Values, request_of
from kcluster.conform.plain import plain
from kcluster.conform.recorded import Outcomes, Recordings
from kcluster.conform.references import NEWEST, REFERENCES
from kcluster.protocol import messages as m

OLDER = REFERENCES[1]
NOW_MS = 1_795_000_000_000
VALUES = {"now": NOW_MS, "topic": "t1", "topic_id": b"x" * 16, "port_1": 9092}


def values() -> Values:
    return Values(VALUES)


def test_filling__placeholders_become_values_of_their_type() -> None:
    body = {"topics": [{"name": "{topic}", "partitions": [{"timestamp": "{now+5}"}]}]}
    request = request_of("ListOffsets", body, values())
    assert isinstance(request, m.ListOffsetsRequest)
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
