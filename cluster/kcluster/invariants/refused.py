"""Refusals that end a transactional producer, though the state of its transaction gives no reason.

Owns: which requests of a producer may be refused for good, by what its coordinator's log says.
Never: uses a decision of the coordinator, looks at a refusal that producers retry.  Kafka:
TransactionCoordinator.handleInitProducerId, handleAddPartitionsToTransaction, endTransaction.

Such a refusal ends the producer, or at least its transaction.  So a request that was served, and is
sent again because its answer was lost, must be served again:

    EndTxn V1    of the current epoch: what was decided; in an open transaction anything
    EndTxn V2    of the epoch before: what was decided.  Of the current one: in an open transaction
                 anything, else an abort, of a transaction that did not reach the coordinator
    AddPartitionsToTxn, AddOffsetsToTxn    of the current epoch
    InitProducerId                         of any producer, or of the current epoch
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.coordinator.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    LAST_EPOCH,
    ONGOING,
    Transaction,
)
from kcluster.contract import Request
from kcluster.invariants.producer_facts import RefusedProducer
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of

_INIT: Final = int(ApiKey.INIT_PRODUCER_ID)
_ADD_PARTITIONS: Final = int(ApiKey.ADD_PARTITIONS_TO_TXN)
_ADD_OFFSETS: Final = int(ApiKey.ADD_OFFSETS_TO_TXN)
_END: Final = int(ApiKey.END_TXN)
OF_PRODUCERS: Final = frozenset((_INIT, _ADD_PARTITIONS, _ADD_OFFSETS, _END))
"""The requests of a producer to its coordinator."""
_FIRST_OF_BROKERS: Final = 4
"""AddPartitionsToTxn from this version on comes from brokers."""
_FIRST_OF_V2: Final = 5
"""EndTxn from this version on increments the epoch."""
_FOR_GOOD: Final = frozenset(
    (
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
    )
)
"""The refusals after which a producer does not ask again."""


def transactional_id_of(request: Request) -> str | None:
    """The transactional id of a producer's request; None if it has none."""
    body = request.body
    if request.api_key == _ADD_PARTITIONS:
        if request.api_version >= _FIRST_OF_BROKERS:
            return None
        return body.v3_and_below_transactional_id or None
    return body.transactional_id or None


def named_producer(request: Request) -> tuple[int, int]:
    """(producer id, epoch) that a producer's request names; -1 for none."""
    body = request.body
    if request.api_key == _ADD_PARTITIONS:
        return body.v3_and_below_producer_id, body.v3_and_below_producer_epoch
    return body.producer_id, body.producer_epoch


def error_in(request: Request, answer: object) -> ErrorCode:
    """The error in an answer to a producer; for partitions with an error each, the first."""
    if request.api_key != _ADD_PARTITIONS:
        return error_of(getattr(answer, "error_code", 0))
    for topic in getattr(answer, "results_by_topic_v3_and_below", ()):
        for partition in topic.results_by_partition:
            return error_of(partition.partition_error_code)
    return ErrorCode.NONE


def refused_for_nothing(
    request: Request, error: ErrorCode, known: Transaction | None
) -> RefusedProducer | None:
    """What is broken if the `known` state of the transaction gives no reason for a refusal that
    ends a producer; otherwise None."""
    if error not in _FOR_GOOD or known is None:
        return None
    producer_id, epoch = named_producer(request)
    if not _must_serve(request, producer_id, epoch, known):
        return None
    return RefusedProducer(
        type(request.body).__name__.removesuffix("Request"),
        producer_id,
        epoch,
        error.name,
        known.state.label,
        known.producer_epoch,
    )


def _must_serve(request: Request, producer_id: int, epoch: int, known: Transaction) -> bool:
    if request.api_key == _INIT and producer_id < 0:
        return True
    if producer_id != known.producer_id or known.producer_epoch >= LAST_EPOCH:
        return False
    is_current = epoch == known.producer_epoch
    if request.api_key != _END:
        return is_current
    is_commit = request.body.committed
    is_decided = known.is_prepared or known.state in (COMPLETE_COMMIT, COMPLETE_ABORT)
    is_the_decision = is_decided and known.is_commit == is_commit
    if is_current and known.state is ONGOING:
        return True
    if request.api_version < _FIRST_OF_V2:
        return is_current and is_the_decision
    if epoch + 1 == known.producer_epoch:
        return is_the_decision
    return is_current and not known.is_prepared and not is_commit
