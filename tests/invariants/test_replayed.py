"""Coordinators that hold something else than their logs say, or confirm it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from kcluster.broker.coordinator.offsets import OffsetStore
from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.broker.coordinator.transactions.transaction_shard import TransactionShard
from kcluster.invariants import replayed
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

Patch = Callable[[pytest.MonkeyPatch], None]
STORY = """\
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {partitions: 2, replication_factor: 3}
    bills: {partitions: 1, replication_factor: 3}
  config: {transaction.state.log.num.partitions: 1, offsets.topic.num.partitions: 1}
workload:
  producers:
    - {topic: orders, name: shop, rate: 100/s, transactions: {every: 10, abort: 30%}}
  processors:
    - {topic: orders, to: bills, name: biller, group: billing, abort: 30%}
duration: 2s
steps:
  - {at: 700ms, move: {partition: __transaction_state-0, to: 1}}
  - {at: 900ms, move: {partition: __transaction_state-0, to: 2}}
  - {at: 1200ms, move: {partition: __consumer_offsets-0, to: 1}}
  - {at: 1400ms, move: {partition: __consumer_offsets-0, to: 3}}
"""


def run() -> RunResult:
    return run_scenario(Scenario.parse(STORY), "virtual")


def a_partition_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    sound = TransactionShard._put

    def put(self: TransactionShard, record: Any) -> None:
        sound(self, record)
        known = record.transaction
        if known is not None and len(known.partitions) > 1:
            kept = frozenset(known.in_order[:1])
            self.transactions[record.transactional_id] = structs.replace(known, partitions=kept)

    patch.setattr(TransactionShard, "_put", put)


def offsets_of_aborted_transactions_count(patch: pytest.MonkeyPatch) -> None:
    sound = OffsetStore.end_transaction
    patch.setattr(OffsetStore, "end_transaction", lambda self, of, _: sound(self, of, True))


def pending_offsets_look_stable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetStore, "unstable", lambda *_: frozenset())


def an_end_is_confirmed_before_it_is_decided(patch: pytest.MonkeyPatch) -> None:
    sound = t.end

    def end(known: Any, producer: Any, *more: Any) -> Any:
        decided = sound(known, producer, *more)
        return t.RetriedRequest(producer) if isinstance(decided, t.Transaction) else decided

    patch.setattr(t, "end", end)


@pytest.mark.parametrize(
    ("bug", "name"),
    [
        (a_partition_is_forgotten, "coordinator-differs"),
        (offsets_of_aborted_transactions_count, "coordinator-differs"),
        (an_end_is_confirmed_before_it_is_decided, "ended-otherwise"),
    ],
)
@pytest.mark.parametrize("limit", [replayed.MAX_COMPARED, 0], ids=["all", "changes"])
def test_coordinator__that_is_not_as_its_log(
    limit: int, bug: Patch, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed, "MAX_COMPARED", limit)
    bug(monkeypatch)
    assert name in {violation.name for violation in run().verdict.violations}


def test_coordinator__that_is_sound() -> None:
    assert run().verdict.violations == ()


TAKEOVER = (
    STORY[: STORY.index("duration:")].replace("group: billing,", "group: billing, members: 2,")
    + """\
duration: 3s
steps:
  - {at: 600ms, rule: {api: EndTxn, client: biller-1, drop: request}, for: 300ms}
  - {at: 800ms, kill: client biller-1, for: 1500ms}
"""
)


def test_offset__that_an_open_transaction_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor dies between its offsets and the end of its transaction, which stays open; the
    other one takes over its partition."""
    scenario = Scenario.parse(TAKEOVER)
    assert run_scenario(scenario, "virtual").verdict.violations == ()
    pending_offsets_look_stable(monkeypatch)
    result = run_scenario(scenario, "virtual")
    assert "unstable-offset" in {violation.name for violation in result.verdict.violations}


PAUSED = """\
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    replica.lag.time.max.ms: 2000
    transaction.state.log.num.partitions: 1
workload:
  producers:
    - topic: orders
      name: desk
      rate: 5/s
      transactions: {every: 4, abort: 30%, timeout: 4s}
      config: {request.timeout.ms: 2000}
duration: 8s
steps:
  - {at: 1s, when: transaction_written, kill: 3, for: 5s}
  - {at: 4500ms, when: transaction_written, pause: 1, for: 5s}
"""


def test_coordinator__that_was_paused_confirms_an_end_after_its_successors_decisions() -> None:
    """What it confirms was committed before the pause; transactions have ended otherwise since."""
    result = run_scenario(Scenario.parse(PAUSED), "virtual", 287)
    assert result.verdict.violations == ()
