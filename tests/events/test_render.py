"""Notes, requests and responses as one line each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcluster.contract import Event, Note, Request
from kcluster.events import KINDS
from kcluster.events.brokers import BrokerFenced
from kcluster.events.clients import AssignedPartitions, GroupAssigned
from kcluster.events.partitions import IsrShrunk, LeaderElected
from kcluster.events.reasons import ElectionKind, Fencing, Unfenced
from kcluster.events.render import (
    KIND_WIDTH,
    FoldedNotes,
    fold,
    folded_line,
    mentions,
    note_line,
    note_values,
    outcome_text,
    request_line,
    request_values,
    subjects_text,
)
from kcluster.events.topics import TopicCreated
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.rig.requests import produce_topic

ORDERS_ID = bytes(range(16))


def note(
    kind: type[LeaderElected | IsrShrunk], partition: int, cause: tuple[int, int] | None = None
) -> Note:
    event: Event = (
        LeaderElected(
            topic="orders",
            partition=partition,
            old_leader=1,
            new_leader=2,
            leader_epoch=3,
            clean=True,
            reason=Unfenced(2),
            election=ElectionKind.IN_SYNC,
        )
        if kind is LeaderElected
        else IsrShrunk(
            topic="orders",
            partition=partition,
            old_isr=(1, 2),
            isr=(2,),
            removed=(1,),
            added=(),
            elr=(),
            partition_epoch=5,
            reason=Unfenced(2),
        )
    )
    return Note((3000, partition + 1), 1_500, event, cause)


def request(api_key: ApiKey, version: int, body: Any, client_id: str | None = "app") -> Request:
    return Request(1, api_key, version, 5, client_id, body)


def test_note_line__has_time_kind_subject_text_and_cause() -> None:
    line = note_line(note(LeaderElected, 0, (3000, 12)), origin_ms=1_000)
    assert line == (
        "    +500 ms  leader_elected         orders-0     leader 1 -> 2, epoch 3: broker 2"
        " unfenced; first active replica in the ISR  [3000.12]"
    )


def test_note_values__are_ready_for_json() -> None:
    values = note_values(note(LeaderElected, 0, (3000, 12)))
    assert values["id"] == [3000, 1]
    assert values["cause"] == [3000, 12]
    assert (values["kind"], values["subject"]) == ("leader_elected", "orders-0")
    assert values["text"].startswith("leader 1 -> 2, epoch 3: ")
    assert values["event"]["election"] == "in_sync"
    assert values["event"]["reason"] == {"kind": "unfenced", "broker": 2}
    assert json.loads(json.dumps(values)) == values


def test_fold__many_equal_changes_of_a_topic_become_one_line() -> None:
    notes = [note(LeaderElected, partition, (3000, 9)) for partition in range(12)]
    (entry,) = fold(notes)
    assert isinstance(entry, FoldedNotes)
    assert "12 partitions (0,1,2,3,4,5,6,7,… 4 more), e.g. orders-0" in folded_line(entry)


def test_fold__few_changes_stay_apart_and_in_order() -> None:
    notes = [note(LeaderElected, 0), note(IsrShrunk, 0), note(IsrShrunk, 1)]
    assert fold(notes) == notes


def test_request_line__produce_shows_partitions_size_and_ok() -> None:
    data = produce_topic("orders", {0: bytes(100), 3: bytes(100)})
    answer = m.ProduceResponse.TopicProduceResponse(
        name="orders",
        partition_responses=[
            m.ProduceResponse.PartitionProduceResponse(index=index) for index in (0, 3)
        ],
    )
    line = request_line(
        2,
        request(ApiKey.PRODUCE, 11, m.ProduceRequest(topic_data=[data])),
        m.ProduceResponse(responses=[answer]),
        100,
        103,
        origin_ms=100,
    )
    assert line == ("      +0 ms  broker 2  Produce v11          app  orders-0,3 (200 B)  ok  3 ms")


def test_request_line__errors_are_named_with_their_subjects() -> None:
    answer = m.ProduceResponse.TopicProduceResponse(
        topic_id=ORDERS_ID,
        partition_responses=[
            m.ProduceResponse.PartitionProduceResponse(index=0, error_code=6),
            m.ProduceResponse.PartitionProduceResponse(index=1),
        ],
    )
    line = request_line(
        1,
        request(ApiKey.PRODUCE, 13, m.ProduceRequest()),
        m.ProduceResponse(responses=[answer]),
        0,
        0,
        {ORDERS_ID: "orders"},
    )
    assert "NOT_LEADER_OR_FOLLOWER orders-0  0 ms" in line


def test_request_line__acks_0_has_no_answer() -> None:
    line = request_line(1, request(ApiKey.PRODUCE, 3, m.ProduceRequest(), None), None, 0, 0)
    assert line.endswith("Produce v3           -  -  no answer  0 ms")


def test_request_line__a_hostile_client_id_cannot_break_the_line() -> None:
    body = m.ApiVersionsRequest()
    line = request_line(
        1,
        request(ApiKey.API_VERSIONS, 4, body, "a\nb\x1b[2J"),
        m.ApiVersionsResponse(error_code=35),
        0,
        0,
    )
    assert "\n" not in line
    assert "\x1b" not in line
    assert "UNSUPPORTED_VERSION" in line


def test_request_line__an_unknown_api_and_error_still_have_a_line() -> None:
    unknown = Request(1, 999, 0, 5, "app", m.HeartbeatRequest(group_id="g"))
    line = request_line(1, unknown, m.HeartbeatResponse(error_code=12_345), 0, 0)
    assert "api 999 v0" in line
    assert "ERROR_12345" in line


def test_request_line__an_incremental_fetch_shows_the_answered_partitions() -> None:
    partition = m.FetchResponse.PartitionData(partition_index=2, records=bytes(64))
    topic = m.FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
    line = request_line(
        1,
        request(ApiKey.FETCH, 12, m.FetchRequest(session_id=7)),
        m.FetchResponse(responses=[topic]),
        0,
        1,
    )
    assert "orders-2 (64 B)  ok" in line


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (m.FindCoordinatorRequest(coordinator_keys=["demo"]), "demo"),
        (m.HeartbeatRequest(group_id="demo"), "demo"),
        (m.DeleteTopicsRequest(topic_names=["a", "b"]), "a b"),
        (
            m.OffsetFetchRequest(
                groups=[
                    m.OffsetFetchRequest.OffsetFetchRequestGroup(
                        group_id="demo",
                        topics=[
                            m.OffsetFetchRequest.OffsetFetchRequestTopics(
                                name="orders", partition_indexes=[0, 1]
                            )
                        ],
                    )
                ]
            ),
            "orders-0,1",
        ),
        (
            m.FetchRequest(
                forgotten_topics_data=[
                    m.FetchRequest.ForgottenTopic(topic="orders", partitions=[1])
                ]
            ),
            "-",
        ),
        (m.ApiVersionsRequest(), "-"),
    ],
)
def test_subjects__are_found_in_every_kind_of_message(body: Any, text: str) -> None:
    assert subjects_text(list(mentions(body, {}))) == text


def test_outcome__top_level_errors_have_no_subject() -> None:
    answer = m.FetchResponse(error_code=70)
    assert outcome_text(list(mentions(answer, {}))) == "FETCH_SESSION_ID_NOT_FOUND"


def test_request_values__list_errors_by_name() -> None:
    answer = m.DeleteTopicsResponse(
        responses=[m.DeleteTopicsResponse.DeletableTopicResult(name="nope", error_code=3)]
    )
    values = request_values(
        1,
        request(ApiKey.DELETE_TOPICS, 5, m.DeleteTopicsRequest(topic_names=["nope"])),
        answer,
        10,
        12,
    )
    assert values["errors"] == [{"error": "UNKNOWN_TOPIC_OR_PARTITION", "subject": "nope"}]
    assert values["subjects"] == ["nope"]
    assert values["took_ms"] == 2


def test_mentions__every_message_of_every_api_can_be_walked() -> None:
    for api_key in ApiKey:
        name = "".join(word.capitalize() for word in api_key.name.split("_"))
        for suffix in ("Request", "Response"):
            try:
                cls = getattr(m, name + suffix)
            except (AttributeError, KeyError):
                continue
            list(mentions(cls(), {}))


def test_note_line__every_kind_fits_its_column() -> None:
    assert max(len(kind) for kind in KINDS) <= KIND_WIDTH


def test_note_line__names_the_subject_once() -> None:
    lines = [
        note_line(Note((3000, 1), 0, event))
        for event in (
            BrokerFenced(broker=3, fencing=Fencing.REQUESTED),
            TopicCreated(topic="orders", partition_count=2, replication_factor=3, configs={}),
        )
    ]
    assert [line.count("broker 3") + line.count("orders") for line in lines] == [1, 1]


def test_note_line__a_member_without_partitions_is_not_named() -> None:
    rows = (AssignedPartitions("left", "orders", ()), AssignedPartitions("right", "orders", (0,)))
    line = note_line(Note((1, 1), 1_500, GroupAssigned("billing", 1, rows), None))
    assert line.endswith("generation 1: orders-0 to right")
