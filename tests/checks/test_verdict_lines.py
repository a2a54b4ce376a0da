"""What was deleted on purpose, replicas that differ, and a verdict as JSON and in lines."""

from __future__ import annotations

from kcluster.checks.verdict import INVALID, VALID
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.rig.stage import Stage


def test_deleted__records_are_not_lost():
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a"])
    hand.produce(1, [b"b"])
    stage.run_for(100)
    wanted = m.DeleteRecordsRequest.DeleteRecordsPartition(0, 1)
    topic = m.DeleteRecordsRequest.DeleteRecordsTopic("orders", [wanted])
    body = m.DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)
    hand.wire.send(1, ApiKey.DELETE_RECORDS, 2, body)
    stage.run_for(1_000)
    verdict = stage.verdict()
    assert verdict.outcome == VALID
    assert "deleted by retention or DeleteRecords: orders-0, offsets 0 to 0" in verdict.lines()


def test_deleted__records_of_a_recreated_topic_are_not_lost():
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a"])
    stage.run_for(100)
    state = m.DeleteTopicsRequest.DeleteTopicState(name="orders")
    body = m.DeleteTopicsRequest(topics=[state], timeout_ms=5_000)
    hand.wire.send(1, ApiKey.DELETE_TOPICS, 6, body)
    stage.run_for(500)
    creatable = m.CreateTopicsRequest.CreatableTopic("orders", 1, 3)
    again = m.CreateTopicsRequest(topics=[creatable], timeout_ms=5_000)
    hand.wire.send(1, ApiKey.CREATE_TOPICS, 7, again)
    stage.run_for(500)
    verdict = stage.verdict()
    assert verdict.outcome == VALID, verdict.lines()
    assert "deleted with their topic: orders-0, offsets 0 to 0" in verdict.lines()


def test_verdict__replicas_that_differ_at_the_end_are_a_violation():
    stage = Stage()
    stage.hand().produce(1, [b"a"])
    stage.run_for(100)
    log = next(iter(stage.plan.disks[2]))
    own, other = log.segments[0].batches[0], bytearray(log.segments[0].batches[0].buffer)
    other[17] ^= 0xFF
    log.segments[0].batches[0] = type(own)(
        *(
            getattr(own, name)
            for name in (
                "base_offset",
                "last_offset",
                "leader_epoch",
                "attributes",
                "base_timestamp",
                "max_timestamp",
                "producer_id",
                "producer_epoch",
                "base_sequence",
                "record_count",
                "size_bytes",
            )
        ),
        bytes(other),
    )
    verdict = stage.verdict()
    assert verdict.outcome == INVALID
    assert [found.name for found in verdict.violations] == ["committed-differs"]


def test_verdict__json_has_the_same_facts_as_the_lines():
    import msgspec

    stage = Stage()
    hand = stage.hand()
    hand.produce(2, [b"a"], acks=0)
    stage.run_for(100)
    verdict = stage.verdict()
    decoded = msgspec.json.decode(verdict.to_json())
    assert decoded["outcome"] == INVALID
    assert decoded["anomalies"][0]["values"] == ["a", "a"]
    assert decoded["anomalies"][0]["chain"][0]["text"] in "\n".join(verdict.lines())
