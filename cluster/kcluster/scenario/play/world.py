"""The stage in virtual time beside real client code.

Owns: the project's own clients on it.  Never: lets time pass
(the world of the clients' threads does).  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.clients.ledger import Ledger
from kcluster.clients.wire import ClientStateMachine
from kcluster.drivers.virtual_time import start_client
from kcluster.drivers.wires.virtual import ClientWire
from kcluster.handle.world_cluster import WorldCluster
from kcluster.scenario.play.running_stage import RunningStage
from kcluster.security.client_access import ClientAccess


class WorldStage(RunningStage):
    """A stage on an open WorldCluster."""

    def __init__(self, cluster: WorldCluster, seed: int, ledger: Ledger) -> None:
        super().__init__(cluster, cluster.driver, _WorldClients(cluster), seed, ledger)


class _WorldClients:
    """The project's own clients, which live in VirtualTime itself."""

    def __init__(self, cluster: WorldCluster) -> None:
        self._plan = cluster.plan
        self._time = cluster.driver.time
        self.clients = cluster.driver.time.clients
        self._wires: dict[int, ClientWire] = {}

    def add_client(
        self, client: ClientStateMachine, kafka_id: str = "", access: ClientAccess | None = None
    ) -> ClientWire:
        """Start a client."""
        wire = start_client(self._time, self._plan, client, kafka_id, access)
        self._wires[wire.client_id] = wire
        return wire

    def remove_client(self, client_id: int) -> None:
        """Close the connections of a client that is done."""
        self._wires.pop(client_id).disconnect_all()

    def leave(self) -> None:
        """Do nothing: VirtualTime gives every client a turn in its next pass."""
