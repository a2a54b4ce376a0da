"""Responses with an error: every API has a field for one, and each can be encoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import kcluster.broker.node  # noqa: F401  # registers the handlers
from kcluster.broker.registry import SERVED_APIS
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.codec.schema import NEVER
from kcluster.protocol.error_answers import ERROR_FIELDS, ErrorAnswers, is_read, topics_named
from kcluster.protocol.errors import ErrorCode
from tests.protocol.generated import Generator
from tests.rig.requests import produce_topic

ERROR = ErrorCode.INVALID_REQUEST
SERVED = [ApiKey(key) for key in sorted(SERVED_APIS) if APIS[key].versions != NEVER]


def no_name(_topic_id: bytes) -> str | None:
    return None


def codes(answer: Any) -> Iterator[int]:
    """Every error code in a message."""
    if isinstance(answer, list):
        for entry in answer:
            yield from codes(entry)
    elif isinstance(answer, m.Message):
        for name in answer.__struct_fields__:
            value = getattr(answer, name)
            if name in ERROR_FIELDS:
                yield value
            else:
                yield from codes(value)


def sent(api: ApiKey, version: int, answer: Any) -> Any:
    """The answer as a client decodes it."""
    spoken = codec(api, version)
    return spoken.decode_response(b"".join(spoken.encode_response(answer)))


@pytest.mark.parametrize("api", SERVED, ids=lambda api: api.name)
def test_error_answers__every_served_api_has_a_field_for_one(api: ApiKey) -> None:
    first, last = SERVED_APIS[api].min_version, SERVED_APIS[api].max_version
    for version in range(first, last + 1):
        any_has_error = False
        for seed in range(8):
            made = Generator(f"{api}/{version}/{seed}", wild=False)
            request = made.message(f"{APIS[api].name}Request", version)
            answers = ErrorAnswers(api, version, ERROR, no_name)
            answer: Any
            if is_read(api):
                served = made.message(f"{APIS[api].name}Response", version)
                answer, has_error = answers.override(served)
            else:
                answer = answers.answer(request)
                has_error = answer is not None
            if has_error:
                any_has_error = True
                assert ERROR in set(codes(sent(api, version, answer)))
        assert any_has_error, f"{api.name} v{version}"


@pytest.mark.parametrize("api", [x for x in SERVED if not is_read(x)], ids=lambda api: api.name)
def test_error_answers__there_is_one_error_per_requested_item(api: ApiKey) -> None:
    version = SERVED_APIS[api].max_version
    request = Generator(f"{api}", wild=False).message(f"{APIS[api].name}Request", version)
    answer = ErrorAnswers(api, version, ERROR, no_name).answer(request)
    if answer is not None:
        assert set(codes(answer)) <= {int(ERROR), 0}


def produce(*partitions: int) -> m.ProduceRequest:
    topics = [produce_topic(name, dict.fromkeys(partitions)) for name in ("orders", "bills")]
    return m.ProduceRequest(acks=-1, topic_data=topics)


def only(topic: str, partition: int) -> Any:
    return lambda name, number: name == topic and number in (None, partition)


def test_error_answers__answers_to_parts_of_a_request_are_merged() -> None:
    request = produce(0, 1)
    answers = ErrorAnswers(ApiKey.PRODUCE, 9, ERROR, no_name, only("orders", 1))
    rest = answers.rest(request)
    assert rest is not None
    assert topics_named(ApiKey.PRODUCE, 9, rest, no_name) == [
        ("orders", 0),
        ("bills", 0),
        ("bills", 1),
    ]
    assert len(topics_named(ApiKey.PRODUCE, 9, request, no_name)) == 4
    served = ErrorAnswers(ApiKey.PRODUCE, 9, ErrorCode.NONE, no_name).answer(rest)
    errors = answers.answer(request)
    assert served is not None
    assert errors is not None
    merged = sent(ApiKey.PRODUCE, 9, answers.merged(served, errors))
    assert {
        (topic.name, x.index): x.error_code
        for topic in merged.responses
        for x in topic.partition_responses
    } == {("orders", 0): 0, ("orders", 1): ERROR, ("bills", 0): 0, ("bills", 1): 0}


def test_error_answers__nothing_remains_of_a_request_whose_parts_all_fail() -> None:
    answers = ErrorAnswers(ApiKey.PRODUCE, 9, ERROR, no_name, lambda _name, _number: True)
    assert answers.rest(produce(0)) is None


def test_error_answers__topics_by_id() -> None:
    data = produce_topic("", {4: None}, bytes(15) + b"\1")
    request = m.ProduceRequest(topic_data=[data])
    names = {bytes(15) + b"\1": "orders"}
    assert topics_named(ApiKey.PRODUCE, 13, request, names.get) == [("orders", 4)]
    answers = ErrorAnswers(ApiKey.PRODUCE, 13, ERROR, names.get, only("orders", 4))
    answer = sent(ApiKey.PRODUCE, 13, answers.answer(request))
    assert answer.responses[0].topic_id == bytes(15) + b"\1"
    assert answer.responses[0].partition_responses[0].base_offset == -1


def test_error_answers__fetch_errors_are_per_partition_and_session_errors_top_level() -> None:
    kind = m.FetchResponse
    data = kind.PartitionData(partition_index=3, high_watermark=7, records=b"abc")
    served = kind(
        session_id=5, responses=[kind.FetchableTopicResponse("orders", bytes(16), [data])]
    )
    answer, _ = ErrorAnswers(ApiKey.FETCH, 12, ERROR, no_name).override(served)
    assert isinstance(answer, kind)
    (found,) = answer.responses[0].partitions
    assert (answer.error_code, answer.session_id, found.error_code) == (0, 5, ERROR)
    assert (found.partition_index, found.high_watermark, found.records) == (3, -1, b"")
    assert data.error_code == 0
    error = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    answer, _ = ErrorAnswers(ApiKey.FETCH, 12, error, no_name).override(served)
    assert isinstance(answer, kind)
    assert (answer.error_code, answer.responses) == (error, [])


def test_error_answers__group_errors_are_top_level() -> None:
    kind = m.LeaveGroupRequest
    request = kind(group_id="g", members=[kind.MemberIdentity(member_id="a")])
    answer: Any = ErrorAnswers(ApiKey.LEAVE_GROUP, 4, ERROR, no_name).answer(request)
    assert (answer.error_code, answer.members) == (ERROR, [])


def test_error_answers__deleted_topics_by_name_and_directories_by_topic() -> None:
    old = m.DeleteTopicsRequest(topic_names=["orders", "bills"])
    answers = ErrorAnswers(ApiKey.DELETE_TOPICS, 3, ERROR, no_name, only("bills", 0))
    answer: Any = answers.answer(old)
    assert [(x.name, x.error_code) for x in answer.responses] == [("bills", ERROR)]
    kind = m.AlterReplicaLogDirsRequest
    topic = kind.AlterReplicaLogDirTopic(name="orders", partitions=[2])
    request = kind(dirs=[kind.AlterReplicaLogDir(path="/x", topics=[topic])])
    answer = ErrorAnswers(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, ERROR, no_name).answer(request)
    (found,) = answer.results
    assert (found.topic_name, found.partitions[0].partition_index) == ("orders", 2)
