"""A search finds by itself what Kafka lost before a fix; today the same schedule loses nothing."""

from __future__ import annotations

import pytest

from kcluster.search.loop import ScheduleSearch
from kcluster.search.schedule import scenario_of
from kcluster.search.trial import play, run_trial
from tests.search.spaces import space

MAX_RUNS = 96
PLAIN = """\
topology: {brokers: 3, ERA topics: {orders: {partitions: 2}}, network: {default_latency_ms: 5}}
workload: {producers: {topic: orders, rate: 20/s, in_flight: 1}}
duration: 20s
"""
MOVES = """\
topology: {brokers: 3, profile: fast, ERA topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, name: shop, rate: 200/s, acks: 1, in_flight: 1}}
duration: 4s
steps:
  - {at: 500ms, slow: {nodes: 1, others: "2,3", latency: 60ms}, for: 1500ms}
  - {at: 500ms, slow: {nodes: 2, others: 3, latency: 60ms}, for: 1500ms}
  - {at: 700ms..1s, move: {partition: orders-0, to: any broker}}
  - {at: 1s..1400ms, move: {partition: orders-0, to: any broker}}
"""
ABSENT = """\
topology: {brokers: 3, profile: fast, ERA topics: {orders: {replication_factor: 3}, out: {}}}
workload:
  producers: {topic: orders, name: shop, rate: 20/s}
  processors:
    - {topic: orders, to: out, name: first, group: billing, timeout: 10s}
    - {topic: orders, to: out, name: second, group: billing, timeout: 10s, start: 500ms}
duration: 5s
steps:
  - {at: 1s..2s, isolate: {nodes: first}, for: 100ms..2s}
"""
LATE = """\
topology: {brokers: 3, profile: fast, ERA topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers:
    - topic: orders
      name: shop
      rate: 200/s
      count: 60
      request_timeout: 200ms
      delivery_timeout: 250ms
      transactions: {every: 20, version: 1, timeout: 5s}
    - {topic: orders, name: other, rate: 100/s, start: 1500ms}
  consumers: {partitions: orders-0, name: reader, isolation: read_committed}
duration: 3s
steps:
  - {at: 1ms..300ms, rule: {api: Produce, client: shop, delay: 800ms, of: request}, for: 300ms}
"""
POWER = """\
topology:
  brokers: 3
  profile: fast
  ERA
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
workload: {producers: {topic: orders, name: shop, rate: 50/s}}
duration: 5s
steps:
  - {at: 500ms..1s, isolate: any broker, for: 1s..2s}
  - {at: 700ms..1500ms, isolate: any broker, for: 1s..2s}
  - {at: 1s..2s, kill: {brokers: any broker, how: power}, for: 1s..2s}
"""
SPACES = {
    "before KIP-101": (PLAIN, "truncated-committed"),
    "before KIP-279": (MOVES, "committed-differs"),
    "before KIP-447": (ABSENT, "processed-twice"),
    "before KAFKA-14402": (LATE, "hanging-transaction"),
    "before KIP-966": (POWER, "committed-lost"),
}


@pytest.mark.slow
@pytest.mark.timeout_s(300)
@pytest.mark.parametrize("era", SPACES)
def test_search__finds_what_a_fix_repaired(era: str) -> None:
    text, wanted = SPACES[era]
    is_block = "\n  ERA\n" in text
    before = space(text.replace("ERA", f"era: {era}" if is_block else f"era: {era},"))
    today = space(text.replace("  ERA\n" if is_block else "ERA", ""))
    search = ScheduleSearch([before], seed=1)
    while search.runs < MAX_RUNS:
        for schedule in search.batch():
            trial = run_trial(before, schedule)
            search.learn([trial])
            if wanted in {one.name for one in trial.findings}:
                repaired = play(scenario_of(today, schedule), schedule.seed)
                assert wanted not in {one.name for one in repaired.findings}
                return
    pytest.fail(f"{MAX_RUNS} runs have not found {wanted}")
