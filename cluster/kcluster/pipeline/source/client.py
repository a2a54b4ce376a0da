"""A blocking client of Kafka's wire: connections, Metadata, one request at a time to each broker.

Owns: sockets, API versions, partition leaders by the last Metadata, deadlines.  Never: interprets
the errors of a read or a write (lookups.py, loading.py, writer.py do).
Kafka: NetworkClient, Metadata.  A Spark worker is a process with one task at a time, so there is no
concurrency here.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from struct import Struct as Layout
from typing import Any, Final

from msgspec import Struct

import kcluster
from kcluster.pipeline.source.errors import SourceError, Unreachable
from kcluster.pipeline.source.options import SourceClientSettings
from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode, ProtocolError, error_of
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.messages import Message

_SIZE: Final = Layout(">i")
_FRAME_MAX_BYTES: Final = 1 << 30
_NOBODY: Final = -1
_SOFTWARE: Final = "kcluster-spark"
_ZERO_ID: Final = bytes(16)


class Leader(Struct, frozen=True):
    """The leader of a partition by the last Metadata; `node`: -1 if there is none."""

    node: int
    epoch: int


class Topic(Struct, frozen=True):
    """A topic by the last Metadata.  `id`: 32 hex digits, "" if brokers do not send one."""

    name: str
    id: str
    is_internal: bool
    partitions: dict[int, Leader]


class Deadline:
    """The time limit of an operation."""

    def __init__(self, limit_ms: int) -> None:
        self.limit_ms = limit_ms
        self._until_s = time.monotonic() + limit_ms / 1_000

    def wait(self, backoff_ms: int, reason: str) -> None:
        """Sleep; Unreachable with the reason if the limit would be exceeded."""
        if time.monotonic() + backoff_ms / 1_000 > self._until_s:
            raise Unreachable(f"{reason}, for {self.limit_ms} ms")
        time.sleep(backoff_ms / 1_000)


class BlockingConnection:
    """One connection to one broker.  After an OSError or ProtocolError, the connection must be
    dropped."""

    def __init__(self, address: tuple[str, int], settings: SourceClientSettings) -> None:
        self._client_id = settings.client_id
        self._correlation_id = 0
        connect_s = settings.connect_timeout_ms / 1_000
        self._socket = socket.create_connection(address, connect_s)
        self._socket.settimeout(settings.request_timeout_ms / 1_000)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked: tuple[int, int, int] | None = None
        try:
            self.versions = self._greet()
        except (OSError, ProtocolError):
            self.close()
            raise

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    @property
    def is_waiting(self) -> bool:
        """Whether the answer to a request is still outstanding."""
        return self._asked is not None

    def ask(self, api_key: int, body: Message, most: int = 1 << 15) -> Any:
        """Send a request and return its answer."""
        self.send(api_key, body, most)
        return self.take()

    def version(self, api_key: int, most: int = 1 << 15) -> int:
        """The highest version of an API that both sides have; SourceError if there is none."""
        low, high = self.versions.get(api_key, (0, -1))
        ours = VERSIONS[api_key]
        version = min(high, ours[1], most)
        if version < max(low, ours[0]):
            name = ApiKey(api_key).name
            text = f"this client supports no version of {name} that the broker has"
            raise SourceError(text)
        return version

    def send(self, api_key: int, body: Message, most: int = 1 << 15, answered: bool = True) -> None:
        """Send a request; `take` waits for the answer.  `answered`: False for acks=0."""
        assert self._asked is None, "one request at a time"
        version = self.version(api_key, most)
        self._correlation_id += 1
        frame = encode_request_frame(api_key, version, self._correlation_id, self._client_id, body)
        self._socket.sendall(b"".join(frame))
        if answered:
            self._asked = api_key, version, self._correlation_id

    def take(self) -> Any:
        """Wait for the answer to the last request."""
        assert self._asked is not None, "no request is outstanding"
        (api_key, version, sent), self._asked = self._asked, None
        correlation_id, answer = decode_response_frame(api_key, version, self._frame())
        if correlation_id != sent:
            raise ProtocolError(f"an answer to request {correlation_id} instead of {sent}", 0)
        return answer

    def _greet(self) -> dict[int, tuple[int, int]]:
        key = ApiKey.API_VERSIONS
        body = m.ApiVersionsRequest(_SOFTWARE, kcluster.__version__)
        for version in (VERSIONS[key][1], 0):
            self._correlation_id += 1
            request = encode_request_frame(
                key, version, self._correlation_id, self._client_id, body
            )
            self._socket.sendall(b"".join(request))
            frame = self._frame()
            # A broker that does not support the version answers with version 0.
            if version and error_of(_code_of(frame)) is ErrorCode.UNSUPPORTED_VERSION:
                continue
            answer = decode_response_frame(key, version, frame)[1]
            return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        raise ProtocolError("no version of ApiVersions is supported by both sides", 0)

    def _frame(self) -> memoryview:
        (size,) = _SIZE.unpack(self._exactly(4))
        if not 0 <= size <= _FRAME_MAX_BYTES:
            raise ProtocolError(f"frame of {size} bytes", 0)
        return self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        view = memoryview(bytearray(size))
        filled = 0
        while filled < size:
            count = self._socket.recv_into(view[filled:])
            if not count:
                raise ConnectionResetError("closed by the broker")
            filled += count
        return view


class BlockingClient:
    """Connections to the brokers of a cluster, and the last Metadata."""

    def __init__(self, settings: SourceClientSettings) -> None:
        self.settings = settings
        self.topics: dict[str, Topic] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._connections: dict[int, BlockingConnection] = {}
        self._turn = 0

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers as host:port, separated by commas."""
        return ",".join(f"{host}:{port}" for host, port in self.settings.bootstrap)

    def close(self) -> None:
        """Close all connections; the client can be used again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def deadline(self) -> Deadline:
        """A deadline of default.api.timeout.ms."""
        return Deadline(self.settings.api_timeout_ms)

    def refresh(self, names: Iterable[str] | None, may_create: bool = False) -> None:
        """Request Metadata until a broker answers; the answer replaces the old one.  `names` None:
        all topics.  `may_create`: brokers may create missing topics (auto.create.topics.enable).
        Unreachable after default.api.timeout.ms."""
        deadline = self.deadline()
        topics = None if names is None else sorted(names)
        while True:
            reason = "no address of a broker is known"
            for address in self._candidates():
                try:
                    self._learn(self._metadata(address, topics, may_create))
                    return
                except (OSError, ProtocolError) as error:
                    reason = f"{address[0]}:{address[1]}: {_words(error)}"
            deadline.wait(self.settings.retry_backoff_ms, f"no broker answers: {reason}")

    def leader(self, topic: str, partition: int) -> Leader:
        """The leader by the last Metadata; node -1 if there is none, or no such partition."""
        known = self.topics.get(topic)
        no_leader = Leader(_NOBODY, -1)
        return no_leader if known is None else known.partitions.get(partition, no_leader)

    def connection(self, node: int) -> BlockingConnection:
        """The connection to a broker.  Raises OSError, ProtocolError."""
        connection = self._connections.get(node)
        if connection is None:
            address = self._brokers.get(node)
            if address is None:
                raise ConnectionError(f"broker {node} is unknown")
            connection = self._connections[node] = BlockingConnection(address, self.settings)
        return connection

    def drop(self, node: int) -> None:
        """Close a connection that failed, or whose outstanding answer is not wanted."""
        connection = self._connections.pop(node, None)
        if connection is not None:
            connection.close()

    def ask(self, node: int, api_key: int, body: Message, most: int = 1 << 15) -> Any:
        """Ask one broker; None if it does not answer, so that the caller should request Metadata
        again."""
        try:
            connection = self.connection(node)
            if connection.is_waiting:
                self.drop(node)
                connection = self.connection(node)
            return connection.ask(api_key, body, most)
        except (OSError, ProtocolError):
            self.drop(node)
            return None

    def _candidates(self) -> list[tuple[str, int]]:
        """Addresses for Metadata, rotated at each call: a broker may be isolated without knowing
        it."""
        addresses = list(dict.fromkeys((*self._brokers.values(), *self.settings.bootstrap)))
        self._turn += 1
        at = self._turn % len(addresses) if addresses else 0
        return addresses[at:] + addresses[:at]

    def _metadata(
        self, address: tuple[str, int], names: list[str] | None, may_create: bool
    ) -> m.MetadataResponse:
        node = next((node for node, at in self._brokers.items() if at == address), None)
        topic = m.MetadataRequest.MetadataRequestTopic
        topics = None if names is None else [topic(name=name) for name in names]
        body = m.MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)
        if node is None:
            connection = BlockingConnection(address, self.settings)
            try:
                answer: m.MetadataResponse = connection.ask(ApiKey.METADATA, body)
                return answer
            finally:
                connection.close()
        connection = self.connection(node)
        try:
            answer = connection.ask(ApiKey.METADATA, body)
            return answer
        except (OSError, ProtocolError):
            self.drop(node)
            raise

    def _learn(self, answer: m.MetadataResponse) -> None:
        brokers = {row.node_id: (row.host, row.port) for row in answer.brokers}
        for node in list(self._connections):
            if brokers.get(node) != self._brokers.get(node):
                self.drop(node)
        self._brokers = brokers
        self.topics = {
            row.name: _topic(row.name, row) for row in answer.topics if row.name and _is_there(row)
        }


def _is_there(row: m.MetadataResponse.MetadataResponseTopic) -> bool:
    return row.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)


def _topic(name: str, row: m.MetadataResponse.MetadataResponseTopic) -> Topic:
    topic_id = bytes(row.topic_id)
    return Topic(
        name,
        "" if topic_id == _ZERO_ID else topic_id.hex(),
        row.is_internal,
        {one.partition_index: Leader(one.leader_id, one.leader_epoch) for one in row.partitions},
    )


def _code_of(frame: memoryview) -> int:
    """The error code of an ApiVersions answer, which has the same place in all versions."""
    return int.from_bytes(frame[4:6], "big", signed=True) if len(frame) >= 6 else 0


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
