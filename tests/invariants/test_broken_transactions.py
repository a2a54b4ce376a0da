"""Broken transactions that one short story shows: each is found by its name, and the sound core is
not."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.coordinator.transactions.coordinator import TransactionCoordinator
from kcluster.broker.coordinator.transactions.markers import MarkerSender
from kcluster.partition.log.log import Log
from kcluster.partition.producers import ProducerStates
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from tests.rig.stage import Stage

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose


def run(text: str) -> RunResult:
    return run_scenario(Scenario.parse(text), "virtual")


def names(result: RunResult) -> set[str]:
    return {violation.name for violation in result.verdict.violations}


TRANSACTIONS = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers:
    - {topic: orders, name: shop, rate: 50/s, stop: 5s, transactions: {every: 10, timeout: 500ms}}
duration: 6s
steps: [{at: 470ms, isolate: {nodes: shop}, for: 3500ms}]
"""


def test_transactions__that_nobody_aborts_are_found_though_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The producer is away for longer than its timeout; it ends the transaction when it is back."""
    assert run(TRANSACTIONS).passed
    monkeypatch.setattr(TransactionCoordinator, "_abort_timed_out", lambda *_: None)
    result = run(TRANSACTIONS)
    assert names(result) == {"transaction-overdue"}
    (found, *_) = result.verdict.violations
    assert "open beyond its timeout" in found.text
    assert found.at_ms - result.began_ms < 3_000
    assert result.verdict.counts() == {}


def test_transactions__whose_markers_come_late_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator forgets the markers of a transaction, until another one is elected."""
    start = MarkerSender.start

    def forgetful(self: MarkerSender, *args: Any) -> None:
        start(self, *args)
        if args[-1] < 4_000:
            self.stop_all()

    steps = "steps: [{at: 5s, stop: transaction_coordinator(shop), for: 500ms}]"
    text = TRANSACTIONS.replace(TRANSACTIONS[TRANSACTIONS.index("steps:") :], steps)
    assert run(text).passed
    monkeypatch.setattr(MarkerSender, "start", forgetful)
    result = run(text)
    assert names(result) == {"transaction-overdue"}
    (found, *_) = result.verdict.violations
    assert "decided, without its markers, for" in found.text
    assert "stuck-transaction" not in result.verdict.counts()


REFUSED = """\
topology:
  brokers: 3
  topics:
    orders: {assignment: [[1, 2, 3]]}
    __transaction_state: {assignment: [[2, 3, 1]], config: {min.insync.replicas: 2}}
workload:
  producers: {topic: orders, rate: 20/s, stop: 2500ms, transactions: {every: 10}}
duration: 9s
steps:
  - {at: 2400ms, node_rule: {api: WriteTxnMarkers, of: reply, delay: 1s}, for: 2s}
  - {at: 2800ms, stop: followers(__transaction_state-0), for: 1500ms}
"""
"""The coordinator learns that its markers are written when its log has too few replicas."""


def test_transaction__whose_completion_is_refused_and_not_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(REFUSED).passed
    monkeypatch.setattr(MarkerSender, "complete_later", lambda *_: None)
    assert names(run(REFUSED)) == {"transaction-overdue"}


GUARDED = """\
topology:
  brokers: 3
  topics:
    orders: {assignment: [[1, 2, 3]]}
    bills: {assignment: [[3, 1, 2]]}
    __transaction_state: {assignment: [[2, 3, 1]]}
    __consumer_offsets: {assignment: [[1, 2, 3]]}
  config: {transaction.abort.timed.out.transaction.cleanup.interval.ms: 300}
workload:
  producers: {topic: orders, rate: 20/s, stop: 5s}
  processors: {topic: orders, to: bills, group: billing, timeout: 1s}
duration: 9s
steps: [{at: 3s, node_rule: {api: AddPartitionsToTxn, from: 1, of: reply, delay: 3s, times: 1}}]
"""
"""The verification of a processor's offsets is late, and the transaction is over before."""


def test_offsets__that_are_appended_after_the_marker_of_their_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both fences must fall: the offsets are of an older epoch than the marker, too."""
    assert names(run(GUARDED)) == set()
    monkeypatch.setattr(ProducerStates, "is_verified", lambda *_: True)
    assert names(run(GUARDED)) == set()
    monkeypatch.setattr(Log, "_check_epoch", lambda *_: None)
    assert names(run(GUARDED)) == {"batch-unverified", "producer-epoch-back"}


PROCESSED = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}, bills: {assignment: [[1, 2, 3]]}}
  config: {offsets.topic.num.partitions: 1}
workload:
  producers: {topic: orders, rate: 20/s, stop: 3s}
  processors: {topic: orders, to: bills, group: billing}
duration: 4s
"""


def test_marker__that_a_group_coordinator_confirms_before_it_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KAFKA-17507: the next transaction found the offsets of this one still open."""
    assert run(PROCESSED).passed
    sound: Any = GroupShard.append_marker

    def append_marker(self: GroupShard, producer: Any, *rest: Any) -> None:
        *others, on_done, now_ms = rest
        sound(self, producer, *others, lambda *_: None, now_ms)
        on_done(ErrorCode.NONE, now_ms)

    monkeypatch.setattr(GroupShard, "append_marker", append_marker)
    result = run(PROCESSED)
    assert names(result) == {"marker-before-commit"}
    (first, *_) = result.verdict.violations
    assert first.subject.startswith("__consumer_offsets-0 on broker ")


def test_marker__that_an_administrator_is_told_of_before_it_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=7,
        producer_epoch=0,
        topics=[m.WriteTxnMarkersRequest.WritableTxnMarkerTopic("orders", [0])],
    )
    found = []
    for is_broken in (False, True):
        stage = Stage()
        hand = stage.hand()
        if is_broken:
            monkeypatch.setattr(Replica, "acks_reached", lambda *_: ErrorCode.NONE)
        request = m.WriteTxnMarkersRequest(markers=[marker])
        hand.wire.send(1, ApiKey.WRITE_TXN_MARKERS, 1, request)
        stage.run_for(500)
        stage.recorder.check_last_step()
        (answer,) = hand.answers
        assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE
        found.append([one.name for one in stage.recorder.invariants.violations])
    assert found == [[], ["marker-before-commit"]]


SILENT = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {producer.id.expiration.ms: 1000, producer.id.expiration.check.interval.ms: 200}
workload:
  producers:
    - {topic: orders, name: shop, rate: 20/s, transactions: {every: 10, timeout: 3s}}
    - {topic: orders, name: plain, rate: 5/s}
  consumers: {partitions: orders-0, isolation: read_committed}
duration: 8s
steps: [{at: 2100ms, kill: client shop}]
"""
"""A producer dies in the middle of a transaction, and would be forgotten before its timeout."""


def test_transaction__whose_producer_is_forgotten_while_it_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(SILENT).passed

    def remove_expired(self: ProducerStates, now_ms: int, expiration_ms: int) -> None:
        self.states = {
            producer_id: state
            for producer_id, state in self.states.items()
            if now_ms - state.last_timestamp < expiration_ms
        }

    monkeypatch.setattr(ProducerStates, "remove_expired", remove_expired)
    assert set(run(SILENT).verdict.counts()) == {"unseen"}


DELETED = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {segment.ms: 100, retention.ms: 1000}}}
  config: {log.initial.task.delay.ms: 100, log.retention.check.interval.ms: 100}
workload:
  producers: {topic: orders, rate: 20/s, transactions: {every: 10, abort: 100%}}
duration: 5s
steps: [{at: 4s, move: {partition: orders-0, to: 2}}]
"""
"""Segments are shorter than transactions, so that the log begins within one that was aborted."""


def test_aborted_transaction__within_which_a_log_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last records were read as if it had been committed."""
    assert run(DELETED).passed
    sound = ProducerStates.forget_snapshots_before

    def forget_snapshots_before(self: ProducerStates, start_offset: int) -> None:
        sound(self, start_offset)
        self.aborted = [one for one in self.aborted if one.first_offset >= start_offset]

    monkeypatch.setattr(ProducerStates, "forget_snapshots_before", forget_snapshots_before)
    assert names(run(DELETED)) == {"transactions-differ"}


SHORT_RULE = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}, __transaction_state: {assignment: [[2, 3, 1]]}}
  config: {request.timeout.ms: 500, replica.fetch.backoff.ms: 1400}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, transactions: {every: 5}}
duration: 4s
steps: [{at: 1100ms, node_rule: {api: WriteTxnMarkers, drop: reply}, for: 100ms}]
"""
"""A rule that comes and goes between two looks at transactions.  Its end breaks a connection, and
the follower behind it fetches again after its backoff."""


def test_transactions__that_wait_for_what_a_short_rule_has_dropped_are_not_overdue() -> None:
    assert names(run(SHORT_RULE)) == set()
