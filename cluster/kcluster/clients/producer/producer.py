"""The project's own producer, which behaves as Kafka's Java producer does.

Owns: the parts of a producer, and the order of its turn.  Never: does what the parts do
(producer_workload.py, producer_sender.py, producer_identity.py, connections.py).
Kafka: KafkaProducer and the loop of Sender, 4.3.1.
"""

from __future__ import annotations

from typing import Any

from kcluster.clients.connections import NetworkClient
from kcluster.clients.ledger import Ledger
from kcluster.clients.metadata import Metadata
from kcluster.clients.producer.identity import Identity
from kcluster.clients.producer.sender import Sender
from kcluster.clients.producer.settings import ProducerSettings, Workload
from kcluster.clients.producer.workload import Application
from kcluster.clients.wire import Wire
from kcluster.timers import NEVER_MS


class Producer:
    """A producer with an application that gives it records (clients/wire.py's Client).

    `name` is the first half of each value, and the client's name in the ledger.
    """

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        workload: Workload,
        settings: ProducerSettings | None = None,
    ) -> None:
        self.name = name
        self.settings = settings = ProducerSettings() if settings is None else settings
        assert not settings.problems(), settings.problems()
        self.metadata = Metadata(settings.metadata)
        self.network = NetworkClient(name, settings.network, self.metadata, ledger)
        self.identity = Identity(settings, self.network) if settings.is_idempotent else None
        self.sender = Sender(settings, self.metadata, self.network, self.identity)
        self.application = Application(name, ledger, workload, self.sender)
        self.deadline_ms: int | None = None
        self.is_done = False
        """The application has ended, and every record has an outcome."""

    # ----------------------------------------------------------------------- as a Client

    def start(self, wire: Wire, now_ms: int) -> None:
        """The producer is made; its application begins."""
        self.network.start(wire, now_ms)
        self.application.start(now_ms)
        self._turn(now_ms)

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        """An answer has come."""
        self.network.on_reply(broker_id, correlation_id, body, now_ms)
        self._turn(now_ms)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """A connection is gone."""
        self.network.on_disconnected(broker_id, now_ms)
        self._turn(now_ms)

    def on_tick(self, now_ms: int) -> None:
        """`deadline_ms` has come."""
        self._turn(now_ms)

    # ------------------------------------------------------------------------ its owner's

    def stop(self, now_ms: int) -> None:
        """No more records; those given are seen through.  Kafka: close()."""
        self.application.stop(now_ms)
        self._turn(now_ms)

    def abort(self, now_ms: int) -> None:
        """The end, at once: what has no outcome is failed or unknown.  Kafka: close(0)."""
        self.application.stop(now_ms)
        self.sender.give_up_all("", now_ms)
        self._turn(now_ms)

    @property
    def acked(self) -> int:
        """Records that were acked."""
        return self.sender.acked

    @property
    def failed(self) -> int:
        """Records that failed for certain."""
        return self.sender.failed

    @property
    def unknown(self) -> int:
        """Records that may be there or not."""
        return self.sender.unknown

    @property
    def pending(self) -> int:
        """Records given and without an outcome so far."""
        sender = self.sender
        return self.application.made - sender.acked - sender.failed - sender.unknown

    # ---------------------------------------------------------------------------- a turn

    def _turn(self, now_ms: int) -> None:
        if self.is_done:
            return
        network, application, sender = self.network, self.application, self.sender
        if now_ms >= network.due_ms:
            network.poll(now_ms)
        if now_ms >= application.due_ms or application.is_blocked:
            application.work(now_ms)
        identity = self.identity
        if identity is not None and not identity.is_settled:
            identity.settle(now_ms)
            if identity.fatal:
                sender.give_up_all(identity.fatal, now_ms)
        if now_ms >= sender.expiry_ms:
            sender.expire(now_ms)
        if sender.waiting:
            sender.is_flushing = application.is_over or application.is_out_of_memory
            sender.send_all(now_ms)
        if application.is_over and not self.pending:
            self.is_done = True
            network.close()
            self.deadline_ms = None
            return
        due_ms = network.due_ms
        if application.due_ms < due_ms:
            due_ms = application.due_ms
        if sender.waiting and sender.batch_due_ms < due_ms:
            due_ms = sender.batch_due_ms
        if sender.expiry_ms < due_ms:
            due_ms = sender.expiry_ms
        self.deadline_ms = due_ms if due_ms < NEVER_MS else None
