"""The nodes of a real cluster as everything above runtime/ sees nodes: between two steps, to read.

Owns: MirrorController, MirrorBroker.  Never: decides anything, makes up what is unknown: a mirrored
broker has no groups, no transactions and no sessions, because no answer of Kafka tells them.
Kafka: the processes themselves.

Their inputs are a user's requests, which go to the real cluster (`RealCluster`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from kcluster.broker.access import Access
from kcluster.broker.coordinator import GroupCoordinator
from kcluster.broker.coordinator.share_state.coordinator import ShareCoordinator
from kcluster.broker.coordinator.transactions import TransactionCoordinator
from kcluster.broker.lifecycle import LifecycleState
from kcluster.broker.node_view import BrokerNodeView
from kcluster.broker.ports import BrokerView
from kcluster.broker.quotas.client_quotas import ClientQuotas
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.serving.sessions import FetchSessions, ParkedFetch
from kcluster.broker.share.share_partitions import SharePartitions
from kcluster.config.kafka.definitions import BrokerConfig, TopicConfig
from kcluster.contract import (
    CONTROLLER_ID,
    AcceptClients,
    Effect,
    Input,
    MoveLeader,
    PeerRequest,
    Shutdown,
    Tick,
)
from kcluster.controller.membership.liveness import Sessions
from kcluster.controller.metadata_log import MetadataLog
from kcluster.controller.node_view import ControllerNodeView
from kcluster.controller.partitions.partitions import Partitions
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.mirror.logs import LogEnds, Partition
from kcluster.partition.disk import Disk
from kcluster.partition.replica import Replica
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.releases import Release

if TYPE_CHECKING:
    from kcluster.broker.logins import Logins


class RealCluster(Protocol):
    """The real cluster behind the mirrors."""

    def ask(self, request: PeerRequest) -> None:
        """Send a request of the runtime to Kafka."""

    def ask_broker(self, broker_id: int, request: PeerRequest) -> None:
        """Send a request of the runtime to a broker."""

    def move(self, topic: str, partition: int, leader: int) -> None:
        """Give a partition another leader."""

    def shut_down(self, node_id: int) -> None:
        """Ask a process to stop cleanly."""


class MirrorController(ControllerNodeView):
    """The active controller.  `state` and `log` outlive it, as the metadata log does."""

    deadline_ms = None

    def __init__(
        self, config: BrokerConfig, image: MetadataImage, log: MetadataLog, cluster: RealCluster
    ) -> None:
        self.node_id = CONTROLLER_ID
        self._config = self.cluster_config = config
        self._image = image
        self._log = log
        self._sessions = Sessions(config.broker_session_timeout_ms)
        self._partitions = Partitions(self)  # type: ignore[arg-type]  # it only reads here
        self._cluster = cluster

    @property
    def config(self) -> BrokerConfig:
        return self._config

    @property
    def image(self) -> MetadataImage:
        return self._image

    @property
    def log(self) -> MetadataLog:
        return self._log

    @property
    def sessions(self) -> Sessions:
        """Unknown: only the controller itself sees heartbeats."""
        return self._sessions

    @property
    def partitions(self) -> Partitions:
        return self._partitions

    def step(self, _now_ms: int, incoming: Input) -> Sequence[Effect]:
        """Pass a user's request on to the real cluster."""
        if isinstance(incoming, PeerRequest):
            self._cluster.ask(incoming)
        elif isinstance(incoming, MoveLeader):
            self._cluster.move(incoming.topic, incoming.partition, incoming.leader)
        return ()


class MirrorBroker(BrokerNodeView):
    """One life of one broker.  `blank`: a simulated broker that never steps, whose parts stand for
    what is unknown: they are empty."""

    deadline_ms = None

    def __init__(
        self, blank: BrokerNodeView, image: MetadataImage, disk: Disk, cluster: RealCluster
    ) -> None:
        blank.view.image = image
        self.node_id = blank.node_id
        self._blank = blank
        self._image = image
        self._disk = disk
        self._cluster = cluster
        self._old_epoch = self._registered_epoch()
        """The broker epoch of the life before this one; -1 for none."""
        self._replicas = Replicas(image, {})
        self._configs: dict[str, TopicConfig] = {}
        self.is_serving = False
        for topic in image.topics.values():
            for partition in topic.partitions:
                self.adopt(topic.name, partition, 0)

    def __repr__(self) -> str:
        return f"<mirror of broker {self.node_id}, epoch {self.epoch}>"

    @property
    def view(self) -> BrokerView:
        return self._blank.view

    @property
    def release(self) -> Release:
        return self._blank.release

    @property
    def config(self) -> BrokerConfig:
        return self._blank.config

    @property
    def epoch(self) -> int:
        registered = self._registered_epoch()
        return -1 if registered == self._old_epoch else registered

    @property
    def state(self) -> LifecycleState:
        return LifecycleState.RUNNING if self.is_serving else LifecycleState.STARTING

    @property
    def image(self) -> MetadataImage:
        return self._image

    @property
    def logins(self) -> Logins | None:
        return None

    @property
    def replicas(self) -> Replicas:
        return self._replicas

    @property
    def coordinator(self) -> GroupCoordinator:
        return self._blank.coordinator

    @property
    def transactions(self) -> TransactionCoordinator:
        return self._blank.transactions

    @property
    def share_state(self) -> ShareCoordinator:
        return self._blank.share_state

    @property
    def share_partitions(self) -> SharePartitions:
        return self._blank.share_partitions

    @property
    def sessions(self) -> FetchSessions:
        return self._blank.sessions

    @property
    def access(self) -> Access | None:
        return None

    @property
    def parked_fetches(self) -> Mapping[int, ParkedFetch]:
        return self._blank.parked_fetches

    @property
    def quotas(self) -> ClientQuotas:
        return self._blank.quotas

    def advertise(self, endpoints: tuple[BrokerEndpoint, ...]) -> None:
        raise AssertionError("refused before (verbs.py)")

    def _registered_epoch(self) -> int:
        registration = self._image.brokers.get(self.node_id)
        return -1 if registration is None else registration.epoch

    # ------------------------------------------------------------------------------- replicas

    def adopt(self, topic: str, new: PartitionRegistration, now_ms: int) -> None:
        """Bring the replica here in line with a partition's registration."""
        replica = self._replicas.get(new.topic_id, new.partition)
        if self.node_id not in new.replicas:
            if replica is not None:
                self._replicas.remove(replica)
                self._disk.remove(new.topic_id, new.partition)
            return
        if replica is None:
            replica = Replica(
                topic,
                new,
                self.node_id,
                log=self._disk.create(new.topic_id, new.partition, topic),
                config=self._topic_config(topic),
                brokers=self._image.brokers,
                last_fetches=self._replicas.last_fetches,
                lag_time_max_ms=self.config.replica_lag_time_max_ms,
                changed=self._replicas.changed,
            )
            self._replicas.add(replica)
        if new.leader == self.node_id:
            replica.lead(new, now_ms)
        else:
            replica.follow(new)

    def forget(self, topic_id: bytes) -> None:
        """Drop the replicas of a topic that was deleted."""
        for replica in self._replicas.all():
            if replica.topic_id == topic_id:
                self._replicas.remove(replica)
                self._disk.remove(topic_id, replica.partition)

    @property
    def led(self) -> list[Partition]:
        """The partitions that the broker leads: topic and number."""
        return [(each.topic, each.partition) for each in self._replicas.all() if each.is_leader]

    def report(self, ends: LogEnds) -> None:
        """Take over what Kafka has told of the ends of the logs."""
        for replica in self._replicas.all():
            partition = (replica.topic, replica.partition)
            replica.log.log_end_offset = ends.log_ends.get(partition, replica.log.log_end_offset)
            watermark = ends.high_watermarks.get(partition, replica.high_watermark)
            replica.high_watermark = min(watermark, replica.log.log_end_offset)

    def _topic_config(self, topic: str) -> TopicConfig:
        return TopicConfig.resolve(self.config, self._image.topic_configs(topic))

    # ---------------------------------------------------------------------------- as a Node

    def step(self, _now_ms: int, incoming: Input) -> Sequence[Effect]:
        """Pass a request on; on a Tick, take note that Kafka has unfenced the
        broker, which then serves clients."""
        if isinstance(incoming, Shutdown):
            self._cluster.shut_down(self.node_id)
        elif isinstance(incoming, PeerRequest):
            self._cluster.ask_broker(self.node_id, incoming)
        elif isinstance(incoming, Tick) and not self.is_serving:
            registration = self._image.brokers.get(self.node_id)
            if registration is not None and self.epoch >= 0 and not registration.fenced:
                self.is_serving = True
                return (AcceptClients(),)
        return ()
