"""CreateTopics and similar APIs: the controller's answer, or a timeout."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker, topic_id

TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


def create(*names: str, timeout_ms: int = 500) -> m.CreateTopicsRequest:
    topics = [m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1) for name in names]
    return m.CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


def test_topics__the_controllers_answer_is_forwarded_unchanged(one: OneBroker) -> None:
    assert one.ask(ApiKey.CREATE_TOPICS, 7, create("a")) is None
    assert [topic.name for topic in one.asked[0].message.body.topics] == ["a"]
    answer = m.CreateTopicsResponse(
        topics=[m.CreateTopicsResponse.CreatableTopicResult(name="a", num_partitions=1)]
    )
    assert one.controller_answers(answer) is answer


def test_topics__silence_of_the_controller_is_a_time_out_for_each_topic(one: OneBroker) -> None:
    one.ask(ApiKey.CREATE_TOPICS, 7, create("a", "b", "a"))
    assert one.pass_time(499) is None
    response = one.pass_time(1)
    assert [(t.name, t.error_code) for t in response.topics] == [("a", TIMED_OUT), ("b", TIMED_OUT)]
    assert (response.topics[0].num_partitions, response.topics[0].replication_factor) == (-1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -5])
def test_topics__a_zero_timeout_changes_nothing(one: OneBroker, timeout_ms: int) -> None:
    response = one.ask(ApiKey.CREATE_TOPICS, 7, create("a", timeout_ms=timeout_ms))
    assert response.topics[0].error_code == TIMED_OUT
    assert one.asked == []


def test_topics__deletion_times_out_by_name_and_by_id(one: OneBroker) -> None:
    by_name = m.DeleteTopicsRequest(topic_names=["a"], timeout_ms=0)
    state = m.DeleteTopicsRequest.DeleteTopicState
    by_id = m.DeleteTopicsRequest(
        topics=[state(name=None, topic_id=topic_id("a")), state(name="b")], timeout_ms=0
    )
    (named,) = one.ask(ApiKey.DELETE_TOPICS, 5, by_name).responses
    assert (named.name, named.error_code) == ("a", TIMED_OUT)
    responses = one.ask(ApiKey.DELETE_TOPICS, 6, by_id).responses
    assert [(r.name, r.topic_id) for r in responses] == [(None, topic_id("a")), ("b", bytes(16))]


def test_topics__adding_partitions_times_out_for_each_topic(one: OneBroker) -> None:
    topic = m.CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=3, assignments=None)
    one.ask(ApiKey.CREATE_PARTITIONS, 3, m.CreatePartitionsRequest(topics=[topic], timeout_ms=9))
    (result,) = one.pass_time(9).results
    assert (result.name, result.error_code) == ("a", TIMED_OUT)


def test_topics__unregistering_waits_for_the_inter_broker_timeout(one: OneBroker) -> None:
    one.ask(ApiKey.UNREGISTER_BROKER, 0, m.UnregisterBrokerRequest(broker_id=9))
    assert one.pass_time(one.config.request_timeout_ms - 1) is None
    assert one.pass_time(1).error_code == TIMED_OUT


@pytest.mark.parametrize(
    ("api_key", "versions", "body"),
    [
        (ApiKey.CREATE_TOPICS, range(2, 8), create("a", timeout_ms=0)),
        (ApiKey.DELETE_TOPICS, range(1, 6), m.DeleteTopicsRequest(topic_names=["a"])),
        (ApiKey.CREATE_PARTITIONS, range(4), m.CreatePartitionsRequest()),
    ],
)
def test_topics__every_version_is_answered(
    one: OneBroker, api_key: ApiKey, versions: range, body: Any
) -> None:
    for version in versions:
        assert one.ask(api_key, version, body) is not None
