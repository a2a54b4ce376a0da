"""A run in virtual time for the page: a leader's death, a group, transactions.

Owns: `failover_result`, `failover_run`.  Never: asserts.
"""

from __future__ import annotations

from functools import cache

from kcluster.runs.record import RunRecord
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.virtual import run_virtual

FAILOVER = """
name: failover
story: The leader dies, another one is elected, and the old one comes back.
topology:
  brokers: 3
  profile: fast
  topics: {orders: {assignment: [[1, 2, 3]]}, paid: {assignment: [[2, 3, 1]]}}
workload:
  producers:
    - {topic: orders, name: shop, rate: 40/s}
    - {topic: paid, name: bank, rate: 40/s, transactions: {every: 10}}
  consumers: {topics: orders, group: readers, name: reader, members: 2}
duration: 3s
steps:
  - {at: 500ms, isolate: {nodes: 3, others: "1, 2"}, for: 400ms}
  - {at: 1500ms, kill: 1}
  - {at: 2200ms, start: 1}
  - {at: 2600ms, move: {partition: orders-0, to: 3}}
"""


@cache
def failover_result() -> RunResult:
    """Broker 3 is cut off from +0.5 to +0.9 s; broker 1 is down from +1.5 to +2.2 s;
    at +2.6 s broker 3 gets the leader, and the producer asks the old one once more."""
    return run_virtual(Scenario.parse(FAILOVER), 1, lambda now_ms, of_ms: None)


def failover_run() -> RunRecord:
    """Its record."""
    return failover_result().record()
