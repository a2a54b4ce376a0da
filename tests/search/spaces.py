"""A scenario for searches that is short and can be broken, and its space."""

from __future__ import annotations

from kcluster.scenario.language.scenario import Scenario
from kcluster.search.schedule import Space
from kcluster.search.spaces import searched_space

LOSING = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, name: shop, rate: 5/s, acks: 1}}
duration: 20s
steps:
  - {at: 2s..3s, pause: 3, for: 1s}
  - {at: 5s, slow: {nodes: followers(orders-0), latency: 400ms}, for: 2s}
  - {at: 5s..12s, kill: leader(orders-0), as: old, for: 6s}
"""
"""Records are lost if the leader dies while the followers are slow."""

FAULTS = """\
topology: {brokers: 3, topics: {orders: {partitions: 2, replication_factor: 3}}}
workload:
  producers: {topic: orders, rate: 5/s}
  consumers: {topics: orders, group: readers}
duration: 10s
steps:
  - at: 500ms
    faults:
      profile:
        every: 100ms..300ms
        repair: 1s..2s
        at_once: 2
        waits_for_sync: true
        kinds:
          - {kill: any broker}
          - {isolate: {nodes: any broker, others: any broker}}
  - {at: 4s, move: {partition: orders-0, to: 2}}
"""
"""Random faults, at most two at a time, beside a step of the scenario itself."""


def space(text: str) -> Space:
    return searched_space(Scenario.parse(text))
