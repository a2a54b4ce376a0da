"""DescribeCluster (API 60, v0-2): the brokers, and which of them takes admin requests.

Owns: one answer, from the image.  Never: asks the controller.
Kafka: KafkaApis.handleDescribeCluster, KIP-700, KIP-919, KIP-1073.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.metadata.metadata import ALL_CLUSTER_OPERATIONS, controller_of
from kcluster.broker.registry import handles
from kcluster.broker.versions import zookeeper_controller
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

BROKER_ENDPOINT: Final = 1
CONTROLLER_ENDPOINT: Final = 2


@handles(ApiKey.DESCRIBE_CLUSTER, versions=(0, 2))
def describe_cluster(broker: Broker, request: Request, now_ms: int) -> m.DescribeClusterResponse:
    """Describe the cluster.

    Behaviour:
    - brokers by id, from this broker's own image;
    - MISMATCHED_ENDPOINT_TYPE for a request for controllers.
    Versions:
    - v1: endpoint types (KIP-919)
    - v2: fenced brokers on request (KIP-1073)
    Not done: authorization: every operation is allowed.
    """
    response = build_describe_cluster(
        broker.image, request.body, broker.cluster_id, request.identity.listener
    )
    if not broker.release.is_kraft and not response.error_code:
        response.controller_id = zookeeper_controller(broker.image)
    return response


def build_describe_cluster(
    image: MetadataImage, request: m.DescribeClusterRequest, cluster_id: str, listener: str
) -> m.DescribeClusterResponse:
    """The answer to `request`; fields of v1 and v2 have their defaults in earlier versions."""
    if request.endpoint_type != BROKER_ENDPOINT:
        if request.endpoint_type == CONTROLLER_ENDPOINT:
            error, text = ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this endpoint is a broker's"
        else:
            error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            text = f"endpoint type {request.endpoint_type} is not known"
        return m.DescribeClusterResponse(
            error_code=error, error_message=text, endpoint_type=BROKER_ENDPOINT
        )
    response = m.DescribeClusterResponse(
        endpoint_type=BROKER_ENDPOINT,
        cluster_id=cluster_id,
        controller_id=controller_of(image),
        brokers=[
            m.DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.broker_id,
                host=address.host,
                port=address.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for _, broker in sorted(image.brokers.items())
            if (request.include_fenced_brokers or not broker.fenced)
            and (address := broker.endpoint(listener)) is not None
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS
    return response
