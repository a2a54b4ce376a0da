"""The common part of the handles Cluster and WorldCluster.

Owns: ClusterVerbs: its parts, the names by which users know a cluster.  Never: defines a verb
(verbs.py), knows which clock runs.  Kafka: no counterpart.
"""

from __future__ import annotations

from functools import cached_property

from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.handle.clock import ClusterClock
from kcluster.handle.driver import HandleDriver
from kcluster.handle.port import forwarded
from kcluster.handle.recording import RecordVerbs
from kcluster.handle.verbs import UserVerbs
from kcluster.handle.waiting import WaitingVerbs
from kcluster.runtime.build import Plan


def _clock(cluster: ClusterVerbs) -> ClusterClock:
    return cluster.clock


class ClusterVerbs(UserVerbs, WaitingVerbs, RecordVerbs):
    """The common part of Cluster and WorldCluster.

    `topology`; `seed`: that of all randomness in the cluster; `name`: that of its run directories;
    `ledger`: the sends and reads of the project's own clients.
    """

    def __init__(self, topology: Topology, seed: int, plan: Plan, driver: HandleDriver) -> None:
        super().__init__(plan, driver, seed)
        self.topology = topology
        self.name = topology.name
        self.ledger = Ledger()

    @cached_property
    def clock(self) -> ClusterClock:
        """The clock of the cluster; `cluster.clock()` returns its state."""
        return ClusterClock(self)

    @property
    def is_clock_steered(self) -> bool:
        """Whether this cluster's clock can be paused, stepped and slowed down."""
        return self.clock.is_steered

    pause_clock = forwarded(_clock, ClusterClock.pause)
    resume_clock = forwarded(_clock, ClusterClock.resume)
    set_speed = forwarded(_clock, ClusterClock.set_speed)
    step = forwarded(_clock, ClusterClock.step)

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, for a client's bootstrap.servers."""
        return ",".join(f"{host}:{port}" for host, port in self.plan.addresses.values())

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of all brokers, up or not."""
        return tuple(self.plan.addresses)
