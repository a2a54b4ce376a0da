"""InitProducerId (API 22, v0-5): the identity of an idempotent or transactional producer.

Owns: the answer.  Never: holds producer ids (broker/producer_ids.py does), producers' sequences
(partition/producers.py) or transactions (coordinator/transactions does).
Kafka: KafkaApis.handleInitProducerIdRequest, TransactionCoordinator.handleInitProducerId; KIP-98,
KIP-360.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.transactions.changes import Identified, StartProducer
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

FENCED_SINCE: Final = 4
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1


@handles(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
def init_producer_id(
    broker: Broker, request: Request, now_ms: int
) -> m.InitProducerIdResponse | Parked:
    """Assign an id and an epoch to a producer.

    Behaviour:
    - without a transactional id, a new id with epoch 0, whatever old id and epoch it names;
    - with a transactional id, the id's producer with the next epoch, which fences all producers
      before it;
    - CONCURRENT_TRANSACTIONS while the id's last transaction is being ended; an open one is
      aborted;
    - INVALID_REQUEST for an id without an epoch, or an epoch without an id.
    Versions:
    - v3: the old id and epoch (KIP-360)
    - v4: PRODUCER_FENCED; before it INVALID_PRODUCER_EPOCH
    - v6: unstable in 4.3.1, not served
    Not done: two-phase commit (KIP-939), which v6 would ask for.
    """
    body: m.InitProducerIdRequest = request.body
    error = refuse(body, broker.config)
    if error is not ErrorCode.NONE:
        return failed(error)

    if body.transactional_id is not None:
        expected = None
        if body.producer_id != NO_PRODUCER_ID:
            expected = ProducerIdentity(body.producer_id, body.producer_epoch)

        def initialized(outcome: Identified, _at_ms: int) -> None:
            if isinstance(outcome, RequestRefused):
                is_old = request.api_version < FENCED_SINCE
                fenced = outcome.error is ErrorCode.PRODUCER_FENCED
                error = ErrorCode.INVALID_PRODUCER_EPOCH if fenced and is_old else outcome.error
                broker.reply(request, failed(error))
                return
            broker.reply(
                request,
                m.InitProducerIdResponse(
                    producer_id=outcome.producer_id, producer_epoch=outcome.producer_epoch
                ),
            )

        change = StartProducer(body.transactional_id, body.transaction_timeout_ms, expected)
        broker.transactions.submit(change, initialized, now_ms)
        return PARKED

    def then(producer_id: int | None) -> None:
        if producer_id is None:
            broker.reply(request, failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            broker.reply(
                request, m.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
            )

    # DIFFERS: the first producer waits for the broker's first block of ids; Kafka answers
    # COORDINATOR_LOAD_IN_PROGRESS, and the producer retries after its retry.backoff.ms.
    broker.producer_ids.generate(then, now_ms)
    return PARKED


def refuse(request: m.InitProducerIdRequest, config: BrokerConfig) -> ErrorCode:
    """The error because of which `request` gets no producer id, or NONE."""
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= config.transaction_max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def failed(error: ErrorCode) -> m.InitProducerIdResponse:
    """The answer without a producer id, because of `error`."""
    return m.InitProducerIdResponse(
        error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
