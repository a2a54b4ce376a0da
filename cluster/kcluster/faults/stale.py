"""Responses from old metadata, for the rule `stale`.

Owns: the copy of a broker's image, and the response made from it.  Never: changes the broker.
Kafka: a broker whose metadata log lags, as seen by its clients.
"""

from __future__ import annotations

from typing import Any

from kcluster.broker.node_view import BrokerNodeView
from kcluster.broker.registry import PARKED, SERVED_APIS
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage, TopicImage


class StaleImage:
    """A broker's image as of the creation of this object."""

    def __init__(self, node: BrokerNodeView) -> None:
        self._image = copied(node.image)

    def answer(self, node: BrokerNodeView, request: Request, now_ms: int) -> Any:
        """The response that the broker would have given at that time.  If serving it requests the
        creation of a topic, the broker sends the request in its next step."""
        then: Any = _BrokerThen(node, self._image)
        body = SERVED_APIS[request.api_key].handler(then, request, now_ms)
        assert body is not PARKED, request
        return body


class _BrokerThen:
    """A broker with an old image, for a handler."""

    def __init__(self, node: BrokerNodeView, image: MetadataImage) -> None:
        self.image = image
        self._node = node

    def __getattr__(self, name: str) -> object:
        return getattr(self._node, name)


def copied(image: MetadataImage) -> MetadataImage:
    """A copy that does not change with the image: its values are replaced rather than mutated,
    except for the lists of partitions and the dicts of configs, which are copied."""
    copy = MetadataImage()
    for name in MetadataImage.__slots__:
        value = getattr(image, name)
        setattr(copy, name, dict(value) if isinstance(value, dict) else value)
    copy.topics = {
        name: TopicImage(topic.name, topic.topic_id, list(topic.partitions))
        for name, topic in image.topics.items()
    }
    copy.configs = {key: dict(values) for key, values in image.configs.items()}
    copy.client_quotas = {key: dict(values) for key, values in image.client_quotas.items()}
    return copy
