"""What a client must be, and what it is given to talk with; the same on both clocks.

Owns: the protocols `Client` and `Wire`.  Never: how bytes travel (drivers/virtual.py carries
messages as they are, drivers/wires/tcp.py encodes them for TCP).
Kafka: KafkaClient and its callbacks, of clients/.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from kcluster.contract import Rng

SECOND_CONNECTION: Final = 1 << 30
"""Added to a broker's id: another connection to the same broker.  A consumer talks to its group's
coordinator over one of its own, so that heartbeats and commits do not wait behind a fetch.
Kafka: AbstractCoordinator counts the coordinator's node id down from MAX_VALUE for this."""


def broker_of(connection: int) -> int:
    """The id of the broker at the other end."""
    return connection & (SECOND_CONNECTION - 1)


class Wire(Protocol):
    """A client's way to the brokers: one connection to each, made when it is first used.

    Where a broker is named, its id plus SECOND_CONNECTION is allowed, and is what the client is
    called back with.
    """

    @property
    def client_id(self) -> int:
        """The client's id in the fabric: links to it are named by it."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Whom it may ask first: its bootstrap.servers."""

    @property
    def rng(self) -> Rng:
        """Its own, seeded."""

    def send(
        self, broker_id: int, api_key: int, api_version: int, body: Any, *, answered: bool = True
    ) -> int:
        """Send a request; returns its correlation id.  `answered`: False for acks=0."""

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker; what was asked over it gets no answer."""


class Client(Protocol):
    """A client as a state machine, driven as nodes are; never waits."""

    @property
    def deadline_ms(self) -> int | None:
        """When it wants `on_tick`; None for never."""

    def start(self, wire: Wire, now_ms: int) -> None:
        """Its life begins."""

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        """The answer to a request; none comes for Produce with acks=0."""

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """The connection to a broker is gone or was refused, and what was asked over it."""

    def on_tick(self, now_ms: int) -> None:
        """`deadline_ms` has come."""
