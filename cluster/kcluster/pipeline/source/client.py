"""A blocking client of Kafka's wire: connections, Metadata, one request at a time to each broker.

Owns: sockets, versions, who leads what by the last Metadata, the time that may be spent.  Never:
decides what an error means for a read or a write (lookups.py, loading.py, writer.py do).
Kafka: NetworkClient, Metadata.  A worker of Spark's is a process that waits for its one task, so
nothing here runs at the same time as anything else.
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

_SIZE: Final = Layout(">i")
_FRAME_MAX_BYTES: Final = 1 << 30
_NOBODY: Final = -1
_SOFTWARE: Final = "kcluster-spark"
_ZERO_ID: Final = bytes(16)


class Leader(Struct, frozen=True):
    """Who leads a partition, by the last Metadata; `node` -1: nobody."""

    node: int
    epoch: int


class Topic(Struct, frozen=True):
    """A topic, by the last Metadata.  `id`: 32 hex digits, "" where brokers have none."""

    name: str
    id: str
    is_internal: bool
    partitions: dict[int, Leader]


class Deadline:
    """How long something may still take."""

    def __init__(self, limit_ms: int) -> None:
        self.limit_ms = limit_ms
        self._until_s = time.monotonic() + limit_ms / 1_000

    def wait(self, backoff_ms: int, reason: str) -> None:
        """Let some time go by; Unreachable, with the reason, if there is none left."""
        if time.monotonic() + backoff_ms / 1_000 > self._until_s:
            raise Unreachable(f"{reason}, for {self.limit_ms} ms")
        time.sleep(backoff_ms / 1_000)


class BlockingConnection:
    """One connection to one broker.  OSError or ProtocolError: it is of no use any more."""

    def __init__(self, address: tuple[str, int], settings: SourceClientSettings) -> None:
        self._client_id = settings.client_id
        self._correlation_id = 0
        connect_s = settings.connect_timeout_ms / 1_000
        self._socket = socket.create_connection(address, connect_s)
        self._socket.settimeout(settings.request_timeout_ms / 1_000)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked: tuple[int, int, int] | None = None
        self.versions = self._greet()

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()

    @property
    def is_waiting(self) -> bool:
        """Whether a request was sent whose answer was not taken."""
        return self._asked is not None

    def ask(self, api_key: int, body: Any, most: int = 1 << 15) -> Any:
        """Send a request and take its answer."""
        self.send(api_key, body, most)
        return self.take()

    def version(self, api_key: int, most: int = 1 << 15) -> int:
        """The highest that both sides have; SourceError if there is none."""
        low, high = self.versions.get(api_key, (0, -1))
        ours = VERSIONS[api_key]
        version = min(high, ours[1], most)
        if version < max(low, ours[0]):
            name = ApiKey(api_key).name
            raise SourceError(f"the broker has no version of {name} that is known here")
        return version

    def send(self, api_key: int, body: Any, most: int = 1 << 15, answered: bool = True) -> None:
        """Send a request; `take` waits for the answer, if it has one (acks=0 has not)."""
        assert self._asked is None, "one request at a time"
        version = self.version(api_key, most)
        self._correlation_id += 1
        frame = encode_request_frame(api_key, version, self._correlation_id, self._client_id, body)
        self._socket.sendall(b"".join(frame))
        if answered:
            self._asked = api_key, version, self._correlation_id

    def take(self) -> Any:
        """The answer to what was sent last."""
        assert self._asked is not None, "nothing was asked"
        (api_key, version, sent), self._asked = self._asked, None
        correlation_id, answer = decode_response_frame(api_key, version, self._frame())
        if correlation_id != sent:
            raise ProtocolError(f"the answer to request {correlation_id}, not to {sent}", 0)
        return answer

    def _greet(self) -> dict[int, tuple[int, int]]:
        key = ApiKey.API_VERSIONS
        body = m.ApiVersionsRequest(_SOFTWARE, kcluster.__version__)
        for version in (VERSIONS[key][1], 0):
            self._correlation_id += 1
            frame = encode_request_frame(key, version, self._correlation_id, self._client_id, body)
            self._socket.sendall(b"".join(frame))
            told = self._frame()
            # A broker that does not know the version says so in the form of version 0.
            if version and error_of(_code_of(told)) is ErrorCode.UNSUPPORTED_VERSION:
                continue
            answer = decode_response_frame(key, version, told)[1]
            return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        raise ProtocolError("no version of ApiVersions is known on both sides", 0)

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
    """Connections to the brokers of a cluster, and what Metadata said last."""

    def __init__(self, settings: SourceClientSettings) -> None:
        self.settings = settings
        self.topics: dict[str, Topic] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._connections: dict[int, BlockingConnection] = {}
        self._turn = 0

    @property
    def bootstrap(self) -> str:
        """As the user wrote it."""
        return ",".join(f"{host}:{port}" for host, port in self.settings.bootstrap)

    def close(self) -> None:
        """Close all connections; it may be used again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def deadline(self) -> Deadline:
        """default.api.timeout.ms from now."""
        return Deadline(self.settings.api_timeout_ms)

    def refresh(self, names: Iterable[str] | None, may_create: bool = False) -> None:
        """Ask for topics (None: all there are) until some broker answers; what it says of them
        replaces what was known.  Unreachable after default.api.timeout.ms.  `may_create`: where
        brokers make topics that somebody asks for (auto.create.topics.enable)."""
        deadline = self.deadline()
        wanted = None if names is None else sorted(names)
        while True:
            reason = "no broker has an address"
            for address in self._candidates():
                try:
                    self._learn(self._metadata(address, wanted, may_create))
                    return
                except (OSError, ProtocolError) as error:
                    reason = f"{address[0]}:{address[1]}: {_words(error)}"
            deadline.wait(self.settings.retry_backoff_ms, f"no broker answers: {reason}")

    def leader(self, topic: str, partition: int) -> Leader:
        """By the last Metadata; node -1 if nobody leads it or it is not there."""
        found = self.topics.get(topic)
        nobody = Leader(_NOBODY, -1)
        return nobody if found is None else found.partitions.get(partition, nobody)

    def connection(self, node: int) -> BlockingConnection:
        """To that broker; OSError, ProtocolError."""
        found = self._connections.get(node)
        if found is None:
            address = self._brokers.get(node)
            if address is None:
                raise ConnectionError(f"no broker {node} is known")
            found = self._connections[node] = BlockingConnection(address, self.settings)
        return found

    def drop(self, node: int) -> None:
        """Its connection failed, or has an answer under way that nobody wants."""
        found = self._connections.pop(node, None)
        if found is not None:
            found.close()

    def ask(self, node: int, api_key: int, body: Any, most: int = 1 << 15) -> Any:
        """Ask one broker; None if it does not answer: it may be another's turn by now."""
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
        """All that may know, another first each time: one may be cut off without knowing it."""
        found = list(dict.fromkeys((*self._brokers.values(), *self.settings.bootstrap)))
        self._turn += 1
        at = self._turn % len(found) if found else 0
        return found[at:] + found[:at]

    def _metadata(self, address: tuple[str, int], names: list[str] | None, may_create: bool) -> Any:
        node = next((node for node, at in self._brokers.items() if at == address), None)
        topic = m.MetadataRequest.MetadataRequestTopic
        asked = None if names is None else [topic(name=name) for name in names]
        body = m.MetadataRequest(topics=asked, allow_auto_topic_creation=may_create)
        if node is None:
            connection = BlockingConnection(address, self.settings)
            try:
                return connection.ask(ApiKey.METADATA, body)
            finally:
                connection.close()
        connection = self.connection(node)
        try:
            return connection.ask(ApiKey.METADATA, body)
        except (OSError, ProtocolError):
            self.drop(node)
            raise

    def _learn(self, answer: Any) -> None:
        brokers = {row.node_id: (row.host, row.port) for row in answer.brokers}
        for node in list(self._connections):
            if brokers.get(node) != self._brokers.get(node):
                self.drop(node)
        self._brokers = brokers
        self.topics = {row.name: _topic(row) for row in answer.topics if _is_there(row)}


def _is_there(row: Any) -> bool:
    return row.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)


def _topic(row: Any) -> Topic:
    topic_id = bytes(row.topic_id)
    return Topic(
        row.name,
        "" if topic_id == _ZERO_ID else topic_id.hex(),
        row.is_internal,
        {one.partition_index: Leader(one.leader_id, one.leader_epoch) for one in row.partitions},
    )


def _code_of(frame: memoryview) -> int:
    """The error code at the beginning of an ApiVersions answer, in all its versions."""
    return int.from_bytes(frame[4:6], "big", signed=True) if len(frame) >= 6 else 0


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
