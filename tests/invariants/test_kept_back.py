"""What consumers ask for and do not get, and what stays though it must go: each with a core that
does so."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.handlers.data import fetch
from kcluster.broker.serving.reading import PartitionRead, read_partition
from kcluster.controller.membership.membership import Membership
from kcluster.events.reasons import Fencing
from kcluster.partition.log import compaction
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica
from tests.invariants.test_broken_nodes import run, texts

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

READ = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
workload:
  producers: {topic: orders, rate: 20/s, start: 1s, stop: 3s, transactions: {every: 5, abort: 40%}}
  consumers: {topics: orders, group: billing, isolation: ISOLATION}
duration: 6s
steps:
  - {at: 2s, rule: {api: Fetch, delay: 300ms, of: reply}, for: 1s}
"""


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_leader__that_keeps_records_back(monkeypatch: pytest.MonkeyPatch, isolation: str) -> None:
    text = READ.replace("ISOLATION", isolation)
    assert run(text).passed

    def of_followers(replica: Replica, wanted: Any, reader: Any, *rest: Any) -> PartitionRead:
        given = read_partition(replica, wanted, reader, *rest)
        if not reader.is_follower:
            given.batches, given.size_bytes = None, 0
        return given

    monkeypatch.setattr(fetch, "read_partition", of_followers)
    found, *_ = texts(run(text), "records-kept-back")
    assert found.startswith("a fetch from ")


DELETED = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
workload: {producers: {topic: orders, rate: 20/s, stop: 2s}}
duration: 12s
steps: [{at: 3s, delete_records: {partition: orders-0, before: 20}}]
"""


def test_follower__that_keeps_what_its_leader_has_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(DELETED).passed
    advance = Replica.advance_log_start

    def on_leaders(self: Replica, offset: int) -> bool:
        return self.is_leader and advance(self, offset)

    monkeypatch.setattr(Replica, "advance_log_start", on_leaders)
    assert texts(run(DELETED), "log-start-behind") == [
        "the log of follower 2 begins at 0, its leader's at 20",
        "the log of follower 3 begins at 0, its leader's at 20",
    ]


OPEN = """\
topology:
  brokers: 3
  topics:
    table:
      assignment: [[1, 2, 3]]
      config: {cleanup.policy: compact, segment.ms: 300, min.cleanable.dirty.ratio: 0.01}
  config: {log.cleaner.backoff.ms: 100}
workload:
  producers:
    - {topic: table, name: plain, rate: 20/s, keys: 5}
    - {topic: table, name: slow, rate: 5/s, keys: 5, transactions: {every: 12, abort: 50%}}
duration: 6s
"""


def test_cleaner__that_passes_an_open_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(OPEN).passed

    def all_but_the_newest(log: Log, *_: object) -> int:
        return max(0, len(log.segments) - 1)

    monkeypatch.setattr(compaction, "_cleanable_end", all_but_the_newest)
    found, *_ = texts(run(OPEN), "cleaned-unstable")
    assert found.startswith("cleaned up to ")


STOPPED = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 10/s}}
duration: 6s
steps: [{at: 2s, restart: 3}, {at: 3s, restart: 1}]
"""


def test_controller__that_does_not_fence_what_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(STOPPED).passed
    fence = Membership.fence

    def unless_it_stops(self: Membership, *arguments: Any, **named: Any) -> None:
        if Fencing.SHUTDOWN_COMPLETE not in arguments:
            fence(self, *arguments, **named)

    monkeypatch.setattr(Membership, "fence", unless_it_stops)
    found, *_ = texts(run(STOPPED), "stopped-unfenced")
    assert found.startswith("it was told to shut down, and is not fenced in broker epoch ")
