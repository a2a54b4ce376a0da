"""Transactional ids that are forgotten too early or have another timeout than their producer asked
for, and offsets that expire under an open transaction."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from kcluster.broker.coordinator.offsets import OffsetStore
from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.invariants.rules import producer_violations
from kcluster.partition.log.log import Log
from kcluster.protocol.records.batches import parse_batches
from kcluster.protocol.records.records import Record, build_batch
from tests.invariants.test_broken_cores import names, run

LONE = """\
topology:
  brokers: 3
  topics: {lone: {assignment: [[3]]}, __transaction_state: {assignment: [[1, 2]]}}
  config:
    transactional.id.expiration.ms: 1500
    transaction.remove.expired.transaction.cleanup.interval.ms: 300
    transaction.abort.timed.out.transaction.cleanup.interval.ms: 300
workload:
  producers:
    - topic: lone
      name: one
      rate: 20/s
      stop: 4s
      transactions: {every: 4, id: till, timeout: 1s}
    - topic: lone
      name: two
      rate: 20/s
      start: 9s
      transactions: {every: 4, id: till, timeout: 3s}
duration: 12s
steps:
  - {at: 1880ms, kill: 3, for: 5s}
"""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_coordinator__that_forgets_a_decided_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(LONE).passed

    def is_expired(known: t.Transaction, expiration_ms: int, now_ms: int) -> bool:
        return known.state is not t.ONGOING and known.last_update_ms + expiration_ms <= now_ms

    monkeypatch.setattr(t, "is_expired", is_expired)
    assert "transaction-forgotten" in names(run(LONE))


@pytest.mark.pure_python
def test_coordinator__that_keeps_the_first_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    story = LONE.replace("id.expiration.ms: 1500", "id.expiration.ms: 90000")
    assert run(story).passed
    sound = t.init

    def init(known: Any, of: str, timeout_ms: int, *more: Any) -> Any:
        decided = sound(known, of, timeout_ms, *more)
        if known is None or not isinstance(decided, t.Transaction):
            return decided
        return structs.replace(decided, timeout_ms=known.timeout_ms)

    monkeypatch.setattr(t, "init", init)
    assert names(run(story)) == {"timeout-outdated"}


PENDING = """\
topology:
  brokers: 1
  topics:
    orders: {partitions: 1, replication_factor: 1}
    bills: {partitions: 1, replication_factor: 1}
  config:
    offsets.retention.minutes: 1
    offsets.retention.check.interval.ms: 1000
    group.min.session.timeout.ms: 1000
workload:
  producers: {topic: orders, rate: 10/s, stop: 6s}
  processors:
    - topic: orders
      to: bills
      name: engine
      group: engines
      timeout: 200s
      consumer_config: {session.timeout.ms: 1000, heartbeat.interval.ms: 300}
duration: 72s
steps:
  - {at: 500ms, rule: {api: TxnOffsetCommit, of: reply, delay: 800ms}, for: 6s}
  - {at: 5s, pause: client engine, for: 64s}
"""


@pytest.mark.pure_python
def test_offset__that_expires_under_an_open_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(PENDING).passed
    monkeypatch.setattr(OffsetStore, "is_pending", lambda *_: False)
    assert "pending-expired" in names(run(PENDING))
    # An administrator who deletes offsets may delete any.
    deleted = PENDING + "  - {at: 50s, delete_group: engines, if_possible: true}\n"
    assert "pending-expired" not in names(run(deleted))


def test_open_transactions__out_of_order() -> None:
    log = Log(b"t" * 16, 0)
    for producer_id in (9, 7):
        offset = log.log_end_offset
        batch = build_batch(
            [Record(offset, 0, None, b"x", ())],
            base_offset=offset,
            last_offset=offset,
            transactional=True,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
        )
        log.append_as_follower(parse_batches(batch))
    assert list(producer_violations(log, 0, 10_000)) == []
    table = log.producers
    table._ongoing = dict(reversed(table._ongoing.items()))
    (found,) = producer_violations(log, 0, 10_000)
    assert found[0] == "stable-above-open"
