"""The stage on a cluster that is already running: the part that is independent of the clock.

Owns: clients that stand in for outside clients.  Never: lets time pass, waits.  Kafka: no
counterpart.
"""

from __future__ import annotations

from typing import Final, Protocol

from kcluster.clients.ledger import Ledger
from kcluster.clients.wire import ClientStateMachine, Wire
from kcluster.drivers.serving import SocketDriver
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.handle.stage import DriverClock
from kcluster.scenario.play.stage import ScenarioStage
from kcluster.security.client_access import ClientAccess

DONE_LOOK_MS: Final = 100
"""The interval at which a stopped client is checked for being done."""


class StoppableClient(ClientStateMachine, Protocol):
    """A client that can be stopped.  `is_done`: whether it has nothing left to send or to
    commit."""

    @property
    def is_done(self) -> bool: ...

    def stop(self, now_ms: int) -> None:
        """End the client's application."""


class StageClients(Protocol):
    """The project's own clients in a running cluster.  `clients`: by their ids in the fabric."""

    clients: dict[int, ClientStateMachine]

    def add_client(
        self, client: ClientStateMachine, kafka_id: str = "", access: ClientAccess | None = None
    ) -> Wire:
        """Start a client.  `kafka_id`: its client.id; without it, a client.id that shows that the
        client keeps a ledger.  `access`: how it comes in."""

    def remove_client(self, client_id: int) -> None:
        """Close the connections of a client that is done; the client is not notified."""

    def leave(self) -> None:
        """Do the work that is due after a call of a client."""


class RunningStage(ScenarioStage):
    """A stage on an open cluster; created and used in the driver's thread."""

    def __init__(
        self,
        cluster: ClusterVerbs,
        driver: SocketDriver,
        clients: StageClients,
        seed: int,
        ledger: Ledger,
    ) -> None:
        clock = DriverClock(cluster.driver, self.refuse)
        super().__init__(cluster.plan, driver.dispatcher, cluster.verbs, clock, ledger, seed)
        self.driver: SocketDriver = driver
        self._clients = clients

    def _add(self, client: ClientStateMachine, access: ClientAccess | None) -> Wire:
        return self._clients.add_client(client, access=access)

    def _at_driver(self) -> dict[int, ClientStateMachine]:
        return self._clients.clients

    def _called(self) -> None:
        self._clients.leave()

    def add_outside_client(
        self, name: str, client: ClientStateMachine, access: ClientAccess | None = None
    ) -> None:
        """Start a client whose client.id is its name.  The client counts as an outside client: it
        keeps no ledger for the verdict.  Targets may name it."""
        wire = self._clients.add_client(client, kafka_id=name, access=access)
        self.clients[name] = wire.client_id

    def stop_outside_client(self, name: str, client: StoppableClient) -> None:
        """Stop the client and, when it is done, close its connections."""
        client.stop(self.driver.now_ms())
        client_id = self.clients[name]

        def close_if_done() -> None:
            if client.is_done:
                self._clients.remove_client(client_id)
            else:
                self.at(self.now_ms + DONE_LOOK_MS, close_if_done)

        self._clients.leave()
        self.at(self.now_ms + DONE_LOOK_MS, close_if_done)
