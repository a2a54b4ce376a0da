"""ListConfigResources (API 74, v0-1): the resources that have configs.

Owns: the answer, from the image.  Never: describes configs (describe_configs.py).
Kafka: KafkaApis.handleListConfigResources; KIP-714 (v0, as ListClientMetricsResources), KIP-1142.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.configs.alter_configs import BROKER_LOGGER_RESOURCE
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

LISTABLE: Final = (
    GROUP_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
)
"""The types of resources, in the order of the answer."""


@handles(ApiKey.LIST_CONFIG_RESOURCES, versions=(0, 1))
def list_config_resources(
    broker: Broker, request: Request, now_ms: int
) -> m.ListConfigResourcesResponse:
    """List resources by type: all topics and brokers, each broker's loggers, and the groups and
    client metrics that have configs.

    Behaviour:
    - without types, resources of all types;
    - UNSUPPORTED_VERSION for the whole request if one type is unknown.
    Versions:
    - v0: client metrics only
    - v1: all types (KIP-1142)
    """
    wanted = set(request.body.resource_types) or set(LISTABLE)
    if request.api_version == 0:
        wanted = {CLIENT_METRICS_RESOURCE}
    if not wanted <= set(LISTABLE):
        return m.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return m.ListConfigResourcesResponse(
        config_resources=[
            m.ListConfigResourcesResponse.ConfigResource(name, kind)
            for kind in LISTABLE
            if kind in wanted
            for name in _names(broker.image, kind)
        ]
    )


def _names(image: MetadataImage, kind: int) -> list[str]:
    if kind == TOPIC_RESOURCE:
        return list(image.topics)
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    return [name for of_kind, name in image.configs if of_kind == kind]
