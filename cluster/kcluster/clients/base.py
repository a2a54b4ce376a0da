"""The common part of producers and consumers: their network, and one turn per event.

Owns: ClientBase, the callbacks of a ClientStateMachine.  Never: decides what a turn does
(producer/producer.py and consumer/consumer.py do).
Kafka: the loops around NetworkClient.poll, of Sender and ClassicKafkaConsumer.
"""

from __future__ import annotations

from kcluster.clients.client_settings import ClientSettings
from kcluster.clients.connections import NetworkClient
from kcluster.clients.ledger import Ledger
from kcluster.clients.metadata import Metadata
from kcluster.clients.wire import Wire
from kcluster.protocol.messages import Message


class ClientBase:
    """A client (wire.py's ClientStateMachine).  `name`: its name in the ledger.  `is_done`: it is
    closed, and its callbacks have no effect."""

    def __init__(self, name: str, ledger: Ledger, settings: ClientSettings) -> None:
        self.name = name
        self.metadata = Metadata(settings.metadata)
        self.network = NetworkClient(name, settings.network, self.metadata, ledger)
        self.deadline_ms: int | None = None
        self.is_done = False

    def start(self, wire: Wire, now_ms: int) -> None:
        """Begin the application."""
        self.network.start(wire, now_ms)
        self._start_application(now_ms)
        self._turn(now_ms)

    def on_reply(self, broker_id: int, correlation_id: int, body: Message, now_ms: int) -> None:
        """Handle a response."""
        self.network.on_reply(broker_id, correlation_id, body, now_ms)
        self._turn(now_ms)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """Handle the end of a connection."""
        self.network.on_disconnected(broker_id, now_ms)
        self._turn(now_ms)

    def on_login_failed(self, broker_id: int, error: str, now_ms: int) -> None:
        """Handle the refusal of a login, which ended its connection."""
        self.network.on_login_failed(broker_id, error, now_ms)
        self._login_failed(error, now_ms)
        self._turn(now_ms)

    def on_tick(self, now_ms: int) -> None:
        """Take a turn, because `deadline_ms` has come."""
        self._turn(now_ms)

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The newest leader epoch that the client has seen; NO_EPOCH if it has seen none."""
        return self.metadata.leader_epoch(topic, partition)

    def _close(self) -> None:
        """End: send nothing more."""
        self.is_done = True
        self.network.close()
        self.deadline_ms = None

    def _start_application(self, now_ms: int) -> None:
        """Prepare the first turn."""
        raise AssertionError(f"{type(self).__name__} must define _start_application")

    def _login_failed(self, error: str, now_ms: int) -> None:
        """Throw the error of a refused login, if the application waits for something that it
        would end."""
        raise AssertionError(f"{type(self).__name__} must define _login_failed")

    def _turn(self, now_ms: int) -> None:
        """Do everything that can be done now, and set `deadline_ms`."""
        raise AssertionError(f"{type(self).__name__} must define _turn")
