"""The common part of the handles Cluster and WorldCluster.

Owns: ClusterVerbs: its parts, the names by which users know a cluster.  Never: defines a verb
(verbs.py), knows which clock runs.  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.handle.clock import ClockVerbs
from kcluster.handle.driver import HandleDriver
from kcluster.handle.recording import RecordVerbs
from kcluster.handle.verbs import UserVerbs
from kcluster.handle.waiting import WaitingVerbs
from kcluster.runtime.build import Plan


class ClusterVerbs(UserVerbs, WaitingVerbs, ClockVerbs, RecordVerbs):
    """The common part of Cluster and WorldCluster.

    `topology`; `seed`: that of all randomness in the cluster; `name`: that of its run directories;
    `ledger`: the sends and reads of the project's own clients.
    """

    def __init__(self, topology: Topology, seed: int, plan: Plan, driver: HandleDriver) -> None:
        super().__init__(plan, driver, seed)
        self.topology = topology
        self.name = topology.name
        self.ledger = Ledger()

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, for a client's bootstrap.servers."""
        return ",".join(f"{host}:{port}" for host, port in self.plan.addresses.values())

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of all brokers, up or not."""
        return tuple(self.plan.addresses)
