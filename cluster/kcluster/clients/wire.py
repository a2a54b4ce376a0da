"""The interface between a client and its driver, on both clocks.

Owns: the protocols `ClientStateMachine` (called by the driver) and `Wire` (called by the client).
Never: moves bytes (drivers/wires/virtual.py carries messages as objects, drivers/wires/tcp.py
encodes them for TCP).
Kafka: Selectable, and the callbacks of KafkaClient.
"""

from __future__ import annotations

from typing import Final, Protocol

from kcluster.contract import Rng
from kcluster.protocol.messages import Message

SECOND_CONNECTION: Final = 1 << 30
"""The number that is added to a broker's id to name a second connection to that broker.  A consumer
has a separate connection to its group coordinator, so that heartbeats and commits do not wait
behind a fetch.  Kafka: for this, AbstractCoordinator subtracts the coordinator's node id from
Integer.MAX_VALUE."""
PRODUCER_CONNECTION: Final = 1 << 29
"""The number that a processor's producer adds to a broker's id: a processor is one client with the
connections of two (clients/processor.py)."""


def broker_of(connection: int) -> int:
    """The id of the broker at the other end of a connection."""
    return connection & (PRODUCER_CONNECTION - 1)


class Wire(Protocol):
    """A client's connections to the brokers: one to each, opened on first use.

    Every `broker_id` may have SECOND_CONNECTION or PRODUCER_CONNECTION added; the client's
    callbacks then get that number.
    """

    @property
    def client_id(self) -> int:
        """The client's id in the fabric, which names its links."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The client's bootstrap.servers."""

    @property
    def rng(self) -> Rng:
        """The client's own seeded random numbers."""

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

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker; its requests in flight get no response."""


class ClientStateMachine(Protocol):
    """A client, driven by events, as nodes are; it never blocks."""

    @property
    def deadline_ms(self) -> int | None:
        """The time at which `on_tick` must be called; None for never."""

    def start(self, wire: Wire, now_ms: int) -> None:
        """Begin; called once, before any other callback."""

    def on_reply(self, broker_id: int, correlation_id: int, body: Message, now_ms: int) -> None:
        """Take a response.  A Produce request with acks=0 has none."""

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """Take the end, or the refusal, of a connection; its requests in flight get no response."""

    def on_tick(self, now_ms: int) -> None:
        """Take a turn, because `deadline_ms` has come."""
