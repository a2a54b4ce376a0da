"""An idempotent producer bumps its epoch: what it sends again is another batch to a leader.

Kafka's Java client 4.4.0 leaves the same records in the log of Apache Kafka 4.4.0 for the first two
stories: second, first, second, third; and first, first, third.
"""

from __future__ import annotations

from kcluster.checks.anomalies.base import Anomaly
from kcluster.checks.settings import Setting
from kcluster.evidence.causes import Cause
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

STORY = """
topology:
  brokers: 3
  topics: {{bills: {{replication_factor: 3, config: {{min.insync.replicas: 2}}}}}}
workload:
  producers:
    - topic: bills
      name: plain
      rate: 1/s
      start: 1500ms
      count: 3
      config: {{request.timeout.ms: 2000, delivery.timeout.ms: 20000, metadata.max.age.ms: 100}}
duration: 10s
steps:
  - {{at: 1s, move: {{partition: bills-0, to: 1}}}}
{steps}
  - {{at: 2s, move: {{partition: bills-0, to: 2}}}}
"""
FIRST_IS_LATE = """
  - {at: 1s, rule: {api: Produce, broker: 1, drop: request}}
  - {at: 1s, rule: {api: Produce, broker: 2, nth: 1, drop: reply, close: true}}
"""
SECOND_IS_REFUSED = """
  - {at: 1s, rule: {api: Produce, broker: 1, drop: reply}}
  - {at: 1s, rule: {api: Produce, broker: 2, nth: 1, answer: MESSAGE_TOO_LARGE}}
"""
ANSWERED_FALSELY = """
  - at: 1s
    rule: {api: Produce, broker: 1, nth: 1, answer: OUT_OF_ORDER_SEQUENCE_NUMBER, after: true}
"""
STALLED = """
topology:
  brokers: 3
  topics: {bills: {replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    replica.lag.time.max.ms: 1500
    replica.high.watermark.checkpoint.interval.ms: 500
    request.timeout.ms: 700
workload:
  producers:
    - topic: bills
      name: plain
      rate: 20/s
      config: {request.timeout.ms: 800, delivery.timeout.ms: 1200}
duration: 3s
steps:
  - {at: 100ms, move: {partition: bills-0, to: 1}}
  - {at: 554ms, pause: client plain, for: 700ms}
  - {at: 1s, kill: 2, for: 5s}
  - {at: 1500ms, pause: client plain, for: 700ms}
"""


def found_in(text: str) -> list[Anomaly]:
    return list(run_scenario(Scenario.parse(text), "virtual").verdict.anomalies)


def texts(anomaly: Anomaly) -> str:
    return "\n".join(entry.text for entry in anomaly.chain)


def test_reordered__a_leader_takes_the_second_batch_as_the_first() -> None:
    """The first batch is lost on its way to the old leader.  The new one has no record of the
    producer and takes the second, whose answer is lost.  Then it refuses the first, and the
    producer sends both again in a new epoch."""
    twice, overtaken = found_in(STORY.format(steps=FIRST_IS_LATE))
    assert (twice.name, overtaken.name) == ("duplicate", "nonmonotonic-send")
    for each in (twice, overtaken):
        assert each.allowed is Setting.EPOCH_BUMP
        assert Cause.EPOCH_BUMP in each.causes
        assert "broker 2 took sequence 1 of plain as its first" in texts(each)
        assert "plain sent its batches of producer epoch 0 again in epoch 1" in texts(each)


def test_duplicate__a_batch_that_fails_takes_the_others_into_a_new_epoch() -> None:
    """KAFKA-14034: the first batch is in the log, its answer is lost; the second is refused for
    good, so the retry of the first has another epoch."""
    (twice,) = found_in(STORY.format(steps=SECOND_IS_REFUSED))
    assert (twice.name, twice.allowed) == ("duplicate", Setting.EPOCH_BUMP)
    assert "as its first" not in texts(twice)


def test_duplicate__a_batch_that_was_appended_fails_at_its_delivery_timeout() -> None:
    """KAFKA-14397: the answer REQUEST_TIMED_OUT is read when the time for delivery is over, because
    the process stood still.  The producer takes it for a proof that the batch is not in the log."""
    (twice,) = found_in(STALLED)
    assert (twice.name, twice.allowed) == ("duplicate", Setting.EPOCH_BUMP)


def test_duplicate__a_sequence_that_was_refused_wrongly_is_not_the_producers_fault() -> None:
    """The producer bumps its epoch here, too, but because the leader refused what it appended."""
    (twice,) = found_in(STORY.format(steps=ANSWERED_FALSELY))
    assert (twice.name, twice.allowed) == ("duplicate", Setting.NONE)
