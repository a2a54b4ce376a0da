"""FindCoordinator (API 10, v0-6): the broker that coordinates a key.

Owns: that answer, and creating the coordinator's topic on first need.  Never: coordinates.
Kafka: KafkaApis.getCoordinator, FindCoordinatorRequest.CoordinatorType.
Behaviour:
- the leader of the key's partition of __consumer_offsets, __transaction_state or
  __share_group_state, if that broker is unfenced;
- COORDINATOR_NOT_AVAILABLE until then: the client asks again.
Versions:
- v1: key type (KIP-98)
- v4: many keys (KIP-699)
- v6: the state of a share partition, by `group:topic id:partition` (KIP-932)
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from msgspec import Struct

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.shards import ShardedCoordinator
from kcluster.broker.coordinator.share_state.state import is_share_key
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

BATCHED_SINCE: Final = 4
SHARE_SINCE: Final = 6


class CoordinatorType(IntEnum):
    """Key types of the protocol."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class _Found(Struct, frozen=True):
    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


@handles(ApiKey.FIND_COORDINATOR, versions=(0, 6))
def find_coordinator(broker: Broker, request: Request, now_ms: int) -> m.FindCoordinatorResponse:
    body: m.FindCoordinatorRequest = request.body
    version = request.api_version
    if version < BATCHED_SINCE:
        found = _find(broker, request, body.key, now_ms)
        return m.FindCoordinatorResponse(
            error_code=found.error,
            error_message=_message(found.error),
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    is_known = body.key_type in CoordinatorType.__members__.values()
    answers = []
    for key in body.coordinator_keys:
        found = _find(broker, request, key, now_ms)
        answers.append(
            m.FindCoordinatorResponse.Coordinator(
                key=key,
                node_id=found.node_id,
                host=found.host,
                port=found.port,
                error_code=found.error,
                error_message="" if is_known else found.error.text,
            )
        )
    return m.FindCoordinatorResponse(coordinators=answers)


def _find(broker: Broker, request: Request, key: str, now_ms: int) -> _Found:
    key_type, version = request.body.key_type, request.api_version
    if key_type == CoordinatorType.SHARE and (version < SHARE_SINCE or not is_share_key(key)):
        return _Found(ErrorCode.INVALID_REQUEST)
    coordinator: ShardedCoordinator[Any]
    if key_type == CoordinatorType.GROUP:
        coordinator = broker.coordinator
    elif key_type == CoordinatorType.TRANSACTION:
        coordinator = broker.transactions
    elif key_type == CoordinatorType.SHARE:
        coordinator = broker.share_state
    else:
        return _Found(ErrorCode.INVALID_REQUEST)
    if coordinator.topic not in broker.image.topics:
        coordinator.create_topic(now_ms)
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = broker.image.partition(coordinator.topic, coordinator.partition_for(key))
    leader = None if partition is None else broker.image.brokers.get(partition.leader)
    address = None if leader is None else leader.endpoint(request.identity.listener)
    if leader is None or leader.fenced or address is None:
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Found(ErrorCode.NONE, leader.broker_id, address.host, address.port)


def _message(error: ErrorCode) -> str:
    """The error's text, as from Kafka; "NONE" if there is no error."""
    return "NONE" if error is ErrorCode.NONE else error.text
