"""The suites: what each of them wants of the world around it.

Owns: their clusters, how they learn an address, the fixtures that stand in for Docker.  Never:
imports a client library.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.handle.world_cluster import WorldCluster
from kcluster.world.world import START_MS, World

SEED: Final = 1


class Suite(ABC):
    """One project's tests."""

    topology: Topology

    @property
    def fixtures(self) -> Mapping[str, Callable[[], Any]]:
        """What stands in for fixtures of theirs, by name."""
        return {}

    @abstractmethod
    def prepare(self) -> None:
        """Called before their conftest is imported."""

    @abstractmethod
    def point_at(self, bootstrap: str) -> None:
        """Their next test uses this cluster."""

    @contextmanager
    def cluster(self, clock: str) -> Iterator[Any]:
        """A cluster of one test; on the virtual clock, the caller is in a world until the end."""
        if clock == "live":
            with Cluster(self.topology, seed=SEED, record=False) as cluster:
                yield cluster
            return
        world_cluster = WorldCluster(self.topology, SEED, record=False, start_ms=START_MS)
        world_cluster.open()
        try:
            with World(world_cluster.driver, seed=SEED):
                yield world_cluster
        finally:
            world_cluster.close()


class KafkaPython(Suite):
    """Its fixtures take the address of a broker that runs already."""

    topology = Topology.of(
        brokers=[{"id": 0}],
        profile="kafka",
        config={
            "num.partitions": 4,
            "offsets.topic.num.partitions": 2,
            "replica.lag.time.max.ms": 1000,
            "group.min.session.timeout.ms": 1000,
            "group.initial.rebalance.delay.ms": 0,
        },
    )

    def prepare(self) -> None:
        """Nothing in KAFKA_ROOT is started; it must exist."""
        os.environ.setdefault("KAFKA_VERSION", "4.3.0")
        os.environ["KAFKA_ROOT"] = str(Path.cwd())

    def point_at(self, bootstrap: str) -> None:
        """Its fixtures read the environment."""
        os.environ["KAFKA_URI"] = f"kafka://{bootstrap}"


class Aiokafka(Suite):
    """Its fixtures start a container; here they are replaced by the address of a cluster."""

    topology = Topology.of(
        brokers=[{"id": 0}],
        profile="kafka",
        config={"num.partitions": 2, "group.initial.rebalance.delay.ms": 0},
    )

    def __init__(self) -> None:
        self._address = ("", 0)

    def prepare(self) -> None:
        """Its conftest imports Docker's library, which it uses for names and to start Kafka."""
        docker = ModuleType("docker")
        containers = SimpleNamespace(Container=object)
        vars(docker)["models"] = SimpleNamespace(containers=containers)
        sys.modules["docker"] = docker

    def point_at(self, bootstrap: str) -> None:
        """Remember it for `kafka_server`."""
        host, port = bootstrap.split(",")[0].rsplit(":", 1)
        self._address = (host, int(port))

    @property
    def fixtures(self) -> Mapping[str, Callable[[], Any]]:
        """Everything that their conftest makes from Docker."""
        return {
            "docker": lambda: "not here",
            "kafka_image": lambda: "kcluster",
            "ssl_folder": lambda: Path("tests/ssl_cert"),
            "acl_manager": lambda: "not here",
            "kafka_config": lambda: "not here",
            "kerberos_utils": lambda: "not here",
            "kafka_server": self._server,
        }

    def _server(self) -> SimpleNamespace:
        host, port = self._address
        return SimpleNamespace(
            host=host,
            port=port,
            ssl_port=0,
            sasl_plain_port=0,
            sasl_ssl_port=0,
            hosts=[f"{host}:{port}"],
        )


SUITES: Final[Mapping[str, Suite]] = {"kafka-python": KafkaPython(), "aiokafka": Aiokafka()}
"""By the name of the project on PyPI."""
