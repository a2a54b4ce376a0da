"""The proxy as a whole: its listeners, its connections, its rules and its record.

Owns: the parts, their start and their end.  Never: reads the user's files (cli/ does), serves HTTP.
Kafka: no counterpart.

All of it runs in one thread, in the hub of the thread that starts it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Final

import gevent
from msgspec import Struct

from kcluster.contract import Event
from kcluster.faults.calls import SessionPart
from kcluster.proxy.addresses import Address
from kcluster.proxy.connection import ProxiedConnection
from kcluster.proxy.gate import ProxyGate
from kcluster.proxy.groups import ProxiedGroups
from kcluster.proxy.listeners import BOOTSTRAP, Accepted, BrokerPorts, ProxyPorts, is_own
from kcluster.proxy.recording import ExchangeRecorder, Sink
from kcluster.proxy.streams import READ_SIZE_BYTES, ByteEnd, PlainEnd, secured
from kcluster.proxy.upstream import (
    CONNECT_TIMEOUT_S,
    Upstream,
    UpstreamError,
    UpstreamSecurity,
    UpstreamSilent,
)
from kcluster.proxy.versions import PlainAnswers

FLUSH_S: Final = 0.5
"""The part of the record that a process loses at most when it is killed."""


class ProxySettings(Struct, frozen=True):
    """What a proxy is started with.  `tls`: for clients; None: they connect without; `allowed`:
    patterns of hosts besides this machine."""

    bootstrap: tuple[Address, ...]
    host: str = "127.0.0.1"
    base_port: int = 19092
    security: UpstreamSecurity = UpstreamSecurity()
    tls: ssl.SSLContext | None = None
    seed: int = 0
    allowed: tuple[str, ...] = ()


class KafkaProxy:
    """A running proxy.  `log`: takes lines for the user; `note`: takes events; `sink`: takes the
    rows of the record, None for no record."""

    def __init__(
        self,
        settings: ProxySettings,
        log: Callable[[str], None],
        note: Callable[[Event], None],
        sink: Sink | None,
        recorder: ExchangeRecorder | None = None,
        make_ports: Callable[[Accepted], BrokerPorts] | None = None,
    ) -> None:
        """`recorder`: in place of one that writes to `sink`; `make_ports`: in place of ports that
        open when a broker becomes known."""
        self.settings = settings
        self.log = log
        self.log_broken = log
        """Takes lines about connections that broke."""
        self.room = memoryview(bytearray(READ_SIZE_BYTES))
        self.plain_versions = PlainAnswers()
        self.recorder = recorder or ExchangeRecorder(sink)
        self.gate = ProxyGate(self, note, settings.seed)
        self.upstream = Upstream(settings.bootstrap, settings.security, settings.allowed)
        self.groups = ProxiedGroups(self.upstream, note)
        self.connections: dict[int, ProxiedConnection] = {}
        self._unreached: dict[int, str] = {}
        """Why a broker could not be reached the last time, by broker."""
        self._numbers = 0
        self.on_new_broker: Callable[[int, Address, int], None] = lambda _id, _address, _port: None
        self.listeners: BrokerPorts = (
            ProxyPorts(settings.host, settings.base_port, self._accepted, self._on_new, log)
            if make_ports is None
            else make_ports(self._accepted)
        )
        self._flushing = gevent.spawn(self._flush)

    def learn_brokers(self) -> None:
        """Ask the cluster for its brokers; UpstreamError if it cannot be reached.  A cluster that
        answers only who has logged in gets its listeners with its clients' first answers."""
        port = self.listeners.bootstrap_port
        for address in self.settings.bootstrap:
            if is_own(address, self.settings.host, port):
                raise UpstreamError(f"{address[0]}:{port} is the proxy itself, not a cluster")
        try:
            brokers = self.upstream.brokers()
        except UpstreamSilent as error:
            self.log(f"{error}; its brokers become known when clients have logged in")
            return
        for broker_id, address in sorted(brokers.items()):
            self.listeners.learn(broker_id, address)

    def close(self) -> None:
        """Close all ports and all connections."""
        self.listeners.close()
        for connection in tuple(self.connections.values()):
            connection.close("")
        self._flushing.kill()
        self.recorder.flush()

    def _flush(self) -> None:
        while True:
            gevent.sleep(FLUSH_S)
            self.recorder.flush()

    def _on_new(self, broker_id: int, address: Address, port: int) -> None:
        self.on_new_broker(broker_id, address, port)

    def _accepted(self, broker_id: int, sock: socket.socket) -> None:
        sock.setblocking(False)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._numbers += 1
            connection = ProxiedConnection(self, broker_id, sock, self._numbers)
        except OSError:
            sock.close()  # its client has gone already
            return
        self.connections[connection.number] = connection

    # ------------------------------------------------------------------------- for connections

    def connect(self, broker_id: int) -> tuple[ByteEnd, int]:
        """A connection to a broker, and the broker's id if it is known."""
        try:
            found = self._connected(broker_id)
        except UpstreamError as error:
            # Clients try again many times a second: a line for each would hide all others.
            if self._unreached.get(broker_id) != str(error):
                self._unreached[broker_id] = str(error)
                self.log(f"{_named(broker_id)} cannot be reached: {error}")
            raise
        if self._unreached.pop(broker_id, None) is not None:
            self.log(f"{_named(broker_id)} is reached again")
        return found

    def _connected(self, broker_id: int) -> tuple[ByteEnd, int]:
        if broker_id != BOOTSTRAP:
            return self.upstream.connect(self.listeners.brokers[broker_id]), broker_id
        end, address = self.upstream.connect_to_any()
        found = (key for key, known in self.listeners.brokers.items() if known == address)
        return end, next(found, BOOTSTRAP)

    def secure(self, sock: socket.socket) -> ByteEnd:
        """The client's end, once its TLS handshake has ended."""
        context = self.settings.tls
        if context is None:
            return PlainEnd(sock)
        return secured(sock, context, server_side=True, name=None, timeout_s=CONNECT_TIMEOUT_S)

    def advertised_host(self, sock: socket.socket) -> str:
        """The host under which a client has reached the proxy."""
        return self.listeners.advertised_host(sock)

    def learn(self, broker_id: int, address: Address) -> int:
        """The port that stands for a broker."""
        return self.listeners.learn(broker_id, address)

    def forget(self, connection: ProxiedConnection) -> None:
        """Forget a connection that is closed."""
        self.connections.pop(connection.number, None)

    # ------------------------------------------------------------------------------- for rules

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if it is not known."""
        return self.recorder.names.get(topic_id)

    def topics(self) -> Iterable[str]:
        """The names of the topics that are known."""
        return dict.fromkeys(self.recorder.names.values())

    def session(self, broker_id: int, session_id: int) -> Iterable[SessionPart]:
        """The partitions of a fetch session."""
        return self.recorder.sessions.parts(broker_id, session_id)


def _named(broker_id: int) -> str:
    return "the cluster" if broker_id == BOOTSTRAP else f"broker {broker_id}"
