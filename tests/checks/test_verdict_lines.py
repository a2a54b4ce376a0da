"""What was deleted on purpose, replicas that differ, and a verdict as JSON and in lines."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.checks.verdict import InvalidRunError
from kcluster.checks.verdict_facts import INVALID, VALID, Remedy, RemedyKind
from kcluster.checks.verdict_words import duration_text, moment_text, unsettled_text
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import parse_batches
from tests.rig.stage import Stage


def test_deleted__records_are_not_lost() -> None:
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


def test_deleted__records_of_a_recreated_topic_are_not_lost() -> None:
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


def test_verdict__replicas_that_differ_at_the_end_are_a_violation() -> None:
    stage = Stage()
    stage.hand().produce(1, [b"a"])
    stage.run_for(100)
    log = next(iter(stage.plan.disks[2]))
    other = bytearray(log.segments[0].batches[0].buffer)
    other[17] ^= 0xFF
    log.segments[0].batches[:1] = parse_batches(other)
    verdict = stage.verdict()
    assert verdict.outcome == INVALID
    (violation,) = verdict.violations
    assert violation.name == "committed-differs"
    assert str(violation).startswith(
        f"committed-differs at {violation.at_ms} ms: orders-0 on broker 2: "
    )


def test_verdict__json_has_the_same_facts_as_the_lines() -> None:
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


def test_verdict__a_valid_one_is_true() -> None:
    stage = Stage()
    stage.hand().produce(1, [b"a"])
    stage.run_for(100)
    verdict = stage.verdict()
    assert verdict
    verdict.check()


def test_verdict__of_a_lost_record_has_a_summary_of_three_lines() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(2, [b"a"], acks=0)
    stage.run_for(100)
    verdict = stage.verdict()
    assert not verdict
    outcome, lost, cause = verdict.summary()
    assert outcome == "invalid: 1 lost-write"
    assert lost.startswith("lost-write: orders-0: a, sent with acks=0, is not in the log")
    assert cause.startswith("because: +")
    with pytest.raises(InvalidRunError) as refused:
        verdict.check()
    assert str(refused.value) == repr(verdict) == "\n".join(verdict.summary())


def test_verdict__a_run_without_sends_is_not_known_to_be_good() -> None:
    verdict = Stage().verdict()
    assert not verdict
    assert verdict.summary()[0] == "unknown: nothing was sent"


def test_verdict__records_that_are_read_again_are_counted_apart() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a", b"b"])
    stage.run_for(100)
    for _ in range(2):
        hand.read(1, 0)
        stage.run_for(100)
    verdict = stage.verdict()
    assert (verdict.read, verdict.read_again) == (2, 2)
    assert verdict.lines()[-2].endswith("read 2 (and 2 reads again)")
    assert verdict.lines()[-1] == "invalid: 1 nonmonotonic-poll"


def test_verdict__of_a_broken_cluster_names_the_command_that_ends_the_unknown() -> None:
    text = unsettled_text(False, [], [Remedy(RemedyKind.START, (2, 3)), Remedy(RemedyKind.HEAL)])
    assert text == (
        "the cluster was not healed at the end: brokers 2, 3 are down, links are cut or slow;"
        " first: kcluster start down, then kcluster heal"
    )
    paused = unsettled_text(False, [], [Remedy(RemedyKind.RESUME, (1,))])
    assert paused.endswith("broker 1 is paused; first: kcluster resume 1")
    assert unsettled_text(False, [], []) == "the cluster was not healed at the end"
    assert unsettled_text(True, ["orders-0"], [Remedy(RemedyKind.REPAIR)]) == (
        "without a leader at the end: orders-0; first: kafka_cluster.repair()"
    )


def test_verdict__since_a_moment_what_was_lost_before_is_no_matter_of_a_test() -> None:
    unclean: dict[str, Any] = {"unclean.leader.election.enable": "true"}
    stage = Stage(**unclean)
    hand = stage.hand()
    stage.cut(1, 2)
    stage.cut(1, 3)
    hand.produce(1, [b"lost"], acks=1)
    stage.run_for(100)
    stage.kill(1)
    stage.heal()
    stage.run_for(5_000)
    since_ms = stage.now_ms
    assert stage.verdict(healed=False).outcome == INVALID
    stage.start(1)
    hand.produce(2, [b"kept"])
    stage.run_for(5_000)
    hand.read(2, 0)
    stage.run_for(100)
    assert stage.verdict().counts()["lost-write"] == 1
    verdict = stage.verdict(since_ms=since_ms)
    assert (verdict.outcome, verdict.sent, verdict.acked) == (VALID, 1, 1), verdict.lines()
    assert verdict.since_ms == since_ms


@pytest.mark.parametrize(
    ("ms", "duration", "moment"),
    [
        (0, "0 ms", "+0 ms"),
        (999, "999 ms", "+999 ms"),
        (1_000, "1 s", "+1 s"),
        (8_749, "8.7 s", "+8.749 s"),
        (52_000, "52 s", "+52 s"),
        (100_000, "100 s", "+100 s"),
        (3_600_010, "3600 s", "+3600.01 s"),
    ],
)
def test_verdict__times_are_short(ms: int, duration: str, moment: str) -> None:
    assert (duration_text(ms), moment_text(ms)) == (duration, moment)
