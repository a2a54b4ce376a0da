"""The wires of simulated clients in virtual time.

Owns: the wire of a client, its connections.  Never: what a client does (clients/), time
(virtual_time.py).  Kafka: NetworkClient, without the bytes.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any, Protocol

from kcluster.clients.wire import ClientStateMachine, broker_of
from kcluster.contract import Reply, Request


class Carrier(Protocol):
    """The part of virtual_time.py that wires use."""

    def connect(self, client_id: int, broker_id: int) -> ClientConnection: ...
    def transmit(self, connection: ClientConnection, request: Request) -> None: ...
    def hang_up(self, connection: ClientConnection) -> None: ...


class ClientConnection:
    """One connection of a simulated client; its requests are served one after the other."""

    __slots__ = (
        "at_broker_us", "at_client_us", "broker_id", "client_id", "connection_id", "hung_up",
        "in_broker", "is_broken", "is_open", "life", "name", "unanswered", "waiting",
    )  # fmt: skip

    def __init__(self, connection_id: int, client_id: int, broker_id: int, life: int) -> None:
        self.connection_id = connection_id
        self.client_id = client_id
        self.broker_id = broker_id
        self.name = broker_id
        """What the client calls it: not the broker's id if it is the second to that broker."""
        self.life = life
        """Of the broker's process, when the connection was made."""
        self.is_open = True
        self.is_broken = False
        """Something was lost in a cut: when the link is whole again, both ends will hear."""
        self.at_broker_us = self.at_client_us = 0
        """When the last message arrives there: nothing arrives before what was sent before it."""
        self.hung_up = False
        """By the client, which wants to hear no more of it."""
        self.waiting: deque[Request] = deque()
        """Arrived, behind the one that is in the broker."""
        self.in_broker: Request | None = None
        self.unanswered = 0
        """Requests of the client whose answer it has not seen."""

    @property
    def is_busy(self) -> bool:
        """Whether the client waits for something here."""
        return self.is_open and not self.hung_up and self.unanswered > 0

    def next_request(self) -> Request | None:
        """The request that the broker takes now, if it may take one."""
        if not self.is_open or self.in_broker is not None or not self.waiting:
            return None
        self.in_broker = self.waiting.popleft()
        return self.in_broker

    def tell_reply(self, client: ClientStateMachine, reply: Reply, now_ms: int) -> None:
        """An answer has come to the client's end."""
        if self.hung_up:
            return
        self.unanswered -= 1
        client.on_reply(self.name, reply.request.correlation_id, reply.body, now_ms)

    def tell_disconnected(self, client: ClientStateMachine, now_ms: int) -> None:
        """The end of the connection has come to the client's end."""
        if not self.hung_up:
            client.on_disconnected(self.name, now_ms)


class ClientWire:
    """A client's way to the brokers: one connection to each, made when first used.

    `client_id`: the client's id in the fabric; `broker_ids`: whom it may ask; `rng`: its own.
    """

    def __init__(self, carrier: Carrier, client_id: int, broker_ids: tuple[int, ...], rng: Random):
        self.client_id = client_id
        self.broker_ids = broker_ids
        self.rng = rng
        self._carrier = carrier
        self._connections: dict[int, ClientConnection] = {}
        self._correlation_id = 0
        self._name = f"client-{client_id}"

    def send(
        self, broker_id: int, api_key: int, api_version: int, body: Any, *, answered: bool = True
    ) -> int:
        """Send a request; returns its correlation id.  `answered`: False for acks=0."""
        connection = self._connections.get(broker_id)
        if connection is None or not connection.is_open:
            connection = self._carrier.connect(self.client_id, broker_of(broker_id))
            connection.name = broker_id
            self._connections[broker_id] = connection
        self._correlation_id += 1
        connection.unanswered += answered
        request = Request(
            connection.connection_id, api_key, api_version, self._correlation_id,
            self._name, body,
        )  # fmt: skip
        self._carrier.transmit(connection, request)
        return self._correlation_id

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker; what was asked over it gets no answer."""
        connection = self._connections.pop(broker_id, None)
        if connection is not None and connection.is_open:
            self._carrier.hang_up(connection)
