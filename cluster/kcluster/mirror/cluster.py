"""KafkaCluster: the handle of a real Apache Kafka, with the verbs of a simulated cluster.

Owns: its start from a topology and an installation, its record.  Never: defines a verb
(handle/verbs.py), starts a process itself (apache_kafka/processes.py does).
Kafka: kafka-server-start.sh for each node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from kcluster.apache_kafka.installation import Installation, find_installation, version_for
from kcluster.apache_kafka.processes import KafkaProcesses
from kcluster.apache_kafka.properties import real_config
from kcluster.config.kafka.broker import BrokerConfig
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster, reserve_ports
from kcluster.handle.recording import ClusterRecord
from kcluster.mirror.driver import KafkaDriver
from kcluster.mirror.passing import why_no_proxy
from kcluster.mirror.quorum import ACTIVE
from kcluster.mirror.recorder import MirrorRecorder
from kcluster.mirror.verbs import KafkaVerbs
from kcluster.node_ids import CONTROLLER_ID
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import ClusterStatus
from kcluster.operations.verbs import Verbs
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kcluster.runtime.build import Plan, build

CLOCK: Final = "kafka"
"""The name of the clock of a real Kafka, beside `live` and `virtual`."""
_COUNTS: Final = {
    GROUP_METADATA_TOPIC: "offsets.topic.num.partitions",
    TRANSACTION_STATE_TOPIC: "transaction.state.log.num.partitions",
    SHARE_GROUP_STATE_TOPIC: "share.coordinator.state.topic.num.partitions",
}
"""The config that says how many partitions an internal topic has."""
START_TIMEOUT_S: Final = 180.0
EXTRA_WAIT_S: Final = 60.0
"""The time for which verbs wait beyond Kafka's timeouts: a JVM may take long to start."""


class KafkaCluster(Cluster):
    """A real Kafka: `with KafkaCluster(Topology.load("topology.yaml")) as cluster: …`.

    `installation`: the Kafka to start; by default, the version that the topology names, else the
    newest known one.  `with_network`: whether each node gets a network namespace of its own; None:
    where that is possible; with True it is a ClusterError if it is not.  `with_proxy`: whether
    clients reach the brokers through a proxy, which sees their requests and has rules; None: where
    that is possible; with True as before.  The others: as of Cluster.
    """

    driver: KafkaDriver
    clock_name = CLOCK
    start_timeout_s = START_TIMEOUT_S
    extra_wait_s = EXTRA_WAIT_S

    def __init__(
        self,
        topology: Topology,
        *,
        installation: Installation | None = None,
        with_network: bool | None = None,
        with_proxy: bool | None = None,
        seed: int | None = None,
        log: Callable[[str], None] | None = None,
        record: bool = True,
    ) -> None:
        self.installation = installation or find_installation(
            version_for(topology), log=log or (lambda line: None)
        )
        self._with_network = with_network
        why_not = why_no_proxy(topology)
        if with_proxy and why_not is not None:
            raise ClusterError(f"no proxy can be before the brokers: {why_not}")
        self.no_proxy = why_not or ("" if with_proxy is not False else "the cluster has none")
        """Why there is no proxy before the brokers; empty if there is one."""
        super().__init__(topology, seed=seed, log=log, record=record)

    def _built(
        self, topology: Topology, seed: int, log: Callable[[str], None] | None
    ) -> tuple[Plan, KafkaDriver]:
        if not self.no_proxy:
            return self._built_behind_proxy(topology, seed, log)
        processes = KafkaProcesses(
            self.installation, with_counts(topology), with_network=self._with_network
        )
        found = {
            broker: tuple(
                BrokerEndpoint(host, port, each.name, each.protocol)
                for each in processes.addresses[broker].listeners
                for host, port in [each.advertised or (each.host, each.port)]
            )
            for broker in processes.broker_ids
        }
        ports = {broker: processes.addresses[broker].ports for broker in processes.broker_ids}
        plan = build(topology, seed, ports)
        plan.cluster_id = processes.cluster_id
        plan.endpoints.update(found)
        return plan, KafkaDriver(plan, processes, log)

    def _built_behind_proxy(
        self, topology: Topology, seed: int, log: Callable[[str], None] | None
    ) -> tuple[Plan, KafkaDriver]:
        """The plan and the driver of a cluster whose clients connect to a proxy, at the addresses
        that the topology gives the brokers."""
        self._ports = reserve_ports(topology)
        ports = {broker: port for broker, (port,) in self._ports.items()}
        plan = build(topology, seed, {broker: (port.port,) for broker, port in ports.items()})
        try:
            processes = KafkaProcesses(
                self.installation,
                with_counts(topology),
                with_network=self._with_network,
                is_behind_proxy=True,
            )
        except ClusterError:
            self._release_ports()
            raise
        plan.cluster_id = processes.cluster_id
        return plan, KafkaDriver(plan, processes, log, ports)

    @property
    def real_version(self) -> str:
        """The version of Kafka that runs."""
        return self.installation.version

    def _make_verbs(self) -> Verbs:
        return KafkaVerbs(self.plan, self.driver, self.no_proxy)

    def status(self) -> ClusterStatus:
        """The cluster's state at this moment, with its controllers."""
        states = self.call(self.driver.quorum.states)
        active = next((each for each, state in states.items() if state == ACTIVE), CONTROLLER_ID)
        return replace(super().status(), controllers=states, controller_id=active)

    @property
    def _config(self) -> BrokerConfig:
        return real_config(self.plan.topology, self.driver.real.broker_ids[0])

    @property
    def is_clock_steered(self) -> bool:
        """False: a real Kafka's clock goes on."""
        return False

    @cached_property
    def record(self) -> ClusterRecord:
        """The record of the cluster, from which it is judged."""
        return MirrorRecord(self)


def with_counts(topology: Topology) -> Topology:
    """The topology with configs for the partition counts of the internal topics that it names:
    Kafka's coordinators read the configs, not the topics, when they start."""
    counts = {
        config: str(len(spec.assignment or ()) or spec.partitions)
        for name, config in _COUNTS.items()
        if (spec := topology.topics.get(name)) is not None
    }
    return replace(topology, config={**counts, **topology.config}) if counts else topology


class MirrorRecord(ClusterRecord):
    """The record of a real Kafka."""

    def __init__(self, cluster: KafkaCluster) -> None:
        super().__init__(cluster)
        self._cluster = cluster

    def begin(self) -> None:
        if self._recorder is None:
            self._recorder = MirrorRecorder(self._cluster.driver)
            self._recorder.notes += [entry.note for entry in self._cluster.kept]
