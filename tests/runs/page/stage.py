"""Runs in virtual time for the page: a leader's death, a group, transactions; a changed password.

Owns: `failover_result`, `failover_run`, `secured_result`.  Never: asserts.
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

SECURED = """
name: a changed password
topology:
  brokers: 3
  profile: fast
  config: {broker.session.timeout.ms: 9000, connections.max.reauth.ms: 5000}
  listeners: {CLIENT: {protocol: SASL_SSL}}
  security:
    tls: auto
    users: {shop: a-5ecret, billing: {password: new-5ecret, mechanisms: [SCRAM-SHA-512]}}
    acls:
      - {allow: shop, to: [read, write], topic: orders}
      - {allow: billing, to: read, topic: orders}
      - {allow: billing, to: read, group: billing}
  topics:
    orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}
    __consumer_offsets: {assignment: [[2, 3, 1]]}
workload:
  producers: {topic: orders, rate: 100/s, name: shop, user: shop, idempotent: false}
  consumers: {topics: orders, group: billing, name: reader, user: billing, start: 1s}
duration: 2s
steps:
  - {at: 0s, password: {user: billing, to: old-5ecret}}
  - {at: 500ms, isolate: {nodes: 1, others: controller}, for: 1s}
  - {at: 700ms, password: {user: billing, to: new-5ecret}}
  - {at: 1200ms, certificate: {brokers: 2, state: expired}}
  - {at: 1600ms, remove_acl: {allow: shop, to: write, topic: orders}}
"""


@cache
def secured_result() -> RunResult:
    """Broker 1, cut off from +0.5 to +1.5 s, does not know the password that `billing` gets at
    +0.7 s, so it refuses `reader` at +1.03 s; from +1.6 s on `shop` may not write any more."""
    return run_virtual(Scenario.parse(SECURED), 2, lambda now_ms, of_ms: None)


@cache
def failover_result() -> RunResult:
    """Broker 3 is cut off from +0.5 to +0.9 s; broker 1 is down from +1.5 to +2.2 s;
    at +2.6 s broker 3 gets the leader, and the producer asks the old one once more."""
    return run_virtual(Scenario.parse(FAILOVER), 1, lambda now_ms, of_ms: None)


def failover_run() -> RunRecord:
    """Its record."""
    return failover_result().record()
