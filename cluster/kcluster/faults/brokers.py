"""A simulated broker as the rules at it see it: its metadata of now, or of the time when a rule
`stale` was added.

Owns: KnownByBroker; the copy of a broker's image.  Never: changes the broker, applies a rule
(runtime/gate.py does).  Kafka: no counterpart; for `stale`, a broker whose metadata log lags.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

from kcluster.broker.authorization import admit
from kcluster.broker.node_view import BrokerNodeView
from kcluster.broker.registry import PARKED, SERVED_APIS
from kcluster.contract import Request
from kcluster.faults.calls import SessionPart
from kcluster.metadata.image import MetadataImage, TopicImage


@final
class KnownByBroker:
    """A broker's metadata and fetch sessions.  Part of faults.calls.KnownCluster."""

    def __init__(self, node: BrokerNodeView) -> None:
        self.node = node

    @property
    def broker(self) -> int:
        return self.node.node_id

    def topic_name(self, topic_id: bytes) -> str | None:
        return self.node.image.topic_names.get(topic_id)

    def topics(self) -> Iterable[str]:
        return self.node.image.topics

    def session(self, session_id: int) -> Iterable[SessionPart]:
        return self.node.sessions.peek(session_id)


class StaleImage:
    """A broker's image as of the creation of this object."""

    def __init__(self, node: BrokerNodeView) -> None:
        self._image = copied(node.image)

    def answer(self, node: BrokerNodeView, request: Request, now_ms: int) -> Any:
        """The response that the broker would have given at that time. If the response requests the
        creation of a topic, the broker sends the request in its next step."""
        then: Any = _BrokerThen(node, self._image)
        access, asked = node.access, request
        if access is not None:
            admitted = admit(then, request)
            if not isinstance(admitted, Request):
                return admitted
            asked = admitted
        body = SERVED_APIS[request.api_key].handler(then, asked, now_ms)
        assert body is not PARKED, request
        return body if access is None else access.complete(asked, body)[1]


class _BrokerThen:
    """A broker with an old image, as a handler reads it."""

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
