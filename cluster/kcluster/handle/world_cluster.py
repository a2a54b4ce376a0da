"""WorldCluster: the handle of a cluster in virtual time whose clients are real client code.

Owns: the life of a cluster on the in-memory driver, the passing of time while a verb waits.  Never:
runs clients (world/ does), defines a verb (verbs.py).  Kafka: kafka-server-start.sh.

A verb that waits lets time pass itself.  Once threads of client code live in the cluster's time, it
blocks on a Future instead, as on a live cluster: its thread waits, and other threads go on.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from kcluster.config.topology.model import Topology
from kcluster.drivers.memory.addresses import in_memory
from kcluster.drivers.memory.driver import InMemoryDriver
from kcluster.drivers.tls.optional import require_stores
from kcluster.drivers.virtual_time import virtual_ports
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.operations.errors import NotInTime
from kcluster.runtime.build import build
from kcluster.timers import NEVER_US

T = TypeVar("T")

START_TIMEOUT_S: Final = 30.0


class WorldCluster(ClusterVerbs):
    """The verbs of Cluster in virtual time, which begins at `start_ms`.  Brokers are at
    `brokers.kcluster`, unless the topology names a host.

    `driver`: has `connect`, for clients, and `advance`.  `log`: called with lines for an operator.
    `record`: whether every step is recorded, for `verdict` and `save`.
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
        require_stores(topology)
        topology = in_memory(topology)
        plan = build(topology, seed, virtual_ports(topology))
        super().__init__(topology, seed, plan, InMemoryDriver(plan, log, start_ms=start_ms))
        if record:
            self.record.record_with(Recorder(self.dispatcher, self.plan))

    def open(self) -> None:
        """Start the cluster; returns when all brokers serve clients."""
        if self.driver.tls is not None and self.topology.security.makes_certificates:
            # Before a world: the first temporary directory of a process draws random numbers.
            _ = self.driver.tls.folder
        self.driver.open()
        self.wait_until(self.verbs.settled.has_started, START_TIMEOUT_S, "not all brokers started")

    def close(self) -> None:
        """Stop the cluster.  Verbs that wait raise a ClusterError."""
        self.driver.stop()
        if self.driver.tls is not None:
            self.driver.tls.close()

    def result(self, future: Future[T], timeout_s: float | None, failure: str) -> T:
        driver = self.driver
        if not driver.is_inhabited and not future.done():
            limit_us = NEVER_US if timeout_s is None else round(timeout_s * 1_000_000)
            if not driver.advance(driver.now_us + limit_us, future.done):
                raise NotInTime(f"{failure} within {timeout_s:g} s")
        return super().result(future, timeout_s, failure)
