"""ElectLeaders: the controller's answer, or a timeout."""

from __future__ import annotations

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker


def elect(election_type: int = 0, timeout_ms: int = 100) -> m.ElectLeadersRequest:
    topics = [m.ElectLeadersRequest.TopicPartitions(topic="a", partitions=[0, 4])]
    return m.ElectLeadersRequest(
        election_type=election_type, topic_partitions=topics, timeout_ms=timeout_ms
    )


def errors(response: m.ElectLeadersResponse) -> list[tuple[str, int, int]]:
    return [
        (topic.topic, partition.partition_id, partition.error_code)
        for topic in response.replica_election_results
        for partition in topic.partition_result
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_elections__the_controller_answers(one: OneBroker, version: int) -> None:
    assert one.ask(ApiKey.ELECT_LEADERS, version, elect()) is None
    answer = m.ElectLeadersResponse()
    assert one.controller_answers(answer) is answer


def test_elections__silence_of_the_controller_times_out(one: OneBroker) -> None:
    one.ask(ApiKey.ELECT_LEADERS, 2, elect())
    response = one.pass_time(100)
    late = ErrorCode.REQUEST_TIMED_OUT
    assert response.error_code == late
    assert errors(response) == [("a", 0, late), ("a", 4, late)]
    assert response.replica_election_results[0].partition_result[0].error_message is None


def test_elections__all_partitions_time_out_without_being_named(one: OneBroker) -> None:
    request = m.ElectLeadersRequest(topic_partitions=None, timeout_ms=0)
    response = one.ask(ApiKey.ELECT_LEADERS, 2, request)
    assert (response.error_code, errors(response)) == (ErrorCode.REQUEST_TIMED_OUT, [])


def test_elections__an_unknown_type_is_an_invalid_request(one: OneBroker) -> None:
    response = one.ask(ApiKey.ELECT_LEADERS, 2, elect(election_type=7))
    bad = ErrorCode.INVALID_REQUEST
    assert (response.error_code, errors(response)) == (bad, [("a", 0, bad), ("a", 4, bad)])
    assert one.asked == []
