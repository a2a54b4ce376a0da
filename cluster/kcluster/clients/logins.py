"""A client's logins: what its connections to SASL listeners send before its first request.

Owns: the login of each connection, the requests that wait for its end, the numbers of requests.
Never: knows what a client's requests mean, opens a connection (drivers/wires/ does), decides when
to try again (connections.py does).
Kafka: KafkaChannel and Selector beneath NetworkClient; KIP-368.

It stands between a driver and a client: to the client it is a Wire, to the driver a client.
Without SASL it is left out.  A connection that a broker closes during a login without an answer
looks like any lost connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final, runtime_checkable

from msgspec import Struct

from kcluster.clients.wire import ClientStateMachine, Wire
from kcluster.contract import Rng
from kcluster.protocol.messages import Message
from kcluster.security.client_access import ClientAccess
from kcluster.security.sasl.client_authenticator import (
    ClientAuthenticator,
    ClientSaslState,
    SaslQuestion,
)

SSL_HANDSHAKE_FAILED: Final = "SSL_HANDSHAKE_FAILED"
"""The ledger's name for SslAuthenticationException, which has no code in the protocol."""


@runtime_checkable
class RefusableClient(Protocol):
    """A client that reports a refused login.  To other clients, it is a lost connection."""

    def on_login_failed(self, broker_id: int, error: str, now_ms: int) -> None:
        """Take the refusal of a login, by Kafka's name of the error.  The connection is closed;
        its requests in flight get no response."""


class _WaitingRequest(Struct, frozen=True):
    """A request that waits for the end of a login.  `number`: its id for the client."""

    number: int
    api_key: int
    api_version: int
    body: Message
    answered: bool


@final
class _Connection:
    """The login of one connection to a broker."""

    __slots__ = ("asked", "authenticator", "numbers", "waiting")

    def __init__(self, authenticator: ClientAuthenticator) -> None:
        self.authenticator = authenticator
        self.asked: int | None = None
        """The id of the login's request in flight; None between logins."""
        self.waiting: list[_WaitingRequest] = []
        self.numbers: dict[int, int] = {}
        """The client's ids of its requests in flight, by the wire's."""


@final
class LoginClient:
    """A client that logs in.  `now_ms`: the cluster's time."""

    def __init__(
        self, client: ClientStateMachine, access: ClientAccess, now_ms: Callable[[], int]
    ) -> None:
        self.client = client
        self.name = getattr(client, "name", "")
        self._access = access
        self._now_ms = now_ms
        self._connections: dict[int, _Connection] = {}
        self._number = 0

    # ----------------------------------------------------------------- a client, for the driver

    @property
    def deadline_ms(self) -> int | None:
        return self.client.deadline_ms

    def start(self, wire: Wire, now_ms: int) -> None:
        """Start the client."""
        self._wire = wire
        self.client.start(self, now_ms)

    def on_reply(self, broker_id: int, correlation_id: int, body: Message, now_ms: int) -> None:
        """Continue a login, or hand on a response."""
        connection = self._connections.get(broker_id)
        if connection is None:
            return
        if correlation_id == connection.asked:
            self._continue(broker_id, connection, body, now_ms)
            return
        number = connection.numbers.pop(correlation_id)
        self.client.on_reply(broker_id, number, body, now_ms)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """Hand on the end of a connection."""
        self._connections.pop(broker_id, None)
        self.client.on_disconnected(broker_id, now_ms)

    def on_login_failed(self, broker_id: int, error: str, now_ms: int) -> None:
        """Hand on the refusal of a connection's handshake."""
        self._connections.pop(broker_id, None)
        refuse(self.client, broker_id, error, now_ms)

    def on_tick(self, now_ms: int) -> None:
        """Give the client a turn."""
        self.client.on_tick(now_ms)

    # ----------------------------------------------------------------- a wire, for the client

    @property
    def client_id(self) -> int:
        return self._wire.client_id

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return self._wire.broker_ids

    @property
    def rng(self) -> Rng:
        return self._wire.rng

    def send(
        self,
        broker_id: int,
        api_key: int,
        api_version: int,
        body: Message,
        *,
        answered: bool = True,
    ) -> int:
        """Send a request, after a login if one is due; returns its correlation id."""
        connection = self._connections.get(broker_id)
        if connection is None:
            authenticator = ClientAuthenticator(self._access, self.rng)
            connection = self._connections[broker_id] = _Connection(authenticator)
            self._ask(broker_id, connection, authenticator.begin())
        elif connection.authenticator.must_begin(self._now_ms()):
            self._ask(broker_id, connection, connection.authenticator.begin())
        self._number += 1
        request = _WaitingRequest(self._number, api_key, api_version, body, answered)
        if connection.asked is None:
            self._send(broker_id, connection, request)
        else:
            connection.waiting.append(request)
        return request.number

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker."""
        if self._connections.pop(broker_id, None) is not None:
            self._wire.disconnect(broker_id)

    # ---------------------------------------------------------------------------------- a login

    def _ask(self, broker_id: int, connection: _Connection, question: SaslQuestion) -> None:
        connection.asked = self._wire.send(
            broker_id, question.api_key, question.version, question.body
        )

    def _send(self, broker_id: int, connection: _Connection, request: _WaitingRequest) -> None:
        number = self._wire.send(
            broker_id, request.api_key, request.api_version, request.body, answered=request.answered
        )
        if request.answered:
            connection.numbers[number] = request.number

    def _continue(
        self, broker_id: int, connection: _Connection, answer: Message, now_ms: int
    ) -> None:
        authenticator = connection.authenticator
        question = authenticator.take(answer, now_ms)
        if question is not None:
            self._ask(broker_id, connection, question)
            return
        connection.asked = None
        if authenticator.state is ClientSaslState.FAILED:
            self.disconnect(broker_id)
            refuse(self.client, broker_id, authenticator.error.name, now_ms)
            return
        waiting, connection.waiting = connection.waiting, []
        for request in waiting:
            self._send(broker_id, connection, request)


def refuse(client: ClientStateMachine, broker_id: int, error: str, now_ms: int) -> None:
    """Tell a client that its login, or the handshake of its connection, was refused."""
    if isinstance(client, RefusableClient):
        client.on_login_failed(broker_id, error, now_ms)
    else:
        client.on_disconnected(broker_id, now_ms)


def put_in(
    clients: dict[int, ClientStateMachine], client_id: int, client: ClientStateMachine, wire: Wire
) -> Wire:
    """Let a client have the callbacks of another one at a driver; returns its wire.  `wire`: the
    driver's."""
    registered = clients[client_id]
    if isinstance(registered, LoginClient):
        registered.client = client
        return registered
    clients[client_id] = client
    return wire


def with_logins(
    client: ClientStateMachine, access: ClientAccess, now_ms: Callable[[], int]
) -> ClientStateMachine:
    """The client as a driver runs it: with logins if its listener has SASL."""
    return LoginClient(client, access, now_ms) if access.protocol.has_sasl else client
