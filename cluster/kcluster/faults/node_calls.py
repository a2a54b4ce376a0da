"""Requests between nodes in the form that rules match.

Owns: the APIs that nodes use among themselves, the partitions that such a request names.  Never:
decides or holds anything (rules.py, runtime/node_gate.py).
Kafka: InterBrokerSendThread's and NodeToControllerChannelManager's requests.

A broker's fetch of metadata is a Fetch of `__cluster_metadata`, as in Kafka, and a client's request
that it forwards to the controller is an Envelope (KIP-590).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, final

from kcluster.contract import PeerRequest, Request
from kcluster.faults.calls import KnownCluster, SessionPart, named
from kcluster.faults.rules import Call
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import Envelope, MetadataFetch
from kcluster.protocol.apis import APIS, PEER_APIS, VERSIONS, ApiKey
from kcluster.protocol.names import CLUSTER_METADATA_TOPIC

NODE_APIS: Final = (
    *PEER_APIS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.ENVELOPE,
)
"""The APIs of requests from one node to another."""
_KEYS: Final = {f"{APIS[key].name}Request": key for key in NODE_APIS}
"""The API of a message, by the name of its class: classes are built on first use."""
Names = Callable[[], Iterable[tuple[str, int | None]]]
"""Returns the (topic, partition) pairs that a request names."""
_NO_PARTS: Final[tuple[SessionPart, ...]] = ()


@final
class KnownByController:
    """The controller's metadata.  Part of faults.calls.KnownCluster."""

    def __init__(self, node_id: int, image: MetadataImage) -> None:
        self.broker = node_id
        self._image = image

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._image.topic_names.get(topic_id)

    def topics(self) -> Iterable[str]:
        return self._image.topics

    def session(self, session_id: int) -> Iterable[SessionPart]:
        return _NO_PARTS


def node_call_of(known: KnownCluster, message: PeerRequest) -> Call | None:
    """A request between nodes in the form that rules match; None for one that Kafka does not have.
    `known`: what the node knows to which the request goes."""
    body = message.body
    if isinstance(body, MetadataFetch):
        return _call(known, message.source, ApiKey.FETCH, lambda: [(CLUSTER_METADATA_TOPIC, 0)])
    if isinstance(body, Envelope):
        return _call(known, message.source, ApiKey.ENVELOPE, lambda: [])
    key = _KEYS.get(type(body).__name__)
    if key is None:
        return None
    request = Request(0, key, VERSIONS[key][1], message.request_id, None, body)
    return _call(known, message.source, key, partial(named, known, request))


def _call(known: KnownCluster, source: int, key: ApiKey, names: Names) -> Call:
    return Call(key, VERSIONS[key][1], "", known.broker, True, names, source=source)
