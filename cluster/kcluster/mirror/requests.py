"""Requests to the nodes of a real Kafka: a user's changes, and questions about logs.

Owns: the choice of the version, the search for a node that answers, attempts after a failure.
Never: decides what is asked (operations/admin.py does), waits outside its greenlet.
Kafka: AdminClient; KIP-919, by which controllers answer admin requests themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import gevent
from gevent.lock import BoundedSemaphore

from kcluster.mirror.connection import Address, InnerLogin, KafkaConnection, NoAnswer
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message

METADATA_TOPIC: Final = "__cluster_metadata"
T = TypeVar("T", bound=Message)

RETRY_S: Final = 0.2
_API_KEYS: Final = {f"{line.name}Request": key for key, line in APIS.items()}
"""API keys by the names of their requests' classes."""
_API_VERSIONS: Final = 0


class NodeRequests:
    """Requests to one node, in the newest versions that both sides know."""

    def __init__(self, address: Address, login: InnerLogin | None = None) -> None:
        self._connection = KafkaConnection(address, login)
        self._versions: dict[int, int] = {}
        """The newest version of each API that the node answers."""
        self._lock = BoundedSemaphore()

    def ask(self, body: Message, kind: type[T]) -> T:
        """The answer to a request, after those of other greenlets; NoAnswer if there is none.
        `kind`: its class."""
        with self._lock:
            answer = self._ask(body)
        assert isinstance(answer, kind), answer
        return answer

    def _ask(self, body: Message) -> Message:
        key = _API_KEYS[type(body).__name__]
        if not self._versions:
            known = self._connection.ask(ApiKey.API_VERSIONS, _API_VERSIONS, m.ApiVersionsRequest())
            assert isinstance(known, m.ApiVersionsResponse), known
            self._versions = {each.api_key: each.max_version for each in known.api_keys}
        if key not in self._versions:
            raise NoAnswer(f"the node does not answer {type(body).__name__}")
        version = min(VERSIONS[ApiKey(key)][1], self._versions[key])
        return self._connection.ask(key, version, body)

    def close(self) -> None:
        """Close the connection; the node may be of another release at its next start."""
        self._connection.close()
        self._versions = {}


class ControllerRequests:
    """Requests to the active controller.  `leader`: its id now, as far as it is known."""

    def __init__(
        self,
        addresses: Mapping[int, Address],
        leader: Callable[[], int],
        login: InnerLogin | None = None,
    ) -> None:
        self._nodes = {each: NodeRequests(address, login) for each, address in addresses.items()}
        self._leader = leader

    def ask(self, body: Message, kind: type[T]) -> T:
        """The answer of the active controller, as soon as there is one."""
        while True:
            try:
                answer = self._nodes[self._leader()].ask(body, kind)
            except NoAnswer:
                gevent.sleep(RETRY_S)
                continue
            if _error_of(answer) != ErrorCode.NOT_CONTROLLER:
                return answer
            gevent.sleep(RETRY_S)

    def close(self) -> None:
        """Close all connections."""
        for node in self._nodes.values():
            node.close()


def describe_quorum() -> m.DescribeQuorumRequest:
    """A question for the end of the metadata log."""
    ask = m.DescribeQuorumRequest
    partition = ask.PartitionData(partition_index=0)
    return ask(topics=[ask.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])])


def _error_of(answer: Message) -> int:
    """The first error code of an answer, at its top or of one of its parts; 0 for none."""
    parts = [answer]
    for name in ("topics", "responses", "results"):
        found = getattr(answer, name, None)
        parts += found if isinstance(found, list) else []
    return next((code for part in parts if (code := getattr(part, "error_code", 0))), 0)
