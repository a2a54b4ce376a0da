"""The idempotent producers of one log: last epoch, last five batches, open transaction.

Owns: the table of producers of one log, and the check of a produced batch against it.  Never:
appends, or changes anything in a check; `check` and `advance` are pure, on values.
Kafka: ProducerStateManager, ProducerStateEntry, ProducerAppendInfo; KIP-98, KIP-360, KIP-890.

A state is an immutable value, so a snapshot of the table is a shallow copy of a dict.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import (
    CONTROL_BIT,
    NO_PRODUCER_EPOCH,
    NO_TIMESTAMP,
    SEQUENCE_MODULUS,
    TRANSACTIONAL_BIT,
    Batch,
)

BATCHES_KEPT: Final = 5
"""As many as a producer may have in flight (max.in.flight.requests.per.connection)."""

SNAPSHOT_INTERVAL_BATCHES: Final = 1024
"""A truncation of at most this many batches replays at most twice as many headers."""


class AppendedBatch(Struct, frozen=True, gc=False):
    """What is remembered of a batch, to recognize it when it is sent again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerState(Struct, frozen=True, gc=False):
    """One producer id in one log.  `batches`: the newest of its epoch, oldest first."""

    producer_epoch: int
    batches: tuple[AppendedBatch, ...]
    next_sequence: int
    """The next one of this epoch; sequences wrap from 2^31-1 to 0."""
    last_timestamp: int
    transaction_first_offset: int | None = None
    """First offset of the open transaction."""
    coordinator_epoch: int = -1


class SequenceRefusal(Struct, frozen=True, gc=False):
    """Why a batch must not be appended."""

    error: ErrorCode
    text: str


NO_STATE: Final = ProducerState(NO_PRODUCER_EPOCH, (), 0, NO_TIMESTAMP)


def check(state: ProducerState, batch: Batch) -> AppendedBatch | SequenceRefusal | None:
    """Check a batch from a client against its producer's state.

    None: append it.  AppendedBatch: it was appended before; answer with that one's offsets.
    A producer that this log does not know, or no longer, may begin with any sequence (KIP-360).
    """
    epoch, first_sequence, known_epoch = (
        batch.producer_epoch,
        batch.base_sequence,
        state.producer_epoch,
    )
    if epoch == known_epoch:
        # The common case is the next in sequence, which is no duplicate.
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


def end_transaction(state: ProducerState, marker: Batch) -> ProducerState:
    """Return the state after `marker`, a control batch that ends the producer's transaction."""
    same_epoch = marker.producer_epoch == state.producer_epoch
    return ProducerState(
        marker.producer_epoch,
        state.batches if same_epoch else (),
        state.next_sequence if same_epoch else 0,
        marker.max_timestamp,
        None,
        state.coordinator_epoch,
    )


class ProducerStates:
    """The table of one log, with snapshots to go back to when the log is truncated."""

    __slots__ = ("_since_snapshot", "_snapshots", "states")

    def __init__(self) -> None:
        self.states: dict[int, ProducerState] = {}
        """By producer id."""
        self._snapshots: list[tuple[int, dict[int, ProducerState]]] = []
        """(log end offset, states then), ascending."""
        self._since_snapshot = 0

    def check(self, batch: Batch) -> AppendedBatch | SequenceRefusal | None:
        """See the function `check`."""
        return check(self.states.get(batch.producer_id, NO_STATE), batch)

    def update(self, batch: Batch) -> None:
        """Update the table: `batch`, of an idempotent producer, was appended."""
        states, producer_id = self.states, batch.producer_id
        state = states.get(producer_id, NO_STATE)
        if batch.attributes & CONTROL_BIT:
            states[producer_id] = end_transaction(state, batch)
        else:
            states[producer_id] = advance(state, batch)
        self._since_snapshot += 1
        if self._since_snapshot >= SNAPSHOT_INTERVAL_BATCHES:
            self.take_snapshot(batch.last_offset + 1)
            if len(self._snapshots) > 64:
                self._thin_out()

    def has_transaction(self, producer_id: int) -> bool:
        """Whether a transaction of this producer is open in this log."""
        state = self.states.get(producer_id)
        return state is not None and state.transaction_first_offset is not None

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction starts; the last stable offset cannot pass it."""
        return min(
            (
                state.transaction_first_offset
                for state in self.states.values()
                if state.transaction_first_offset is not None
            ),
            default=None,
        )

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
        """Keep a copy of the table, as of a log that ends at `offset`."""
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
        if not self._snapshots:
            self.states = {}
            return None
        offset, states = self._snapshots[-1]
        self.states = dict(states)
        return offset

    def forget_snapshots_before(self, start_offset: int) -> None:
        """The log now starts at `start_offset`."""
        self._snapshots = [entry for entry in self._snapshots if entry[0] > start_offset]

    def clear(self) -> None:
        self.states = {}
        self._snapshots = []
        self._since_snapshot = 0

    def _thin_out(self) -> None:
        """Drop every other snapshot of the older half: most truncations are short."""
        half = len(self._snapshots) // 2
        self._snapshots = self._snapshots[:half:2] + self._snapshots[half:]
