"""ElectLeaders (API 43, v0-2): preferred or unclean elections, on demand; the controller decides.

Owns: the answer when the controller does not answer in time.  Never: elects.
Kafka: KafkaApis.handleElectLeaders (forwarded), ReplicationControlManager.electLeaders; KIP-183,
KIP-460.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import forward
from kcluster.broker.registry import Answer, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

PREFERRED: Final = 0
UNCLEAN: Final = 1
"""Kafka's ElectionType codes."""


@handles(ApiKey.ELECT_LEADERS, versions=(0, 2))
def elect_leaders(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Elect leaders of the named partitions, or (null) of all.

    Behaviour:
    - as the controller answers; after timeout_ms REQUEST_TIMED_OUT for the whole request and every
      named partition;
    - INVALID_REQUEST for an unknown type of election. Versions:
    - v0: preferred elections only, no error for the whole request
    - v1: unclean elections (KIP-460)
    """
    if request.body.election_type not in (PREFERRED, UNCLEAN):
        message = f"type of election {request.body.election_type} is not known"
        return elect_leaders_failed(request.body, ErrorCode.INVALID_REQUEST, message)
    return forward(broker, request, request.body.timeout_ms, elect_leaders_timed_out, now_ms)


def elect_leaders_timed_out(request: m.ElectLeadersRequest) -> m.ElectLeadersResponse:
    """REQUEST_TIMED_OUT for the whole request and for each named partition."""
    return elect_leaders_failed(request, ErrorCode.REQUEST_TIMED_OUT)


def elect_leaders_failed(
    request: m.ElectLeadersRequest, error: ErrorCode, message: str | None = None
) -> m.ElectLeadersResponse:
    """`error` for the whole request and for each named partition."""
    return m.ElectLeadersResponse(
        error_code=error,
        replica_election_results=[
            m.ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    m.ElectLeadersResponse.PartitionResult(partition, error, message)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )
