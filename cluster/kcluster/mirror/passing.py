"""The proxy before a real Kafka: clients of this machine reach the brokers through it.

Owns: one open port per broker that serves, the requests and answers that pass, as those of a
simulated cluster's brokers.  Never: passes a frame on (proxy/), keeps a row (recorder.py).
Kafka: no counterpart.

It runs in the driver's hub, so that its events, and a user's rules, come between two dispatches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from kcluster.config.topology.model import Topology
from kcluster.contract import Event, Request
from kcluster.drivers.sockets.acceptor import ReservedPort
from kcluster.faults.rules import Rule, RuleError
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey, codec, is_known
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.messages import Message
from kcluster.proxy.addresses import Address
from kcluster.proxy.connection import ProxiedConnection
from kcluster.proxy.exchange import BARE_TOKEN, AskedRequest, Exchange
from kcluster.proxy.gate import ProxyGate
from kcluster.proxy.listeners import ReservedPorts
from kcluster.proxy.proxy import KafkaProxy, ProxySettings
from kcluster.proxy.recording import ExchangeRecorder, decoded_answer, read_batches

ANY_HOST: Final = ("*",)
"""The brokers are this process's own, also in network namespaces with addresses of their own."""
_SECRET: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


def why_no_proxy(topology: Topology) -> str | None:
    """Why no proxy can be before the brokers of a topology; None if one can."""
    for spec in topology.brokers:
        if len(spec.all_listeners) > 1:
            return f"broker {spec.id} has several listeners"
        (listener,) = spec.all_listeners
        if listener.protocol.has_tls:
            return f"the TLS of listener {listener.name} ends at the brokers"
        if listener.advertised is not None:
            return f"broker {spec.id} advertises another address"
    return None


class PassedRequests(Protocol):
    """Takes what passes."""

    def passed(self, broker_id: int, request: Request, body: Message | None) -> None:
        """Take note of a request with its answer; None: the client asked for none."""

    def unanswered(self, broker_id: int, request: Request) -> None:
        """Take note of a request whose client gets no answer."""


class PassingRequests(ExchangeRecorder):
    """Decodes each request and answer once it has been sent on."""

    def __init__(self, sink: PassedRequests) -> None:
        super().__init__(None)
        self._passed = sink

    def asked(self, broker_id: int, exchange: Exchange, frame: memoryview) -> None:
        key, version = exchange.api_key, exchange.api_version
        if key in _SECRET or key == BARE_TOKEN or not is_known(key, version):
            return
        try:
            body = codec(key, version).decode_request(frame, exchange.body_position)
        except ProtocolError:
            return  # the broker refuses it
        exchange.kept = AskedRequest(body)
        if isinstance(body, m.FetchRequest):
            exchange.kept.parts = self.sessions.wanted(broker_id, body)

    def answered(
        self,
        connection: ProxiedConnection,
        exchange: Exchange,
        size_bytes: int,
        body: Message | None,
        frame: memoryview | None,
    ) -> None:
        kept, key = exchange.kept, exchange.api_key
        if body is None and frame is not None and kept is not None:
            body = decoded_answer(key, exchange.api_version, frame)
        super().answered(connection, exchange, size_bytes, body, None)
        if kept is None:
            return
        request = Request(
            connection.number,
            key,
            exchange.api_version,
            exchange.correlation_id,
            exchange.client_id,
            kept.body,
            arrived_ms=exchange.asked_ms,
        )
        if size_bytes < 0 and exchange.is_answered:
            self._passed.unanswered(connection.broker_id, request)
            return
        if isinstance(body, m.FetchResponse):
            read_batches(body)
        self._passed.passed(connection.broker_id, request, body)


class GroundProxy:
    """The proxy of one real cluster.  `ports`: reserved ones, on which clients reach each broker;
    `brokers`: where each broker listens.  It exists in the driver's hub, until `close`."""

    def __init__(
        self,
        ports: Mapping[int, ReservedPort],
        brokers: Mapping[int, Address],
        passed: PassedRequests,
        note: Callable[[Event], None],
        log: Callable[[str], None],
        seed: int,
    ) -> None:
        host = next(iter(ports.values())).host
        for port in ports.values():
            port.lend()
        settings = ProxySettings((), host, 0, seed=seed, allowed=ANY_HOST)
        numbers = {broker: port.port for broker, port in ports.items()}

        def make_ports(accepted: Callable[..., None]) -> ReservedPorts:
            return ReservedPorts(host, numbers, brokers, accepted, log)

        self._proxy = KafkaProxy(settings, log, note, None, PassingRequests(passed), make_ports)
        self._proxy.log_broken = lambda line: None  # the deaths of brokers are events
        assert isinstance(self._proxy.listeners, ReservedPorts)
        self._ports = self._proxy.listeners

    @property
    def gate(self) -> ProxyGate:
        """The rules at work."""
        return self._proxy.gate

    def open(self, broker_id: int) -> None:
        """Accept clients of a broker that serves now."""
        self._ports.open(broker_id)

    def shut(self, broker_id: int) -> None:
        """Refuse new clients of a broker that has ended; its connections close with its own."""
        self._ports.shut(broker_id)

    def add_rule(self, rule: Rule) -> str:
        """Put a rule into force; returns its name.  ClusterError if that is impossible."""
        try:
            return self.gate.add(rule)
        except RuleError as error:
            raise ClusterError(str(error)) from None

    def close(self) -> None:
        """Close all ports and connections."""
        self._proxy.close()
