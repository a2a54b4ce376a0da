"""WorldCluster: the handle of a cluster in virtual time whose clients are real client code.

Owns: the life of a cluster on the in-memory driver.  Never: lets time pass (whoever runs the
clients' threads does, with `driver.advance`), knows what a verb does (verbs.py).
Kafka: kafka-server-start.sh.

A verb that waits blocks on a Future, so its thread must be one that others let time pass for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.config.topology.model import Topology
from kcluster.drivers.memory.addresses import in_memory
from kcluster.drivers.memory.driver import InMemoryDriver
from kcluster.drivers.virtual_time import virtual_ports
from kcluster.evidence.recorder import Recorder
from kcluster.handle.verbs import ClusterVerbs
from kcluster.operations.errors import ClusterError
from kcluster.runtime.build import build

START_LIMIT_US: Final = 60_000_000


class WorldCluster(ClusterVerbs):
    """The verbs of Cluster in virtual time, which begins at `start_ms`.  Brokers are at
    `brokers.kcluster`, unless the topology names a host.

    `driver`: has `connect`, for clients, and `advance`.  `log`: called with one line for what an
    operator should know.  `record`: whether every step is recorded, for `verdict` and `save`.
    """

    driver: InMemoryDriver
    clock_name = "virtual"

    def __init__(
        self,
        topology: Topology,
        seed: int,
        *,
        log: Callable[[str], None] | None = None,
        record: bool = True,
        start_ms: int = 0,
    ) -> None:
        topology = in_memory(topology)
        plan = build(topology, seed, virtual_ports(topology))
        super().__init__(topology, seed, plan, InMemoryDriver(plan, log, start_ms=start_ms))
        if record:
            self._recorder = Recorder(self.driver.dispatcher, plan)

    def open(self) -> None:
        """Start the cluster, and let time pass until all brokers serve clients.  Before any thread
        of a client runs."""
        self.driver.open()
        now_us = self.driver.now_us
        if not self.driver.advance(now_us + START_LIMIT_US, self._settled.all_serving):
            raise ClusterError(f"not all brokers started within {START_LIMIT_US // 1_000_000} s")

    def close(self) -> None:
        """End it: whoever waits for something gets a ClusterError."""
        self.driver.stop()
