"""The wires of the project's own clients in virtual time; tcp.py has the wires over TCP.

Owns: a client's wire, the broker's end of its connections, the ids of clients in the fabric. Never:
acts as a client (clients/), decides a message's fate on a link (network/transit.py), moves time
(virtual_time.py).  Kafka: NetworkClient and its Selector, without the bytes.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol, final

from kcluster.clients.wire import broker_of
from kcluster.contract import Request
from kcluster.network.threads import NetworkThread
from kcluster.network.transit import CarriedConnection
from kcluster.principals import UNAUTHENTICATED, ClientIdentity
from kcluster.protocol.messages import Message


class Carrier(Protocol):
    """The part of virtual_time.py that wires use."""

    def connect(
        self, client_id: int, broker_id: int, identity: ClientIdentity
    ) -> ClientConnection: ...
    def transmit(self, connection: ClientConnection, request: Request) -> None: ...
    def hang_up(self, connection: ClientConnection) -> None: ...


@final
class ClientConnection(CarriedConnection):
    """One connection of a simulated client; its requests are served one at a time."""

    __slots__ = (
        "client_id", "connection_id", "identity", "in_broker", "is_accepted", "is_refused", "name",
        "thread", "unanswered", "waiting",
    )  # fmt: skip

    def __init__(
        self, connection_id: int, client_id: int, broker_id: int, identity: ClientIdentity
    ) -> None:
        super().__init__((client_id,), broker_id)
        self.connection_id = connection_id
        self.identity = identity
        """The client, before it logs in."""
        self.client_id = client_id
        self.name = broker_id
        """The broker's id, plus SECOND_CONNECTION for the client's second connection to it."""
        self.is_accepted = False
        """Whether the broker's process accepted the connection when its first message arrived."""
        self.is_refused = False
        """Whether the client refused the broker's certificate."""
        self.thread: NetworkThread | None = None
        """The broker's network thread; None where handshakes cost nothing."""
        self.waiting: deque[Request] = deque()
        """Requests that have arrived and wait while the broker handles another one."""
        self.in_broker: Request | None = None
        self.unanswered = 0
        """Requests of the client without a reply so far."""

    @property
    def is_busy(self) -> bool:
        """Whether the client waits for a reply."""
        return self.is_open and self.unanswered > 0

    def next_request(self) -> Request | None:
        """The request that the broker takes now; None if it must not take one now."""
        if not self.broker_end_is_open or self.in_broker is not None or not self.waiting:
            return None
        self.in_broker = self.waiting.popleft()
        return self.in_broker


class ClientWire:
    """A client's access to the brokers: one connection to each, opened on first use.

    `client_id`: the client's id in the fabric; `broker_ids`: its bootstrap brokers; `rng`: its own
    random numbers; `kafka_id`: its client.id; without it, an id that marks a client with a ledger;
    `identity`: the client, before it logs in.
    """

    def __init__(
        self,
        carrier: Carrier,
        client_id: int,
        broker_ids: tuple[int, ...],
        rng: Random,
        kafka_id: str = "",
        identity: ClientIdentity = UNAUTHENTICATED,
    ) -> None:
        self.client_id = client_id
        self.broker_ids = broker_ids
        self.rng = rng
        self._carrier = carrier
        self._connections: dict[int, ClientConnection] = {}
        self._correlation_id = 0
        self._name = kafka_id or f"client-{client_id}"
        self._identity = identity

    def send(
        self,
        broker_id: int,
        api_key: int,
        api_version: int,
        body: Message,
        *,
        answered: bool = True,
    ) -> int:
        """Send a request; returns its correlation id.  `answered`: False for acks=0."""
        connection = self._connections.get(broker_id)
        if connection is None or not connection.is_open:
            connection = self._carrier.connect(self.client_id, broker_of(broker_id), self._identity)
            connection.name = broker_id
            self._connections[broker_id] = connection
        self._correlation_id += 1
        connection.unanswered += answered
        request = Request(
            connection.connection_id, api_key, api_version, self._correlation_id, self._name, body
        )
        self._carrier.transmit(connection, request)
        return self._correlation_id

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker; requests under way on it get no reply."""
        connection = self._connections.pop(broker_id, None)
        if connection is not None and connection.is_open:
            self._carrier.hang_up(connection)

    def disconnect_all(self) -> None:
        """Close all connections."""
        for broker_id in tuple(self._connections):
            self.disconnect(broker_id)
