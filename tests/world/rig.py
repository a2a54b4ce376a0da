"""A cluster and the world around it, for tests whose clients are real libraries.

Owns: making both.  Never: a client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kcluster.config.topology.model import Topology
from kcluster.drivers.memory.stream import StreamEnd
from kcluster.handle.cluster import Cluster
from kcluster.handle.world_cluster import WorldCluster
from kcluster.timers import NEVER_US
from kcluster.world.replaced.clocks import EPOCH_S
from kcluster.world.world import START_MS, World


class Emptiness:
    """A clock of no cluster: nothing is ever due."""

    def __init__(self) -> None:
        self.now_us = EPOCH_S * 1_000_000
        self.hosts: dict[str, str] = {}
        self.is_inhabited = False

    def advance(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        """Nothing happens."""
        if not condition() and limit_us < NEVER_US:
            self.now_us = max(self.now_us, limit_us)
        return condition()

    def connect(self, host: str, port: int, local: tuple[str, int]) -> StreamEnd:
        """Refused."""
        raise AssertionError("there are no brokers")


def empty_world(**keys: Any) -> World:
    """A world without a cluster."""
    return World(Emptiness(), **keys)


ORDERS: Mapping[str, Any] = {"orders": {"partitions": 3, "replication_factor": 3}}


@contextmanager
def in_virtual_time(
    topics: Mapping[str, Any] = ORDERS, *, seed: int = 1, profile: str = "kafka", **more: Any
) -> Iterator[WorldCluster]:
    """Three brokers; the block is inside their world, and made its clients in it."""
    topology = Topology.of(brokers=3, topics=topics, profile=profile, **more)
    cluster = WorldCluster(topology, seed, start_ms=START_MS)
    cluster.open()
    try:
        with World(cluster.driver, seed=seed):
            yield cluster
    finally:
        cluster.close()


@contextmanager
def live(
    topics: Mapping[str, Any] = ORDERS, *, seed: int = 1, profile: str = "fast", **more: Any
) -> Iterator[Cluster]:
    """The same cluster over TCP."""
    topology = Topology.of(brokers=3, topics=topics, profile=profile, **more)
    with Cluster(topology, seed=seed) as cluster:
        yield cluster
