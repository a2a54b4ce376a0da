"""Protocol faults on both clocks: what the client sees, and what the broker did."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster import rule
from kcluster.events.network import RuleHit
from kcluster.faults.rules import Rule
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.drivers.lines import Stage
from tests.rig.lines import CLOSED, SILENT
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_topic

SILENCE_MS = 150
LIST_VERSION, METADATA_VERSION, FETCH_VERSION = 7, 12, 12
ROUNDING_MS = 2
"""A broker counts in whole ms, and the loop's timers from when its turn began."""


@pytest.fixture
def stage(world: Any) -> Any:
    made = Stage(world)
    yield made
    for line in made.lines:
        line.close()


def produced(*partitions: int, acks: int = -1) -> tuple[int, int, Any]:
    topic = produce_topic("orders", {x: batch(b"v") for x in partitions or (0,)})
    body = m.ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[topic])
    return ApiKey.PRODUCE, 11, body


def listed() -> tuple[int, int, Any]:
    kind = m.ListOffsetsRequest
    parts = [kind.ListOffsetsPartition(partition_index=x, timestamp=-1) for x in (0, 1)]
    body = kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name="orders", partitions=parts)])
    return ApiKey.LIST_OFFSETS, LIST_VERSION, body


def metadata() -> tuple[int, int, Any]:
    return ApiKey.METADATA, METADATA_VERSION, m.MetadataRequest(topics=None)


def codes(answer: Any) -> dict[int, int]:
    """By partition, of an answer to Produce."""
    return {
        found.index: found.error_code
        for topic in answer.responses
        for found in topic.partition_responses
    }


def test_rules__the_third_call_gets_an_error_and_is_not_appended(stage: Stage) -> None:
    stage.add(api="Produce", topic="orders", partition=0, nth=3, answer="NOT_LEADER_OR_FOLLOWER")
    line = stage.line()
    found = []
    for _ in range(4):
        line.send(*produced())
        found.append(codes(line.outcome())[0])
    assert found == [0, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]
    assert stage.end() == 3
    (hit,) = stage.hits()
    assert isinstance(hit.event, RuleHit)
    assert (hit.event.api, hit.event.broker, hit.event.client_id[:4]) in (
        ("Produce", 1, "test"),
        ("Produce", 1, "clie"),
    )
    assert hit.cause is not None
    assert stage.rig.rules()[0].hits == 1


def test_rules__only_matching_partitions_get_the_error(stage: Stage) -> None:
    stage.add(api="Produce", topic="ord*", partition=0, answer="KAFKA_STORAGE_ERROR")
    line = stage.line()
    line.send(*produced(0, 1))
    found = codes(line.outcome())
    # Broker 1 does not lead partition 1: that answer is the broker's own.
    assert found == {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert stage.end() == 0


def test_rules__an_error_after_the_append_keeps_the_record(stage: Stage) -> None:
    stage.add(api="Produce", answer="REQUEST_TIMED_OUT", after=True)
    line = stage.line()
    line.send(*produced())
    answer = line.outcome()
    assert codes(answer) == {0: ErrorCode.REQUEST_TIMED_OUT}
    assert answer.responses[0].partition_responses[0].base_offset == -1
    assert stage.end() == 1


def test_rules__an_error_without_a_reply_closes_the_connection(stage: Stage) -> None:
    stage.add(api="Produce", answer="NOT_LEADER_OR_FOLLOWER")
    line = stage.line()
    line.send(*produced(acks=0))
    assert line.outcome() == CLOSED
    assert stage.end() == 0


def test_rules__an_error_in_one_partition_of_list_offsets(stage: Stage) -> None:
    stage.add(api="ListOffsets", partition=1, answer="LEADER_NOT_AVAILABLE")
    line = stage.line()
    line.send(*listed())
    found = {x.partition_index: x for x in line.outcome().topics[0].partitions}
    assert (found[0].error_code, found[0].offset) == (0, 0)
    assert (found[1].error_code, found[1].offset) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def fetch(session_id: int = 0, epoch: int = 0, *partitions: int) -> tuple[int, int, Any]:
    wanted = [fetch_partition(x) for x in partitions]
    body = fetch_request(
        "orders", *wanted, max_wait_ms=60_000, session_id=session_id, session_epoch=epoch
    )
    return ApiKey.FETCH, FETCH_VERSION, body


def test_rules__a_fetch_session_gets_an_error_for_a_partition_it_did_not_name(stage: Stage) -> None:
    line, writer = stage.line(), stage.line()
    writer.send(*produced())
    writer.outcome()
    line.send(*fetch(0, 0, 0))
    session_id = line.outcome().session_id
    assert session_id
    name = stage.add(api="Fetch", topic="orders", partition=0, answer="FENCED_LEADER_EPOCH")
    line.send(*fetch(session_id, 1))
    # At once: the fetch would wait a minute otherwise.
    (data,) = line.outcome().responses[0].partitions
    assert (data.error_code, data.partition_index) == (ErrorCode.FENCED_LEADER_EPOCH, 0)
    assert not data.records
    stage.rig.remove_rule(name)
    line.send(*fetch(session_id, 2, 0))
    (data,) = line.outcome().responses[0].partitions
    assert data.error_code == 0
    assert data.records


def test_rules__a_dropped_request_is_unanswered_and_not_overtaken(stage: Stage) -> None:
    name = stage.add(api="Produce", nth=1, drop="request")
    line = stage.line()
    line.send(*produced())
    line.send(*produced())
    assert line.outcome(SILENCE_MS) == SILENT
    assert stage.end() == 0
    stage.rig.remove_rule(name)
    assert line.outcome() == CLOSED


@pytest.mark.parametrize(("close", "seen"), [(False, SILENT), (True, CLOSED)])
def test_rules__a_dropped_reply_keeps_the_record(stage: Stage, close: bool, seen: str) -> None:
    stage.add(api="Produce", nth=1, drop="reply", close=close)
    line, other = stage.line(), stage.line()
    line.send(*produced())
    assert line.outcome(SILENCE_MS) == seen
    assert stage.end() == 1
    other.send(*produced())
    assert codes(other.outcome()) == {0: 0}


@pytest.mark.parametrize(("when", "end"), [("before", 0), ("after", 1)])
def test_rules__a_connection_is_closed(stage: Stage, when: str, end: int) -> None:
    stage.add(api="Produce", close=when)
    line = stage.line()
    line.send(*produced())
    assert line.outcome() == CLOSED
    assert stage.end() == end


@pytest.mark.parametrize(("of", "end"), [("request", 0), ("reply", 1)])
def test_rules__a_delay_holds_one_connection(stage: Stage, of: str, end: int) -> None:
    stage.add(api="Produce", nth=1, delay_ms=1_500, of=of)
    line = stage.line()
    began = stage.now_ms()
    line.send(*produced())
    assert line.outcome(SILENCE_MS) == SILENT
    assert stage.end() == end
    assert codes(line.outcome()) == {0: 0}
    assert stage.now_ms() - began >= 1_500 - ROUNDING_MS
    assert stage.end() == 1


def test_rules__a_throttled_connection_is_answered_at_once_and_then_muted(stage: Stage) -> None:
    stage.add(api="Produce", times=1, throttle_ms=300)
    line = stage.line()
    began = stage.now_ms()
    line.send(*produced())
    assert line.outcome().throttle_time_ms == 300
    assert stage.now_ms() - began < 300
    line.send(*produced())
    assert line.outcome().throttle_time_ms == 0
    assert stage.now_ms() - began >= 300 - ROUNDING_MS


def test_rules__a_connection_stays_throttled_when_the_rule_is_removed(stage: Stage) -> None:
    stage.add(api="Produce", throttle_ms=300)
    line, other = stage.line(), stage.line()
    began = stage.now_ms()
    line.send(*produced())
    assert line.outcome().throttle_time_ms == 300
    stage.rig.clear_rules()
    other.send(*produced())
    assert other.outcome().throttle_time_ms == 0
    line.send(*produced())
    assert line.outcome().throttle_time_ms == 0
    assert stage.now_ms() - began >= 300 - ROUNDING_MS
    dispatcher = (stage.rig.driver if hasattr(stage.rig, "driver") else stage.rig).dispatcher
    line.send(*produced())
    line.outcome()
    assert dispatcher.gate is None


def test_rules__stale_metadata_is_answered_until_the_rule_is_removed(stage: Stage) -> None:
    line = stage.line()
    stage.add(stale=True, broker=1)
    stage.rig.move("orders", 0, 2)
    leaders = []
    for connection in (line, stage.line(2)):
        connection.send(*metadata())
        (topic,) = [x for x in connection.outcome().topics if x.name == "orders"]
        leaders.append(next(x.leader_id for x in topic.partitions if x.partition_index == 0))
    assert leaders == [1, 2]
    stage.rig.clear_rules()
    line.send(*metadata())
    (topic,) = [x for x in line.outcome().topics if x.name == "orders"]
    assert {x.leader_id for x in topic.partitions} == {2}


def test_rules__an_error_in_metadata_is_not_cached_for_other_clients(stage: Stage) -> None:
    line = stage.line()
    line.send(*metadata())
    line.outcome()
    name = stage.add(api="Metadata", answer="LEADER_NOT_AVAILABLE")
    for expected in ({ErrorCode.LEADER_NOT_AVAILABLE}, {0}):
        line.send(*metadata())
        assert {topic.error_code for topic in line.outcome().topics} == expected
        if expected != {0}:
            stage.rig.remove_rule(name)


def test_rules__a_reordered_request_is_overtaken_by_another_connection(stage: Stage) -> None:
    stage.add(api="Produce", nth=1, reorder_ms=5_000)
    first, second = stage.line(), stage.line()
    first.send(*produced())
    assert first.outcome(SILENCE_MS) == SILENT
    second.send(*produced())
    offsets = [x.outcome().responses[0].partition_responses[0].base_offset for x in (first, second)]
    assert offsets == [1, 0]


def test_rules__a_reordered_request_proceeds_if_nothing_overtakes_it(stage: Stage) -> None:
    stage.add(api="Produce", nth=1, reorder_ms=200)
    line = stage.line()
    line.send(*produced())
    assert line.outcome(50) == SILENT
    assert codes(line.outcome()) == {0: 0}


def test_rules__only_the_first_matching_rule_applies(stage: Stage) -> None:
    stage.add(name="a", api="Produce", times=1, answer="NOT_ENOUGH_REPLICAS")
    stage.add(name="b", api="Produce", answer="KAFKA_STORAGE_ERROR")
    line = stage.line()
    found = []
    for _ in range(2):
        line.send(*produced())
        found.append(codes(line.outcome())[0])
    assert found == [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]
    assert [(x.name, x.calls, x.hits) for x in stage.rig.rules()] == [("a", 2, 1), ("b", 1, 1)]


def test_rules__only_the_first_20_hits_of_a_rule_are_noted(stage: Stage) -> None:
    name = stage.add(api="Produce", answer="KAFKA_STORAGE_ERROR")
    line = stage.line()
    for _ in range(25):
        line.send(*produced())
        line.outcome()
    assert len(stage.hits()) == 20
    assert stage.rig.rules()[0].hits == 25
    stage.rig.remove_rule(name)
    assert stage.rig.rules() == ()


def test_rules__an_impossible_rule_is_refused(stage: Stage) -> None:
    stage.add(name="a", api="Produce", close="before")
    with pytest.raises(ClusterError, match="there is a rule a already"):
        stage.add(name="a", api="Produce", close="before")
    with pytest.raises(ClusterError, match="no such rule"):
        stage.rig.remove_rule("b")
    with pytest.raises(ClusterError, match="there is no broker 9"):
        stage.rig.add_rule(Rule(effect=rule(close="after").effect, brokers=(9,)))


def test_rules__held_requests_are_lost_when_the_broker_dies(stage: Stage) -> None:
    stage.add(api="Produce", nth=1, delay_ms=1_000)
    line = stage.line()
    line.send(*produced())
    assert line.outcome(50) == SILENT
    stage.rig.kill(1)
    stage.rig.start(1)
    assert line.outcome() == CLOSED
    again = stage.line()
    assert again.outcome(1_100) == SILENT
    assert stage.end() == 0
