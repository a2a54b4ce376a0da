"""A proxy before a simulated cluster, and a client that speaks Kafka's protocol frame by frame.

Owns: Rows (a record in memory), PlainClient, `proxied`.  Never: asserts anything.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from kcluster.config.topology.model import Topology
from kcluster.contract import Event
from kcluster.handle.cluster import Cluster
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.proxy.proxy import ProxySettings
from kcluster.proxy.running import RunningProxy
from kcluster.proxy.upstream import UpstreamSecurity
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import api_of


class Rows:
    """The rows, events and lines of a proxy."""

    def __init__(self) -> None:
        self.of: dict[str, list[Any]] = {}
        self.events: list[Event] = []
        self.lines: list[str] = []

    def put(self, file: str, row: Struct) -> None:
        self.of.setdefault(file, []).append(row)

    def flush(self) -> None:
        pass


class PlainClient:
    """One connection.  `address`: `host:port`, or the pair."""

    def __init__(self, address: str | tuple[str, int], client_id: str = "plain") -> None:
        if isinstance(address, str):
            host, _, port = address.rpartition(":")
            address = host, int(port)
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)
        self.client_id = client_id
        self._number = 0

    def __enter__(self) -> PlainClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, body: Any, version: int | None = None) -> tuple[int, int, int]:
        """Send a request; returns its API, version and correlation id."""
        key, version = api_of(body, version)
        self._number += 1
        buffers = encode_request_frame(key, version, self._number, self.client_id, body)
        self.socket.sendall(b"".join(buffers))
        return key, version, self._number

    def receive(self, sent: tuple[int, int, int]) -> Any:
        """The answer to a request."""
        number, body = decode_response_frame(sent[0], sent[1], self.frame())
        assert number == sent[2]
        return body

    def ask(self, body: Any, version: int | None = None) -> Any:
        return self.receive(self.send(body, version))

    def frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed(self) -> bool:
        """Whether the other end closes the connection, which must come."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            assert part, "the connection was closed"
            data += part
        return data


class Proxied(Struct):
    """A proxy before a cluster."""

    running: RunningProxy
    rows: Rows
    upstream: Any

    @property
    def bootstrap(self) -> str:
        return self.running.bootstrap

    def rows_of(self, file: str) -> list[Any]:
        """The rows of a file, with those of every answer that a client has received."""
        self.running.call(lambda _proxy: None)  # the answer is sent first, then recorded
        return self.rows.of.get(file, [])

    def lines(self) -> list[str]:
        """The lines of the log, with those about every connection that a client saw close."""
        self.running.call(lambda _proxy: None)
        return self.rows.lines

    def broker(self, broker_id: int) -> tuple[str, int]:
        """The proxy's address of a broker."""
        ports = self.running.call(lambda proxy: proxy.listeners.ports())
        return self.running.proxy.settings.host, ports[broker_id]

    def client(self, broker_id: int | None = None, client_id: str = "plain") -> PlainClient:
        place = self.bootstrap if broker_id is None else self.broker(broker_id)
        return PlainClient(place, client_id)


def addresses(bootstrap: str) -> tuple[tuple[str, int], ...]:
    pairs = (part.rpartition(":") for part in bootstrap.split(","))
    return tuple((host, int(port)) for host, _, port in pairs)


@contextmanager
def proxy_before(
    bootstrap: str, upstream: Any = None, security: UpstreamSecurity | None = None, **more: Any
) -> Iterator[Proxied]:
    """A proxy before the cluster at this address."""
    rows = Rows()
    settings = ProxySettings(
        addresses(bootstrap), base_port=0, security=security or UpstreamSecurity(), **more
    )
    with RunningProxy(settings, rows.lines.append, rows.events.append, rows) as running:
        yield Proxied(running, rows, upstream)


@contextmanager
def proxied(brokers: int = 1, **config: Any) -> Iterator[Proxied]:
    """A proxy before a simulated cluster of this many brokers."""
    topology = Topology.of(brokers=brokers, profile="fast", config=config)
    with Cluster(topology) as cluster, proxy_before(cluster.bootstrap, cluster) as found:
        yield found
