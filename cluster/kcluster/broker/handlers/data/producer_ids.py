"""InitProducerId (API 22, v0-5): a producer id for an idempotent producer.

Owns: the answer.  Never: holds producer ids (broker/producer_ids.py does) or producers' sequences
(partition/producers.py).  Kafka: KafkaApis.handleInitProducerIdRequest,
TransactionCoordinator.handleInitProducerId; KIP-98, KIP-360.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1


@handles(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
def init_producer_id(
    broker: Broker, request: Request, now_ms: int
) -> m.InitProducerIdResponse | Parked:
    """Give the producer a new id, with epoch 0.

    Behaviour:
    - a producer that names its old id and epoch gets a new id as well;
    - INVALID_REQUEST for an id without an epoch, or an epoch without an id.
    Versions:
    - v3: the old id and epoch (KIP-360)
    - v6: unstable in 4.3.1, not served
    Not done: transactions.
    """
    error = refuse(request.body, broker.config)
    if error is not ErrorCode.NONE:
        return failed(error)

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
    """Why `request` gets no producer id, or NONE."""
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
    # DIFFERS: no transactions yet. This error is accurate, and clients handle it: they look for a
    # coordinator until max.block.ms has passed, and report that.
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def failed(error: ErrorCode) -> m.InitProducerIdResponse:
    """No producer id, because of `error`."""
    return m.InitProducerIdResponse(
        error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
