"""Transactions of version 2 whose markers are slow: the next transaction waits, and is not refused.

Kafka asks its coordinator again while the last transaction has markers on their way, and each time
with a new guard (ReplicaManager.handleProduceAppend): a marker that comes in between is the last
transaction's.
"""

from __future__ import annotations

import pytest

from kcluster.protocol.errors import ErrorCode
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

SLOW_MARKERS = """
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3}, bills: {replication_factor: 3}}
  config:
    offsets.topic.num.partitions: 1
    transaction.state.log.num.partitions: 1
    group.initial.rebalance.delay.ms: 0
workload:
  producers:
    - {topic: orders, name: shop, rate: 50/s}
    - {topic: bills, name: desk, rate: 50/s, transactions: {every: 2}}
  processors: {topic: orders, to: bills, name: engine, group: engines}
duration: 4s
steps:
  - {at: 1s, node_rule: {api: WriteTxnMarkers, delay: %s, jitter: %s}, for: 2s}
"""
WAITS = {ErrorCode.CONCURRENT_TRANSACTIONS.name}


@pytest.mark.parametrize(
    ("delay", "jitter", "seen"),
    [("10ms", "20ms", set()), ("60ms", "80ms", WAITS), ("200ms", "200ms", WAITS)],
)
def test_verification__outlasts_the_markers_of_the_last_transaction(
    delay: str, jitter: str, seen: set[str]
) -> None:
    result = run_scenario(Scenario.parse(SLOW_MARKERS % (delay, jitter)), "virtual", 1)
    assert result.failures == []
    of_produce = {error.error for error in result.ledger.errors if error.api == "Produce"}
    assert of_produce == seen
    of_offsets = {error.error for error in result.ledger.errors if error.api == "TxnOffsetCommit"}
    assert of_offsets <= WAITS, "the coordinator of a group does not ask again: its client does"
