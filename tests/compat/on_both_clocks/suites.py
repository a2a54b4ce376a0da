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
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.handle.world_cluster import WorldCluster
from kcluster.world.world import START_MS, World

from .stand_ins import Acls, Broker, Passwords, client_files, no_kerberos, port_of

SEED: Final = 1


class Suite(ABC):
    """One project's tests."""

    topology: Topology
    secured: Topology
    """With TLS, SASL and an authorizer."""
    secured_tests: tuple[str, ...]
    """The tests that need it: files, or parts of tests' names."""
    current: Any = None
    """The cluster of the test that runs."""

    @property
    def is_secured(self) -> bool:
        """Whether the current cluster is."""
        topology: Topology = self.current.topology
        return topology.security == self.secured.security

    def needs_security(self, test: str) -> bool:
        return any(name in test for name in self.secured_tests)

    @property
    def fixtures(self) -> Mapping[str, Callable[[], Any]]:
        """What stands in for fixtures of theirs, by name."""
        return {}

    @abstractmethod
    def prepare(self) -> None:
        """Called before their conftest is imported."""

    def point_at(self, cluster: Any) -> None:
        """Their next test uses this cluster."""
        self.current = cluster

    @contextmanager
    def cluster(self, clock: str, test: str) -> Iterator[Any]:
        """A cluster of one test; on the virtual clock, the caller is in a world until the end."""
        topology = self.secured if self.needs_security(test) else self.topology
        if clock == "live":
            with Cluster(topology, seed=SEED, record=False) as cluster:
                yield cluster
            return
        world_cluster = WorldCluster(topology, SEED, record=False, start_ms=START_MS)
        world_cluster.open()
        try:
            with World(world_cluster.driver, seed=SEED):
                yield world_cluster
        finally:
            world_cluster.close()


def _listeners(*names: str, **keys: str) -> dict[str, Any]:
    return {name: {"protocol": name, **keys} for name in names}


class KafkaPython(Suite):
    """Its fixtures take the address of a broker that runs already, or start one with TLS or SASL;
    the latter are replaced."""

    _config: Final = {
        "num.partitions": 4,
        "offsets.topic.num.partitions": 2,
        "replica.lag.time.max.ms": 1000,
        "group.min.session.timeout.ms": 1000,
        "group.initial.rebalance.delay.ms": 0,
    }
    topology = Topology.of(brokers=[{"id": 0}], profile="kafka", config=_config)
    secured = Topology.of(
        brokers=[{"id": 0}],
        profile="kafka",
        listeners=_listeners("PLAINTEXT", "SSL", "SASL_PLAINTEXT", advertised="localhost"),
        security={
            "tls": "auto",
            "users": {"alice": "alice-secret"},
            "super_users": ["alice", "ANONYMOUS"],
        },
        config=_config,
    )
    secured_tests = ("test_sasl_integration", "test_ssl_integration", "_delete_acls")

    @property
    def fixtures(self) -> Mapping[str, Callable[[], Any]]:
        """The brokers of tests of TLS and SASL."""
        if self.current is None or not self.is_secured:
            return {}
        return {
            "kafka_broker_factory": lambda: partial(Broker, self.current),
            "ssl_kafka": lambda: Broker(self.current, "SSL"),
        }

    def prepare(self) -> None:
        """Nothing in KAFKA_ROOT is started; it must exist."""
        os.environ.setdefault("KAFKA_VERSION", "4.3.0")
        os.environ["KAFKA_ROOT"] = str(Path.cwd())

    def point_at(self, cluster: Any) -> None:
        """Its fixtures read the environment."""
        super().point_at(cluster)
        os.environ["KAFKA_URI"] = f"kafka://{cluster.bootstrap}"


class Aiokafka(Suite):
    """Its fixtures start a container; here they are replaced by the address of a cluster."""

    _config: Final = {"num.partitions": 2, "group.initial.rebalance.delay.ms": 0}
    topology = Topology.of(brokers=[{"id": 0}], profile="kafka", config=_config)
    secured = Topology.of(
        brokers=[{"id": 0}],
        profile="kafka",
        listeners=_listeners("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        security={
            "tls": {"client_auth": "required"},
            "users": {name: name for name in ("admin", "test", "test2")},
            "super_users": ["admin", "ANONYMOUS"],
        },
        config={**_config, "allow.everyone.if.no.acl.found": True},
    )
    secured_tests = ("test_sasl.py", "test_ssl_consume", "test_producer_ssl")

    def prepare(self) -> None:
        """Its conftest imports Docker's library, which it uses for names and to start Kafka."""
        docker = ModuleType("docker")
        containers = SimpleNamespace(Container=object)
        vars(docker)["models"] = SimpleNamespace(containers=containers)
        sys.modules["docker"] = docker

    @property
    def fixtures(self) -> Mapping[str, Callable[[], Any]]:
        """Everything that their conftest makes from Docker."""
        return {
            "docker": lambda: "not here",
            "kafka_image": lambda: "kcluster",
            "ssl_folder": self._ssl_folder,
            "acl_manager": lambda: Acls(self.current),
            "kafka_config": lambda: Passwords(self.current),
            "kerberos_utils": no_kerberos,
            "kafka_server": self._server,
        }

    def _server(self) -> SimpleNamespace:
        bootstrap = self.current.bootstrap.split(",")[0]
        host, port = bootstrap.rsplit(":", 1)
        others = dict.fromkeys(("SSL", "SASL_PLAINTEXT", "SASL_SSL"), 0)
        if self.is_secured:
            others = {name: port_of(self.current, name) for name in others}
        return SimpleNamespace(
            host=host,
            port=int(port),
            ssl_port=others["SSL"],
            sasl_plain_port=others["SASL_PLAINTEXT"],
            sasl_ssl_port=others["SASL_SSL"],
            hosts=[bootstrap],
        )

    def _ssl_folder(self) -> Path:
        return client_files(self.current) if self.is_secured else Path("tests/ssl_cert")


SUITES: Final[Mapping[str, Suite]] = {"kafka-python": KafkaPython(), "aiokafka": Aiokafka()}
"""By the name of the project on PyPI."""
