"""What a leader may append of a producer, by the log before it and by what was decided."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.invariants import replayed
from kcluster.invariants.producers import ProducerRules
from kcluster.invariants.replayed import Decisions
from kcluster.partition.log.log import Log
from kcluster.partition.producers import ProducerStates
from kcluster.protocol.records.batches import parse_batches
from kcluster.protocol.records.markers import Marker, build_marker
from kcluster.protocol.records.records import Record, build_batch
from tests.invariants.test_broken_cores import names, run

PRODUCER = 7
PLACE = ("orders", 0, PRODUCER)


class Partition:
    """A leader's log, and the decisions about its producer's transactions."""

    def __init__(self) -> None:
        self.log = Log(bytes(16), 0)
        self.decisions = Decisions()
        self.rules = ProducerRules(self.decisions)
        self.rules.expiration_ms = 1 << 40
        self._next: dict[int, int] = {}
        """The next sequence of each epoch."""

    def state(self, state: t.TransactionState, epoch: int, version: int, at: int = 0) -> None:
        """A committed record of the coordinator; `at`: the leader epoch of its batch."""
        new = t.Transaction(
            transactional_id="shop",
            producer_id=PRODUCER,
            producer_epoch=epoch,
            timeout_ms=1_000,
            state=state,
            partitions=frozenset([PLACE[:2]] if state in (t.ONGOING, *t.PREPARED) else ()),
            last_update_ms=0,
            client_version=version,
        )
        self.decisions.put("shop", new, at)

    def data(
        self, epoch: int, transactional: bool = True, sequence: int | None = None
    ) -> list[str]:
        """A batch of one record; without a `sequence`, the next one of its epoch."""
        if sequence is None:
            sequence = self._next.get(epoch, 0)
        self._next[epoch] = sequence + 1
        return self._append(
            build_batch(
                [Record(0, 0, b"k", b"v", ())],
                producer_id=PRODUCER,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=transactional,
            )
        )

    def marker(self, epoch: int, coordinator_epoch: int, is_commit: bool = True) -> list[str]:
        return self._append(build_marker(PRODUCER, epoch, Marker(is_commit, coordinator_epoch), 0))

    def _append(self, encoded: bytearray) -> list[str]:
        (batch,) = parse_batches(encoded)
        batch.base_offset = batch.last_offset = self.log.log_end_offset
        batch.leader_epoch = 0
        self.log.append_as_follower([batch])
        return [name for name, _ in self.rules.check(PLACE, self.log, batch, 0, True)]


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_batch__of_an_older_epoch_than_the_one_before_it(partition: Partition) -> None:
    assert partition.data(1, transactional=False) == []
    assert partition.data(2, transactional=False) == []
    assert partition.data(1, transactional=False) == ["producer-epoch-back"]


def test_batch__of_a_topic_that_was_created_again(partition: Partition) -> None:
    assert partition.data(2, transactional=False) == []
    partition.log = Log(bytes(15) + b"2", 0)
    assert partition.data(1, transactional=False) == []


@pytest.mark.parametrize(("epoch", "sequence"), [(1, 0), (1, 2), (2, 1), (2, 5)])
def test_batch__that_does_not_follow(partition: Partition, epoch: int, sequence: int) -> None:
    assert partition.data(1, transactional=False) == []
    assert partition.data(epoch, False, sequence) == ["sequence-gap"]


def test_batch__that_begins_a_new_epoch_after_a_marker_of_it(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 2)
    partition.data(3)
    partition.state(t.PREPARE_COMMIT, 4, 2)
    partition.marker(4, 0)
    partition.state(t.ONGOING, 4, 2)
    assert partition.data(4, sequence=1) == ["sequence-gap"]


def test_batch__goes_on_after_a_marker_of_its_own_epoch(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 0)
    partition.data(3)
    partition.state(t.PREPARE_COMMIT, 3, 0)
    partition.marker(3, 0)
    partition.state(t.ONGOING, 3, 0)
    assert partition.data(3) == []


def test_batch__of_an_unknown_producer_may_have_any_sequence(partition: Partition) -> None:
    assert partition.data(3, False, 17) == []


def test_batch__after_the_last_sequence_comes_the_first(partition: Partition) -> None:
    partition.data(3, False, 2**31 - 1)
    assert partition.data(3, False, 0) == []


def test_batch__after_its_producer_may_be_forgotten(partition: Partition) -> None:
    partition.data(2, transactional=False)
    partition.rules.expiration_ms = 0
    assert partition.data(1, transactional=False) == []


def test_marker__comes_from_a_decision(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 2)
    assert partition.data(3) == []
    assert partition.data(3) == []
    partition.state(t.PREPARE_COMMIT, 4, 2)
    assert partition.marker(4, 0) == []


@pytest.mark.parametrize(("epoch", "is_commit"), [(4, False), (5, True)])
def test_marker__of_another_end_or_epoch(partition: Partition, epoch: int, is_commit: bool) -> None:
    partition.state(t.ONGOING, 3, 2)
    partition.data(3)
    partition.state(t.PREPARE_COMMIT, 4, 2)
    assert partition.marker(epoch, 0, is_commit) == ["marker-undecided"]


def test_marker__of_an_epoch_before_the_decision(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 2)
    partition.data(3)
    partition.state(t.PREPARE_COMMIT, 4, 2, at=6)
    assert partition.marker(4, 5) == ["marker-undecided"]


def test_marker__of_a_coordinator_before_may_be_late(partition: Partition) -> None:
    """With version 1 the next transaction has the same epoch, and its coordinator another one."""
    partition.state(t.ONGOING, 3, 0)
    partition.data(3)
    partition.state(t.PREPARE_COMMIT, 3, 0, at=5)
    partition.state(t.PREPARE_COMMIT, 3, 0, at=6)
    assert partition.marker(3, 5) == []


def test_marker__of_an_administrator_needs_no_decision(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 2)
    partition.data(3)
    partition.rules.on_forced(PRODUCER)
    assert partition.marker(3, 0, is_commit=False) == []


def test_marker__of_a_coordinator_that_was_replaced(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 0)
    partition.data(3)
    partition.state(t.PREPARE_COMMIT, 3, 0)
    assert partition.marker(3, 2) == []
    assert partition.marker(3, 1) == ["coordinator-epoch-back"]


def test_marker__that_is_late_ends_the_next_transaction(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 2)
    partition.data(3)
    partition.state(t.PREPARE_COMMIT, 4, 2)
    assert partition.marker(4, 0) == []
    assert partition.marker(4, 0) == []
    partition.state(t.COMPLETE_COMMIT, 4, 2)
    partition.state(t.ONGOING, 4, 2)
    assert partition.data(4) == []
    assert partition.marker(4, 0) == ["marker-of-last"]


def test_batch__before_the_marker_of_its_end_is_in_time(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 0)
    partition.state(t.PREPARE_ABORT, 3, 0)
    assert partition.data(3) == []


def test_batch__after_the_marker_of_its_end(partition: Partition) -> None:
    partition.state(t.ONGOING, 3, 0)
    partition.state(t.PREPARE_ABORT, 3, 0)
    assert partition.marker(3, 0, is_commit=False) == []
    assert partition.data(3) == ["batch-unverified"]


def test_batch__that_no_coordinator_knows(partition: Partition) -> None:
    assert partition.data(3) == ["batch-unverified"]
    partition.decisions.is_whole = False
    partition.marker(3, 0)
    assert partition.data(3) == []


def test_marker__of_a_decision_that_was_forgotten_is_not_judged(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that runs for days has decided more than can be remembered."""
    monkeypatch.setattr(replayed, "MAX_DECISIONS", 1)
    partition.state(t.ONGOING, 3, 0)
    partition.data(3)
    assert partition.marker(2, 0) == ["producer-epoch-back", "marker-undecided"]
    partition.state(t.PREPARE_COMMIT, 3, 0)
    partition.state(t.PREPARE_ABORT, 4, 0)
    assert partition.marker(3, 0) == []


REPEATED = """\
topology: {brokers: 1, topics: {orders: {partitions: 1, replication_factor: 1}}}
workload: {producers: {topic: orders, rate: 20/s, in_flight: 5, stop: 2s}}
duration: 3s
steps: [{at: 1s, rule: {api: Produce, drop: reply, close: true, times: 1}}]
"""
"""The answer to one Produce request is lost, so its batches are sent again."""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_leader__that_takes_a_batch_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(REPEATED).passed
    monkeypatch.setattr(ProducerStates, "check", lambda *_: None)
    assert "sequence-gap" in names(run(REPEATED))
