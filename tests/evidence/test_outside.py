"""Clients that keep no ledger: their requests and answers, as the brokers saw them."""

from __future__ import annotations

from kcluster.checks.anomalies import find_anomalies
from kcluster.checks.anomalies.base import Anomaly
from kcluster.clients.ledger import Ledger, Outcome
from kcluster.evidence.finals import read_finals
from kcluster.evidence.outside import outside_ledger
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.rig.stage import Stage


def seen(stage: Stage) -> tuple[Ledger, list[Anomaly]]:
    """The ledger and anomalies that brokers alone would show of our own clients."""
    stage.recorder.check_last_step()
    ledger, names = outside_ledger(stage.recorder, Ledger(), lambda _: False)
    finals = read_finals(stage.recorder, names)
    return ledger, find_anomalies(ledger, finals.logs)


def test_outside__sends_and_reads_are_those_that_brokers_answered() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a", b"b"])
    stage.run_for(100)
    hand.produce(1, [b"c"], acks=1)
    hand.produce(1, [b"d"], acks=0)
    hand.produce(2, [b"refused"])
    stage.run_for(100)
    hand.read(1, 0)
    stage.run_for(600)
    ledger, anomalies = seen(stage)
    assert anomalies == []
    assert [(x.value, x.acks, x.offset, x.outcome) for x in ledger.sends] == [
        (b"a", -1, 0, Outcome.ACKED),
        (b"b", -1, 1, Outcome.ACKED),
        (b"c", 1, 2, Outcome.ACKED),
        (b"d", 0, -1, Outcome.ACKED),
    ]
    assert [(x.offset, x.value) for x in ledger.reads] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
        (3, b"d"),
    ]
    assert [x.error for x in ledger.errors] == ["NOT_LEADER_OR_FOLLOWER"]
    assert ledger.late_starts == {}


def test_outside__a_reader_that_begins_behind_unread_records_starts_late() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a"])
    stage.run_for(100)
    hand.produce(1, [b"b"])
    stage.run_for(100)
    hand.read(1, 1)
    stage.run_for(600)
    ledger, _ = seen(stage)
    assert [*ledger.late_starts] == [ledger.reads[0].consumer]


def test_outside__equal_values_are_distinct_and_equal_batches_are_retries() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"x"])
    stage.run_for(10)
    hand.produce(1, [b"x", b"x"])
    stage.run_for(10)
    ledger, anomalies = seen(stage)
    assert [x.value for x in ledger.sends] == [b"x", b"x (2)", b"x (3)"]
    assert anomalies == []
    hand.wire.disconnect(1)
    hand.produce(1, [b"x", b"x"])
    stage.run_for(100)
    ledger, (twice,) = seen(stage)
    assert len(ledger.sends) == 3
    assert (twice.name, twice.count, twice.first, twice.other) == ("duplicate", 2, 1, 3)


def test_outside__an_acked_record_that_is_missing_is_lost() -> None:
    stage = Stage()
    hand = stage.hand()
    stage.cut(1, 2)
    stage.cut(1, 3)
    hand.produce(1, [b"a"], acks=1)
    stage.run_for(100)
    stage.kill(1)
    stage.run_for(5_000)
    _, (lost,) = seen(stage)
    assert str(lost) == ("lost-write: orders-0: a, acked (acks=1) at offset 0, is not in the log")


def test_outside__an_unanswered_send_is_unknown() -> None:
    stage = Stage()
    hand = stage.hand()
    stage.pause(2)
    hand.produce(1, [b"a"])
    stage.run_for(100)
    ledger, anomalies = seen(stage)
    assert [x.outcome for x in ledger.sends] == [Outcome.UNKNOWN]
    assert anomalies == []


def test_outside__commits_are_those_that_brokers_acked() -> None:
    stage = Stage()
    hand = stage.hand()
    for _ in range(2):
        hand.commit(1, "g", 3)
        hand.fetch_offset(1, "g")
        stage.run_for(500)
    ledger, _ = seen(stage)
    known = {(one.group, one.partition, one.offset) for one in ledger.commits}
    assert known <= {("g", ("orders", 0), 3)}


def test_outside__an_old_offset_fetch_of_a_topic_without_a_name_is_no_commit() -> None:
    """Its answer has names only, and the name is empty: it once ended the verdict."""
    stage = Stage()
    hand = stage.hand()
    topic = m.OffsetFetchRequest.OffsetFetchRequestTopic("", [0])
    for _ in range(2):  # the first finds no coordinator, and has one elected
        hand.commit(1, "g", 1)
        find = m.FindCoordinatorRequest(coordinator_keys=["g"])
        hand.wire.send(1, ApiKey.FIND_COORDINATOR, 4, find)
        for broker in (1, 2, 3):
            hand.wire.send(broker, ApiKey.OFFSET_FETCH, 5, m.OffsetFetchRequest("g", [topic]))
        stage.run_for(2_000)
    assert any(getattr(answer, "topics", ()) for answer in hand.answers[-3:])
    ledger, _ = outside_ledger(stage.recorder, Ledger(), lambda _: False)
    assert ledger.commits == []


def stage_without_followers() -> Stage:
    """Broker 1 leads alone and refuses acks=all; the others can be started again."""
    stage = Stage(**{"min.insync.replicas": 2})
    stage.kill(2)
    stage.kill(3)
    stage.run_for(6_000)
    return stage


def with_followers(stage: Stage) -> None:
    stage.start(2)
    stage.start(3)
    stage.run_for(6_000)


def test_outside__refused_requests_give_the_order_and_the_attempts() -> None:
    """Two batches in flight are refused; the second is sent again first."""
    stage = stage_without_followers()
    hand = stage.hand()
    first_ms = stage.now_ms
    hand.produce(1, [b"a"])
    hand.produce(1, [b"b"])
    stage.run_for(100)
    hand.produce(1, [b"b"])
    stage.run_for(100)
    with_followers(stage)
    hand.produce(1, [b"b"])
    hand.produce(1, [b"a"])
    stage.run_for(100)
    ledger, (reordered,) = seen(stage)
    assert [(x.value, x.offset, x.attempts) for x in ledger.sends] == [(b"a", 1, 2), (b"b", 0, 3)]
    assert {x.sent_ms for x in ledger.sends} == {first_ms}
    assert (
        str(reordered) == "nonmonotonic-send: orders-0: b, sent after a, is at offset 0, before 1"
    )


def test_outside__one_client_id_of_two_producers_has_no_order() -> None:
    """Each has its connection; what one repeats later was not sent before what the other wrote."""
    stage = stage_without_followers()
    one, other = stage.hand("app"), stage.hand("app")
    one.produce(1, [b"a"])
    stage.run_for(100)
    with_followers(stage)
    other.produce(1, [b"b"])
    stage.run_for(100)
    one.produce(1, [b"a"])
    stage.run_for(100)
    ledger, anomalies = seen(stage)
    assert anomalies == []
    assert [(x.value, x.attempts) for x in ledger.sends] == [(b"b", 1), (b"a", 2)]
