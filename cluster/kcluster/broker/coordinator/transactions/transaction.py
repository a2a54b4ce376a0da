"""One transaction: its states, and every decision about it.

Owns: `Transaction`, an immutable value, and pure functions that return the next one, or the reason
why there is none.  Never: stores, sends, or waits (coordinator.py and markers.py do).  Kafka:
TransactionState, TransactionMetadata, the decisions in TransactionCoordinator; KIP-98, KIP-360 (a
producer that goes on after an error), KIP-890 (an epoch for each transaction).

    Empty           InitProducerId: nothing open
    Ongoing         partitions are added
    PrepareCommit   decided; markers are being written.  Likewise PrepareAbort
    CompleteCommit  every partition has its marker.  Likewise CompleteAbort

A client speaks one of two protocols, which the version of its request shows.  V1: the epoch stays
from transaction to transaction.  V2: EndTxn increments it, so that a late message of the last
transaction cannot join the next one; an abort may belong to a transaction that never reached this
coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from msgspec.structs import replace

from kcluster.protocol.errors import ErrorCode
from kcluster.structs import Frozen

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIME: Final = -1
LAST_EPOCH: Final = 32766
"""The highest epoch of a client; the coordinator uses the next one to fence it."""
_MAX_EPOCH: Final = 32767
FIRST_OF_V2: Final = 2
"""The transaction version with an epoch for each transaction."""

TopicPartition = tuple[str, int]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions' numbers by topic, in order: the form of requests and records."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


class TransactionState(IntEnum):
    """The states in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name that clients see: `PrepareCommit`."""
        return self.name.title().replace("_", "")


EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT

PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)


class ProducerIdentity(Frozen, frozen=True):
    """The identity that a producer claims."""

    producer_id: int
    producer_epoch: int


class Transaction(Frozen, frozen=True):
    """A transactional id, and its current or last transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id of the next transaction, if the epochs of this one are used up."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the current one; the log does not have it."""
    client_version: int = 0
    """The transaction version of the client that last changed the transaction."""

    @property
    def is_prepared(self) -> bool:
        """Whether the transaction is decided, and some markers are not yet written."""
        return self.state in PREPARED

    @property
    def is_commit(self) -> bool:
        return self.state in (PREPARE_COMMIT, COMPLETE_COMMIT)

    @property
    def is_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH

    @property
    def in_order(self) -> list[TopicPartition]:
        """The partitions, sorted, because the order of a set differs from run to run."""
        return sorted(self.partitions)

    @property
    def next_identity(self) -> ProducerIdentity:
        """The producer's identity in its next transaction."""
        if self.is_prepared and self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, 0)
        return ProducerIdentity(self.producer_id, self.producer_epoch)


class NeedsProducerId(Frozen, frozen=True):
    """The decision needs a new producer id, and must be made again with one."""


class RetriedRequest(Frozen, frozen=True):
    """The request was answered before, and gets that answer again."""

    identity: ProducerIdentity


NEEDS_PRODUCER_ID: Final = NeedsProducerId()
Decision = Transaction | ErrorCode | NeedsProducerId
"""The next state to write, or the reason why there is none."""


# ----------------------------------------------------------------------------- InitProducerId


def init(
    known: Transaction | None,
    transactional_id: str,
    timeout_ms: int,
    expected: ProducerIdentity | None,
    new_producer_id: int | None,
    server_version: int,
    now_ms: int,
) -> Decision:
    """The start of a producer: Empty, with the epoch incremented; or, if a transaction is open,
    PrepareAbort, after which the producer must ask again.  `expected`: the producer's previous
    identity (KIP-360)."""
    if known is None:
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        return Transaction(
            transactional_id=transactional_id,
            producer_id=new_producer_id,
            producer_epoch=0,
            timeout_ms=timeout_ms,
            state=EMPTY,
            last_update_ms=now_ms,
            previous_producer_id=new_producer_id,
        )
    if expected is not None and not _may_go_on(known, expected):
        return ErrorCode.PRODUCER_FENCED
    if known.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.state is ONGOING:
        return fence(known, server_version, new_producer_id, now_ms)
    started = replace(
        known,
        state=EMPTY,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIME,
        last_update_ms=now_ms,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )
    epoch = known.producer_epoch
    if known.is_exhausted:
        if expected is not None and expected.producer_epoch != epoch:
            # Kafka's prepareIncrementProducerEpoch throws before it looks at the epoch of the
            # request, even if the request repeats the last one.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        last_epoch = NO_PRODUCER_EPOCH if expected is None else epoch
        return replace(
            started, producer_id=new_producer_id, producer_epoch=0, last_producer_epoch=last_epoch
        )
    if expected is None:
        return replace(started, producer_epoch=epoch + 1, last_producer_epoch=NO_PRODUCER_EPOCH)
    if expected.producer_epoch == epoch:
        return replace(started, producer_epoch=epoch + 1, last_producer_epoch=epoch)
    if expected.producer_epoch == known.last_producer_epoch:
        return started  # the producer asks again, because the answer was lost
    return ErrorCode.PRODUCER_FENCED


def _may_go_on(known: Transaction, expected: ProducerIdentity) -> bool:
    return expected.producer_id == known.producer_id or (
        expected.producer_id == known.previous_producer_id and expected.producer_epoch >= LAST_EPOCH
    )


# -------------------------------------------------------------------- partitions of a transaction


def refuse_producer(known: Transaction | None, producer: ProducerIdentity) -> ErrorCode:
    """The error of a `producer` that is not the current one; NONE if it is."""
    if known is None or known.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def add_partitions(
    known: Transaction | None,
    producer: ProducerIdentity,
    partitions: frozenset[TopicPartition],
    client_version: int,
    now_ms: int,
) -> Transaction | RetriedRequest | ErrorCode:
    """Ongoing, with these partitions added, if some of them are not in it already."""
    error = refuse_producer(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return error
    if known.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.state is ONGOING and partitions <= known.partitions:
        return RetriedRequest(producer)
    return replace(
        known,
        state=ONGOING,
        partitions=known.partitions | partitions,
        start_ms=known.start_ms if known.state is ONGOING else now_ms,
        last_update_ms=now_ms,
        previous_producer_id=known.producer_id,
        client_version=client_version,
    )


def verify(
    known: Transaction | None, producer: ProducerIdentity, partition: TopicPartition
) -> ErrorCode:
    """NONE if `partition` is part of the producer's open transaction."""
    error = refuse_producer(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return error
    if known.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_part = known.state is ONGOING and partition in known.partitions
    return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE


# -------------------------------------------------------------------------------------- the end


def end(
    known: Transaction | None,
    producer: ProducerIdentity,
    is_commit: bool,
    client_version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> Decision | RetriedRequest:
    """PrepareCommit or PrepareAbort, at a client's request."""
    if client_version < FIRST_OF_V2:
        return _end_v1(known, producer, is_commit, client_version, now_ms)
    if known is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    state, epoch = known.state, producer.producer_epoch
    is_current = epoch == known.producer_epoch
    is_bumped = epoch + 1 == known.producer_epoch
    is_overflown = (
        known.previous_producer_id == producer.producer_id
        and epoch == LAST_EPOCH
        and known.producer_epoch == 0
    )
    if known.producer_id != producer.producer_id and not is_overflown:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.is_prepared:
        is_valid = is_bumped
    elif state in (COMPLETE_COMMIT, COMPLETE_ABORT):
        is_valid = is_bumped or is_overflown or is_current
    else:
        is_valid = is_current
    if not is_valid:
        return ErrorCode.PRODUCER_FENCED
    if known.is_prepared:
        same = known.is_commit == is_commit
        return ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
    if is_bumped or is_overflown:
        same = known.is_commit == is_commit
        return RetriedRequest(known.next_identity) if same else ErrorCode.INVALID_TXN_STATE
    if state is not ONGOING and is_commit:
        return ErrorCode.INVALID_TXN_STATE
    # The abort may belong to a transaction of which only the client knows.
    return _prepare_v2(known, is_commit, client_version, new_producer_id, now_ms)


def _end_v1(
    known: Transaction | None,
    producer: ProducerIdentity,
    is_commit: bool,
    client_version: int,
    now_ms: int,
) -> Decision | RetriedRequest:
    error = refuse_producer(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return error
    if known.state is ONGOING:
        return _prepare(known, is_commit, client_version, now_ms)
    if known.state is EMPTY or known.is_commit != is_commit:
        return ErrorCode.INVALID_TXN_STATE
    if known.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return RetriedRequest(known.next_identity)


def fence(
    known: Transaction, server_version: int, new_producer_id: int | None, now_ms: int
) -> Transaction | NeedsProducerId:
    """PrepareAbort by the coordinator itself: the epoch is incremented, so that the producer of the
    open transaction is fenced.  With V2, a producer that calls InitProducerId with its old epoch
    (KIP-360) goes on in the new epoch."""
    assert known.state is ONGOING, known
    if server_version >= FIRST_OF_V2:
        return _prepare_v2(known, False, server_version, new_producer_id, now_ms)
    return replace(
        _prepare(known, False, 0, now_ms),
        producer_epoch=min(_MAX_EPOCH, known.producer_epoch + 1),
        last_producer_epoch=NO_PRODUCER_EPOCH,
    )


def _prepare_v2(
    known: Transaction, is_commit: bool, version: int, new_producer_id: int | None, now_ms: int
) -> Transaction | NeedsProducerId:
    """Prepare with an incremented epoch; if that was the last epoch, the next transaction has a new
    producer id."""
    if known.is_exhausted and new_producer_id is None:
        return NEEDS_PRODUCER_ID
    return replace(
        _prepare(known, is_commit, version, now_ms),
        producer_epoch=min(_MAX_EPOCH, known.producer_epoch + 1),
        last_producer_epoch=known.producer_epoch,
        next_producer_id=new_producer_id if known.is_exhausted else NO_PRODUCER_ID,
    )


def _prepare(known: Transaction, is_commit: bool, version: int, now_ms: int) -> Transaction:
    return replace(
        known,
        state=PREPARE_COMMIT if is_commit else PREPARE_ABORT,
        start_ms=known.start_ms if known.state is ONGOING else now_ms,
        last_update_ms=now_ms,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        client_version=version,
    )


def complete(prepared: Transaction, now_ms: int) -> Transaction:
    """CompleteCommit or CompleteAbort, because every partition has its marker."""
    assert prepared.is_prepared, prepared
    identity = prepared.next_identity
    return replace(
        prepared,
        state=COMPLETE_COMMIT if prepared.is_commit else COMPLETE_ABORT,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        previous_producer_id=prepared.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_ms=now_ms,
    )


# --------------------------------------------------------------------------------------- timers


def is_timed_out(known: Transaction, now_ms: int) -> bool:
    """Whether the transaction has been open for longer than its producer allowed."""
    return known.state is ONGOING and known.start_ms + known.timeout_ms < now_ms


def is_expired(known: Transaction, expiration_ms: int, now_ms: int) -> bool:
    """Whether the transactional id may be forgotten, after `expiration_ms` without a
    transaction."""
    is_idle = known.state is not ONGOING and not known.is_prepared
    return is_idle and known.last_update_ms + expiration_ms <= now_ms
