"""The producers of one log: last epoch, last five batches, transactions open and aborted.

Owns: the table of producers of one log, its transactions, and the check of a produced batch or a
marker against them.  Never: appends, or changes anything in a check; `check`, `check_marker`,
`advance` and `end_transaction` are pure, on values.
Kafka: ProducerStateManager, ProducerStateEntry, ProducerAppendInfo; KIP-98, KIP-360, KIP-890.

A state is an immutable value, so a snapshot of the table is a shallow copy of a dict.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import Final

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import (
    CONTROL_BIT,
    NO_PRODUCER_EPOCH,
    NO_TIMESTAMP,
    SEQUENCE_MODULUS,
    TRANSACTIONAL_BIT,
    Batch,
)
from kcluster.protocol.records.markers import Marker, read_marker
from kcluster.structs import FrozenUntracked, Untracked

BATCHES_KEPT: Final = 5
"""The number of batches that a producer may have in flight
(max.in.flight.requests.per.connection)."""

SNAPSHOT_INTERVAL_BATCHES: Final = 1024
"""The number of batches between two snapshots.  A truncation of at most this many batches replays
at most twice as many headers."""


class AppendedBatch(FrozenUntracked, frozen=True):
    """The part of an appended batch that is remembered, to recognize a batch that is sent again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerState(FrozenUntracked, frozen=True):
    """One producer id in one log.  `batches`: its newest batches in this epoch, oldest first."""

    producer_epoch: int
    batches: tuple[AppendedBatch, ...]
    next_sequence: int
    """The next sequence of this epoch; after 2^31-1 comes 0."""
    last_timestamp: int
    transaction_first_offset: int | None = None
    """The first offset of the open transaction."""
    coordinator_epoch: int = -1


class AbortedTransaction(FrozenUntracked, frozen=True):
    """A transaction that was aborted.  `last_offset`: the marker's offset.  `last_stable_offset`:
    an offset below which no later transaction begins.  Kafka: AbortedTxn."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Verification(Untracked):
    """A leader's open question to the coordinator: is this partition part of the transaction?

    The object is its own guard: an answer counts only while the object is still in the table.  A
    marker removes the object, so that a batch that was verified before the marker is not appended
    after it.  Kafka: VerificationStateEntry, VerificationGuard.
    """

    producer_epoch: int
    lowest_sequence: int
    is_epoch_bumped: bool
    """Whether the client's epoch is bumped with every transaction (KIP-890): if so, a producer
    unknown to this log must begin with sequence 0."""


class SequenceRefusal(FrozenUntracked, frozen=True):
    """The reason why a batch must not be appended."""

    error: ErrorCode
    text: str


NO_STATE: Final = ProducerState(NO_PRODUCER_EPOCH, (), 0, NO_TIMESTAMP)


def check(state: ProducerState, batch: Batch) -> AppendedBatch | SequenceRefusal | None:
    """Check a batch from a client against its producer's state.

    Returns None to append it, the AppendedBatch whose offsets answer a duplicate, or a refusal. A
    producer unknown to this log, or forgotten by it, may begin with any sequence (KIP-360).
    """
    epoch, first_sequence, known_epoch = (
        batch.producer_epoch,
        batch.base_sequence,
        state.producer_epoch,
    )
    if epoch == known_epoch:
        # The common case: the batch is the next in sequence, and no duplicate.
        if first_sequence != state.next_sequence:
            last_sequence = batch.last_sequence
            for known in state.batches:
                if known.first_sequence == first_sequence and known.last_sequence == last_sequence:
                    return known
            if known_epoch != NO_PRODUCER_EPOCH:
                return SequenceRefusal(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {batch.producer_id} sent sequence {first_sequence} where "
                    f"{state.next_sequence} comes next",
                )
    elif epoch < known_epoch:
        return SequenceRefusal(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {batch.producer_id} has epoch {epoch}, but {known_epoch} was seen",
        )
    elif first_sequence != 0 and known_epoch != NO_PRODUCER_EPOCH:
        return SequenceRefusal(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {batch.producer_id} starts epoch {epoch} with sequence {first_sequence}, "
            "not 0",
        )
    if state.transaction_first_offset is not None and not batch.is_transactional:
        return SequenceRefusal(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {batch.producer_id} has a transaction open and sent a batch outside of it",
        )
    return None


def advance(state: ProducerState, batch: Batch) -> ProducerState:
    """Return the state after data batch `batch` has been appended at its offsets."""
    base_offset, last_offset, first_sequence, timestamp = (
        batch.base_offset,
        batch.last_offset,
        batch.base_sequence,
        batch.max_timestamp,
    )
    last_sequence = first_sequence
    if first_sequence >= 0:
        last_sequence = (first_sequence + last_offset - base_offset) % SEQUENCE_MODULUS
    appended = AppendedBatch(first_sequence, last_sequence, base_offset, last_offset, timestamp)
    if batch.producer_epoch == state.producer_epoch:
        batches = (*state.batches[1 - BATCHES_KEPT :], appended)
    else:
        batches = (appended,)
    transaction_first_offset = state.transaction_first_offset
    if transaction_first_offset is None and batch.attributes & TRANSACTIONAL_BIT:
        transaction_first_offset = base_offset
    return ProducerState(
        batch.producer_epoch,
        batches,
        (last_sequence + 1) % SEQUENCE_MODULUS,
        timestamp,
        transaction_first_offset,
        state.coordinator_epoch,
    )


EPOCH_BUMP_SINCE: Final = 2
"""The transaction version in which every transaction has its own epoch (KIP-890)."""


def check_marker(
    state: ProducerState, producer_epoch: int, coordinator_epoch: int, transaction_version: int
) -> SequenceRefusal | None:
    """The reason why a marker must not be appended; None if it may be.

    Since transaction version 2 a marker's epoch is above the producer's.  A marker with an equal
    epoch, without an open transaction, repeats the last marker and is accepted (KAFKA-19999).
    """
    known_epoch = state.producer_epoch
    if transaction_version >= EPOCH_BUMP_SINCE:
        is_repeated = producer_epoch == known_epoch and state.transaction_first_offset is None
        is_valid = producer_epoch > known_epoch or is_repeated
    else:
        is_valid = producer_epoch >= known_epoch
    if not is_valid:
        return SequenceRefusal(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"marker has producer epoch {producer_epoch}, but {known_epoch} was seen",
        )
    if coordinator_epoch < state.coordinator_epoch:
        return SequenceRefusal(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"marker is of coordinator epoch {coordinator_epoch}, but a marker of "
            f"{state.coordinator_epoch} was seen",
        )
    return None


def end_transaction(state: ProducerState, batch: Batch, marker: Marker | None) -> ProducerState:
    """Return the state after control batch `batch`, which ends the producer's transaction."""
    same_epoch = batch.producer_epoch == state.producer_epoch
    return ProducerState(
        batch.producer_epoch,
        state.batches if same_epoch else (),
        state.next_sequence if same_epoch else 0,
        batch.max_timestamp,
        None,
        state.coordinator_epoch if marker is None else marker.coordinator_epoch,
    )


def _marker_offset(aborted: AbortedTransaction) -> int:
    return aborted.last_offset


class ProducerStates:
    """The table of one log, with snapshots to return to when the log is truncated."""

    __slots__ = (
        "_ongoing", "_since_snapshot", "_snapshots", "_unreplicated", "_verifications", "aborted",
        "states",
    )  # fmt: skip

    def __init__(self) -> None:
        self.states: dict[int, ProducerState] = {}
        """The states by producer id."""
        self._snapshots: list[tuple[int, dict[int, ProducerState]]] = []
        """(log end offset, the states at that offset), ascending."""
        self._since_snapshot = 0
        self.aborted: list[AbortedTransaction] = []
        """The aborted transactions in the order of their markers.  Kafka: TransactionIndex."""
        self._ongoing: dict[int, int] = {}
        """Producer id -> first offset of its open transaction, in ascending order."""
        self._unreplicated: list[tuple[int, int]] = []
        """(first offset, marker's offset) of transactions whose marker is not known to be below the
        high watermark, in order of their markers."""
        self._verifications: dict[int, Verification] = {}
        """The verifications by producer id; only at the leader, and never beside an open
        transaction."""

    def check(self, batch: Batch) -> AppendedBatch | SequenceRefusal | None:
        """Check a batch from a client; see the function `check`."""
        return check(self.states.get(batch.producer_id, NO_STATE), batch)

    def update(self, batch: Batch) -> None:
        """Update the table after the append of `batch`, which has an idempotent producer."""
        states, producer_id = self.states, batch.producer_id
        state = states.get(producer_id, NO_STATE)
        if batch.attributes & CONTROL_BIT:
            self._end_transaction(state, batch)
        else:
            new = states[producer_id] = advance(state, batch)
            if batch.attributes & TRANSACTIONAL_BIT and state.transaction_first_offset is None:
                assert new.transaction_first_offset is not None
                self._ongoing[producer_id] = new.transaction_first_offset
                if self._verifications:
                    self._verifications.pop(producer_id, None)
        self._since_snapshot += 1
        if self._since_snapshot >= SNAPSHOT_INTERVAL_BATCHES:
            self.take_snapshot(batch.last_offset + 1)
            if len(self._snapshots) > 64:
                self._thin_out()

    def _end_transaction(self, state: ProducerState, batch: Batch) -> None:
        marker, producer_id = read_marker(batch), batch.producer_id
        first_offset = state.transaction_first_offset
        if first_offset is not None and marker is not None:
            del self._ongoing[producer_id]
            self._unreplicated.append((first_offset, batch.last_offset))
            if not marker.is_commit:
                unstable = self.first_unstable_offset
                self.aborted.append(
                    AbortedTransaction(
                        producer_id,
                        first_offset,
                        batch.last_offset,
                        batch.last_offset + 1 if unstable is None else unstable,
                    )
                )
        self.states[producer_id] = end_transaction(state, batch, marker)
        self._verifications.pop(producer_id, None)

    # ------------------------------------------------------------------------- transactions

    def has_transaction(self, producer_id: int) -> bool:
        """Whether a transaction of this producer is open in this log."""
        return producer_id in self._ongoing

    @property
    def ongoing(self) -> list[tuple[int, int]]:
        """(producer id, first offset) of each open transaction, the oldest first."""
        return list(self._ongoing.items())

    @property
    def has_unstable(self) -> bool:
        """Whether a transaction may hold the last stable offset back."""
        return bool(self._ongoing) or bool(self._unreplicated)

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the oldest open transaction; the last stable offset cannot pass it."""
        for first_offset in self._ongoing.values():
            return first_offset
        return None

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset below which every transaction is decided and its marker replicated.

        Kafka: ProducerStateManager.firstUnstableOffset, onHighWatermarkUpdated.
        """
        unreplicated = self._unreplicated
        replicated = 0
        while replicated < len(unreplicated) and unreplicated[replicated][1] < high_watermark:
            replicated += 1
        del unreplicated[:replicated]
        oldest_open = self.first_unstable_offset
        stable = high_watermark if oldest_open is None else min(high_watermark, oldest_open)
        for first_offset, _ in unreplicated:
            stable = min(stable, first_offset)
        return stable

    def aborted_within(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [start_offset, end_offset), by the offset
        of their markers."""
        found = []
        first = bisect_left(self.aborted, start_offset, key=_marker_offset)
        for aborted in islice(self.aborted, first, None):
            if aborted.first_offset < end_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                break
        return found

    def verification(
        self, producer_id: int, producer_epoch: int, first_sequence: int, is_epoch_bumped: bool
    ) -> Verification | None:
        """The question that the coordinator must confirm before a batch of a transaction may be
        appended; None if the transaction is open here.  Kafka:
        UnifiedLog.maybeStartTransactionVerification."""
        state = self.states.get(producer_id, NO_STATE)
        if producer_id in self._ongoing and state.producer_epoch == producer_epoch:
            return None
        known = self._verifications.get(producer_id)
        if known is None:
            known = Verification(producer_epoch, first_sequence, is_epoch_bumped)
            self._verifications[producer_id] = known
        elif producer_epoch > known.producer_epoch:
            known.producer_epoch, known.lowest_sequence = producer_epoch, first_sequence
        elif producer_epoch == known.producer_epoch and first_sequence < known.lowest_sequence:
            known.lowest_sequence = first_sequence
        return known

    def is_verified(self, producer_id: int, verification: Verification) -> bool:
        """Whether no marker has arrived since the coordinator was asked."""
        return self._verifications.get(producer_id) is verification

    def has_ongoing(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of this producer epoch is open here, so that its next batches need
        no verification.  Kafka: UnifiedLog.hasOngoingTransaction."""
        state = self.states.get(producer_id, NO_STATE)
        is_open = state.transaction_first_offset is not None
        return is_open and state.producer_epoch == producer_epoch

    def check_first(self, batch: Batch) -> SequenceRefusal | None:
        """Check the first batch of a transaction here against its verification."""
        verification = self._verifications.get(batch.producer_id)
        if verification is None:
            return None
        first_sequence = batch.base_sequence
        is_unknown = not self.states.get(batch.producer_id, NO_STATE).batches
        if first_sequence > verification.lowest_sequence or (
            verification.is_epoch_bumped and is_unknown and first_sequence != 0
        ):
            return SequenceRefusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} starts a transaction with sequence {first_sequence}",
            )
        return None

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers silent for `expiration_ms` (producer.id.expiration.ms), unless a
        transaction is open."""
        expired = [
            producer_id
            for producer_id, state in self.states.items()
            if state.transaction_first_offset is None
            and now_ms - state.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.states[producer_id]

    def take_snapshot(self, offset: int) -> None:
        """Keep a copy of the table for a log that ends at `offset`."""
        self._since_snapshot = 0
        if not self._snapshots or self._snapshots[-1][0] < offset:
            self._snapshots.append((offset, dict(self.states)))

    def rewind(self, end_offset: int) -> int | None:
        """Restore the newest snapshot at or before `end_offset`, where the log now ends.

        Return the offset from which batches must be passed to `update` again; None: from the start
        of the log."""
        while self._snapshots and self._snapshots[-1][0] > end_offset:
            self._snapshots.pop()
        self._since_snapshot = 0
        self._verifications = {}
        if not self._snapshots:
            self.clear()
            return None
        offset, states = self._snapshots[-1]
        self.states = dict(states)
        ongoing = [
            (state.transaction_first_offset, producer_id)
            for producer_id, state in states.items()
            if state.transaction_first_offset is not None
        ]
        self._ongoing = {producer_id: first_offset for first_offset, producer_id in sorted(ongoing)}
        self._unreplicated = [entry for entry in self._unreplicated if entry[1] < offset]
        self.aborted = [aborted for aborted in self.aborted if aborted.last_offset < offset]
        return offset

    def forget_snapshots_before(self, start_offset: int) -> None:
        """Forget the snapshots of a log that now starts at `start_offset`."""
        self._snapshots = [entry for entry in self._snapshots if entry[0] > start_offset]
        if self.aborted:
            self.aborted = [one for one in self.aborted if one.last_offset >= start_offset]

    def clear(self) -> None:
        self.states = {}
        self._snapshots = []
        self._since_snapshot = 0
        self.aborted = []
        self._ongoing = {}
        self._unreplicated = []
        self._verifications = {}

    def _thin_out(self) -> None:
        """Drop every other snapshot of the older half: most truncations are short."""
        half = len(self._snapshots) // 2
        self._snapshots = self._snapshots[:half:2] + self._snapshots[half:]
