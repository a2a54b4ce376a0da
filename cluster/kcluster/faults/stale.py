"""A broker that answers from the cluster as it was.

Owns: the copy of a broker's image, and the answer made from it.  Never: changes the broker.
Kafka: a broker whose metadata log lags, as seen by its clients.
"""

from __future__ import annotations

from typing import Any

from kcluster.broker.node import BrokerNode
from kcluster.broker.registry import PARKED, SERVED_APIS
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage, TopicImage


class StaleImage:
    """The image of a broker at the moment at which this is made."""

    def __init__(self, node: BrokerNode) -> None:
        self._image = copied(node.image)

    def answer(self, node: BrokerNode, request: Request, now_ms: int) -> Any:
        """The answer that the broker would have given then.  If it would have created a topic, too,
        it does so now, with the next step that it takes."""
        then: Any = _Then(node, self._image)
        body = SERVED_APIS[request.api_key].handler(then, request, now_ms)
        assert body is not PARKED, request
        return body


class _Then:
    """A broker with another image, for a handler to read."""

    def __init__(self, node: BrokerNode, image: MetadataImage) -> None:
        self.image = image
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


def copied(image: MetadataImage) -> MetadataImage:
    """An image that stays as it is: what is in it is replaced, not changed, but for the lists of
    partitions and the dicts of configs."""
    found = MetadataImage()
    for name in MetadataImage.__slots__:
        value = getattr(image, name)
        setattr(found, name, dict(value) if isinstance(value, dict) else value)
    found.topics = {
        name: TopicImage(topic.name, topic.topic_id, list(topic.partitions))
        for name, topic in image.topics.items()
    }
    found.configs = {key: dict(values) for key, values in image.configs.items()}
    found.client_quotas = {key: dict(values) for key, values in image.client_quotas.items()}
    return found
