"""Observed facts that break an invariant of producers and transactions, as values.

Owns: these types.  Never: finds a violation (producers.py, markers.py), words it (words.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.invariants.facts import Measure, Observed


class ProducerEnd(Struct, frozen=True):
    """The newest batch of a producer: its last sequence and offset, -1 without batches."""

    epoch: int
    sequence: int = -1
    offset: int = -1


class ProducerDiffers(Observed, frozen=True):
    """The producer's end in the table and in the log; None: it is not there."""

    producer_id: int
    table: ProducerEnd | None
    log: ProducerEnd | None


class TransactionSpan(Struct, frozen=True):
    """A transaction in a log: its first offset, and that of the marker that aborted it; -1 while it
    is open."""

    first_offset: int
    marker_offset: int = -1


class TransactionDiffers(Observed, frozen=True):
    """The producer's transaction, open or aborted, in the table and in the log; None: it is not
    there."""

    producer_id: int
    table: TransactionSpan | None
    log: TransactionSpan | None


class SequenceRemoved(Observed, frozen=True):
    """The last batch of a producer, which is in a log's producer table but not in the log;
    `sequence`: its first sequence number."""

    producer_id: int
    sequence: int
    offset: int


class ReadOfAborted(Observed, frozen=True):
    """A record of a transaction that the marker at an offset has aborted was delivered."""

    offset: int
    producer_id: int
    marker_offset: int


class FencedAlone(Observed, frozen=True):
    """A producer got a fencing error; `error`: its name in Kafka."""

    producer_id: int
    producer_epoch: int
    error: str


class ProducerWentBack(Observed, frozen=True):
    """A batch of a producer, at `offset`, has a smaller epoch than an earlier batch."""

    producer_id: int
    what: Measure
    before: int
    after: int
    offset: int


class SequenceGap(Observed, frozen=True):
    """A batch of a producer that begins with `sequence`, although `due` was next."""

    producer_id: int
    producer_epoch: int
    sequence: int
    due: int
    offset: int


class MarkerStrays(Observed, frozen=True):
    """A marker that comes from no decision, or from the decision on an earlier transaction."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    offset: int


class EarlyMarker(Observed, frozen=True):
    """A marker that was confirmed before it was committed."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    committed_end: int


class ForgottenTransaction(Observed, frozen=True):
    """A transactional id that was deleted in a state in which its transaction was not over."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str


class TimeoutOutdated(Observed, frozen=True):
    """The transaction timeout that a producer asked for, and the one in force after the answer."""

    producer_id: int
    producer_epoch: int
    asked_ms: int
    in_force_ms: int


class UnverifiedBatch(Observed, frozen=True):
    """A batch that begins a transaction in a log; `state`: that of its transactional id then, ""
    for none."""

    producer_id: int
    producer_epoch: int
    offset: int
    state: str


class VerifiedOtherwise(Observed, frozen=True):
    """A partition that was verified, and is not in the producer's open transaction; `state`: that
    of its transactional id, "" for none."""

    producer_id: int
    producer_epoch: int
    topic: str
    partition: int
    state: str


class ZombieServed(Observed, frozen=True):
    """A request of a producer that was served, though a producer of the `newest` epoch has begun
    anew before it came."""

    request: str
    producer_id: int
    producer_epoch: int
    newest: int


class OtherwiseEnded(Observed, frozen=True):
    """An answer that confirms a different end of a transaction from the coordinator's decision;
    `state`: the transaction's."""

    is_commit: bool
    producer_epoch: int
    state: str


class RefusedProducer(Observed, frozen=True):
    """A refusal of a producer without a reason.  `state`, `epoch`: of its transaction at its
    coordinator."""

    request: str
    producer_id: int
    producer_epoch: int
    error: str
    state: str
    epoch: int


class GivenTwice(Observed, frozen=True):
    """A producer id that was given to two clients."""

    producer_id: int
    first: str
    second: str


class OverdueTransaction(Observed, frozen=True):
    """A transaction that was not ended from `since_ms` to `until_ms`.  `is_decided`: whether it
    waits for markers."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator: int
    is_decided: bool
    since_ms: int
    until_ms: int

    @property
    def duration_ms(self) -> int:
        return self.until_ms - self.since_ms
