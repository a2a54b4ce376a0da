"""The leader of a partition, for clients that asked the wrong broker (KIP-951).

Owns: the leader and its address in this broker's image.  Never: chooses the errors that come with a
hint (the handlers of Produce and Fetch do).  Kafka: KafkaApis.getCurrentLeader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kcluster.metadata.image import MetadataImage

E = TypeVar("E")


def current_leader(
    image: MetadataImage, topic: str, topic_id: bytes, partition: int
) -> tuple[int, int]:
    """(leader id, leader epoch) of a partition; (-1, -1) if it is unknown."""
    topic_image = image.topic_by_id(topic_id) or image.topics.get(topic)
    if topic_image is None or not 0 <= partition < len(topic_image.partitions):
        return -1, -1
    registration = topic_image.partitions[partition]
    return registration.leader, registration.leader_epoch


def node_endpoints(
    image: MetadataImage, leaders: dict[int, None], listener: str, endpoint: Callable[..., E]
) -> list[E]:
    """The addresses of the leaders that are up, for clients of this listener, so that they need
    not request metadata.  `endpoint`: the class of an address in the response."""
    brokers = image.brokers
    return [
        endpoint(node_id=leader, host=address.host, port=address.port, rack=known.rack)
        for leader in leaders
        if (known := brokers.get(leader)) is not None
        and not known.fenced
        and (address := known.endpoint(listener)) is not None
    ]
