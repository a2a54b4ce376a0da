"""What a leader may append for a producer: batches of its epoch, and markers that were decided.

Owns: the rules for each appended batch that has a producer, by the batches before it in that log
and by the decisions in the coordinators' logs.  Never: uses a table of producers, which the code
under test has built; keeps a batch.  Kafka: ProducerAppendInfo,
TransactionMarkerChannelManager; KIP-98, KIP-360, KIP-890.

    producer-epoch-back     a batch or a marker is of an older epoch than its producer's last batch
    coordinator-epoch-back  a marker is of an older coordinator than the marker before it
    marker-undecided        no coordinator has decided what a marker says: this result for this
                            producer and partition, in an epoch up to the marker's own
    marker-of-last          a marker of version 2 ends the next transaction instead of its own
                            (KIP-890: its epoch is above that of its own transaction's batches)
    sequence-gap            a batch does not follow its producer's last one, with the next sequence
                            of the same epoch or the first of a new one
    batch-unverified        a transaction begins in a log, though its coordinator has none open with
                            that partition, or its end is in that log already
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kcluster.broker.coordinator.transactions.transaction import ONGOING
from kcluster.invariants.facts import Measure
from kcluster.invariants.producer_facts import (
    MarkerStrays,
    ProducerWentBack,
    SequenceGap,
    UnverifiedBatch,
)
from kcluster.invariants.promises import forget_oldest
from kcluster.invariants.replayed import Decisions
from kcluster.invariants.rules import Broken
from kcluster.partition.log.log import Log
from kcluster.protocol.records.batches import (
    CONTROL_BIT,
    SEQUENCE_MODULUS,
    TRANSACTIONAL_BIT,
    Batch,
)
from kcluster.protocol.records.markers import read_marker

_FIRST_OF_V2: Final = 2
NO_MARKER: Final = -1
"""The coordinator epoch of a producer that has no marker in a log."""
_Place = tuple[str, int, int]
"""(topic, partition, producer id)."""


class _LastBatch(NamedTuple):
    """The last batch of a producer in a log.  `next_sequence`: what follows it in its epoch;
    `coordinator_epoch`: that of its last marker."""

    base_offset: int
    leader_epoch: int
    producer_epoch: int
    max_timestamp: int
    is_control: bool
    is_transactional: bool
    next_sequence: int
    coordinator_epoch: int


class ProducerRules:
    """The rules for one cluster.  `verifies`: transaction.partition.verification.enable of the
    observed broker; `knows_versions`: whether its release knows markers of version 2."""

    def __init__(self, decisions: Decisions) -> None:
        self.verifies = True
        self.knows_versions = True
        self.expiration_ms = 0
        self._decisions = decisions
        self._last: dict[tuple[bytes, int, int], dict[int, _LastBatch]] = {}
        """The last batch of each producer, by topic id, partition and leader epoch: a topic that is
        created again begins anew."""
        self._marked: dict[_Place, tuple[int, int, int]] = {}
        """(offset, leader epoch, number of the producer's last decision) of the last marker."""
        self._forced: dict[int, None] = {}
        """The producers whose transactions an administrator has ended."""

    def on_forced(self, producer_id: int) -> None:
        """Record that a client, not a coordinator, has sent a marker."""
        self._forced[producer_id] = None
        forget_oldest(self._forced)

    def check(self, place: _Place, log: Log, batch: Batch, now_ms: int, is_current: bool) -> Broken:
        """The rules that an appended batch breaks; `log`: the leader's own; `is_current`: whether
        no other broker, which may have the marker, has led since."""
        known = self._known_before(log, batch)
        last = known.get(batch.producer_id)
        known[batch.producer_id] = _of(batch, last)
        if last is not None and now_ms - last.max_timestamp >= self.expiration_ms:
            return  # the leader may have forgotten the producer
        if last is not None and batch.producer_epoch < last.producer_epoch:
            yield (
                "producer-epoch-back",
                ProducerWentBack(
                    batch.producer_id,
                    Measure.PRODUCER_EPOCH,
                    last.producer_epoch,
                    batch.producer_epoch,
                    batch.base_offset,
                ),
            )
        if last is not None and not batch.attributes & CONTROL_BIT:
            yield from _out_of_order(batch, last)
        if batch.producer_id in self._forced:
            return
        if batch.attributes & CONTROL_BIT:
            yield from self._check_marker(place, batch, last)
        elif (
            is_current
            and batch.attributes & TRANSACTIONAL_BIT
            and (last is None or last.is_control)
        ):
            yield from self._check_first(place, batch, last)

    def _known_before(self, log: Log, batch: Batch) -> dict[int, _LastBatch]:
        """The last batch of each producer before `batch`: read from the log once in a leadership,
        and kept up to date from then on."""
        led = (log.topic_id, log.partition, batch.leader_epoch)
        known = self._last.get(led)
        if known is None:
            known = self._last[led] = {}
            forget_oldest(self._last)
            for earlier in log.batches_from(log.log_start_offset):
                if earlier.base_offset >= batch.base_offset:
                    break
                known[earlier.producer_id] = _of(earlier, known.get(earlier.producer_id))
        return known

    def _check_marker(self, place: _Place, batch: Batch, last: _LastBatch | None) -> Broken:
        marker, producer_id = read_marker(batch), batch.producer_id
        if marker is None:
            return
        decisions, epoch = self._decisions, marker.coordinator_epoch
        number = decisions.last_number(producer_id)
        self._marked[place] = (batch.base_offset, batch.leader_epoch, number)
        forget_oldest(self._marked)
        if last is not None and last.coordinator_epoch > epoch:
            measure, was = Measure.COORDINATOR_EPOCH, last.coordinator_epoch
            back = ProducerWentBack(producer_id, measure, was, epoch, batch.base_offset)
            yield "coordinator-epoch-back", back
        if not decisions.is_whole:
            return
        decision = decisions.behind(batch, marker, (place[0], place[1]))
        strays = MarkerStrays(
            producer_id, batch.producer_epoch, marker.is_commit, epoch, batch.base_offset
        )
        if decision is None:
            if not decisions.has_forgotten:
                yield "marker-undecided", strays
        elif (
            decision.transaction.client_version >= _FIRST_OF_V2
            and self.knows_versions
            and last is not None
            and not last.is_control
            and last.is_transactional
            and last.producer_epoch == batch.producer_epoch
        ):
            yield "marker-of-last", strays

    def _check_first(self, place: _Place, batch: Batch, last: _LastBatch | None) -> Broken:
        if not self.verifies or not self._decisions.is_whole:
            return
        topic, partition, producer_id = place
        known = self._decisions.of_producer(producer_id)
        state = "" if known is None else known.state.label
        if known is not None and (topic, partition) in known.partitions:
            if known.state is ONGOING and known.producer_epoch == batch.producer_epoch:
                return
            if known.is_prepared and not self._is_marked(place, last):
                return
        yield (
            "batch-unverified",
            UnverifiedBatch(producer_id, batch.producer_epoch, batch.base_offset, state),
        )

    def _is_marked(self, place: _Place, last: _LastBatch | None) -> bool:
        """Whether a marker of the producer's last decision is in this log; `last`: its producer's
        last batch there."""
        marked = self._marked.get(place)
        return (
            marked is not None
            and last is not None
            and marked[:2] == (last.base_offset, last.leader_epoch)
            and marked[2] == self._decisions.last_number(place[2])
        )


def _out_of_order(batch: Batch, last: _LastBatch) -> Broken:
    """A batch that does not follow its producer's `last` batch.  What a coordinator writes for a
    producer has no sequence."""
    is_next = batch.producer_epoch == last.producer_epoch
    due = last.next_sequence if is_next else 0
    if batch.producer_epoch >= last.producer_epoch and batch.base_sequence not in (due, -1):
        yield (
            "sequence-gap",
            SequenceGap(
                batch.producer_id, batch.producer_epoch, batch.base_sequence, due, batch.base_offset
            ),
        )


def _of(batch: Batch, before: _LastBatch | None) -> _LastBatch:
    """What is remembered of a producer's batch that comes after `before` in the same log.  A marker
    with another epoch begins that epoch."""
    marker = read_marker(batch) if batch.is_control else None
    following = (batch.last_sequence + 1) % SEQUENCE_MODULUS
    if batch.is_control:
        is_same = before is not None and before.producer_epoch == batch.producer_epoch
        following = before.next_sequence if before is not None and is_same else 0
    if marker is not None:
        coordinator_epoch = marker.coordinator_epoch
    else:
        coordinator_epoch = NO_MARKER if before is None else before.coordinator_epoch
    return _LastBatch(
        batch.base_offset,
        batch.leader_epoch,
        batch.producer_epoch,
        batch.max_timestamp,
        batch.is_control,
        batch.is_transactional,
        following,
        coordinator_epoch,
    )
