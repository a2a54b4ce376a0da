"""Putting metadata into effect on one broker: records change the image, and the replicas follow.

Owns: creating and deleting replicas and giving them roles as metadata arrives; the broker's current
config.  Never: decides any of it (the controller has), changes a replica's state except through
`Replica`.  Kafka: BrokerMetadataPublisher, ReplicaManager.applyDelta, DynamicConfigPublisher.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kcluster.broker.access import Access
from kcluster.broker.ports import BrokerView, InternalTopicListener, Outbox
from kcluster.broker.quotas.client_quotas import ClientQuotas
from kcluster.broker.quotas.replication_throttle import Throttles
from kcluster.broker.replication.fetchers import Fetchers
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.share.share_partitions import SharePartitions
from kcluster.config.kafka.definitions import TOPIC_CONFIGS, TopicConfig
from kcluster.config.kafka.values import known_configs
from kcluster.contract import NoteId
from kcluster.events.partitions import BecameFollower, BecameLeader
from kcluster.metadata.delta import MetadataDelta
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    PartitionRegistration,
)
from kcluster.partition.disk import Disk
from kcluster.partition.replica import Replica

if TYPE_CHECKING:
    from kcluster.broker.logins import Logins


class MetadataPublisher:
    """Applies metadata records.  Each of `coordinators` is notified about its topic."""

    def __init__(
        self,
        view: BrokerView,
        disk: Disk,
        outbox: Outbox,
        replicas: Replicas,
        fetchers: Fetchers,
        isr: IsrChanges,
        throttles: Throttles,
        quotas: ClientQuotas,
        coordinators: Iterable[InternalTopicListener],
        share_partitions: SharePartitions,
        access: Access | None,
        logins: Logins | None,
    ) -> None:
        self._view = view
        self._disk = disk
        self._outbox = outbox
        self._replicas = replicas
        self._fetchers = fetchers
        self._isr = isr
        self._throttles = throttles
        self._quotas = quotas
        self._share_partitions = share_partitions
        self._access = access
        self._logins = logins
        self._topic_configs: dict[str, TopicConfig] = {}
        """The configs in force by topic: all partitions of a topic share one object."""
        self._coordinators = {coordinator.topic: coordinator for coordinator in coordinators}

    def apply(self, delta: MetadataDelta, now_ms: int) -> None:
        """Apply records to the image, then bring the replicas here in line with it."""
        image = self._view.image
        delta.apply_to(image)
        if delta.acls and self._access is not None:
            self._access.on_metadata(delta)
        if delta.credentials and self._logins is not None:
            self._logins.on_metadata(delta.credentials)
        if delta.has_quotas:
            self._quotas.on_changed()
        for name, topic_id in delta.removed:
            self._remove_topic(name, topic_id, now_ms)
        for resource in delta.configured:
            self._reconfigure(*resource, now_ms)
        for (topic_id, partition), cause in delta.partitions_of(self._view.node_id).items():
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                self._adopt(topic.name, topic.partitions[partition], cause, now_ms)
        if delta.has_brokers:
            self._fetchers.on_brokers_changed()
        self._fetchers.send(now_ms)

    # ------------------------------------------------------------------------------ replicas

    def _adopt(
        self, topic: str, new: PartitionRegistration, cause: NoteId | None, now_ms: int
    ) -> None:
        """Bring the replica here in line with `new`; create or delete it as needed."""
        view = self._view
        key = (new.topic_id, new.partition)
        replica = self._replicas.get(*key)
        if view.node_id not in new.replicas:
            if replica is not None:
                self._remove_replica(replica, now_ms)
            return
        if replica is None:
            replica = Replica(
                topic,
                new,
                view.node_id,
                log=self._disk.create(*key, topic),
                config=self._topic_config(topic),
                brokers=view.image.brokers,
                last_fetches=self._replicas.last_fetches,
                lag_time_max_ms=view.config.replica_lag_time_max_ms,
                changed=self._replicas.changed,
            )
            self._replicas.add(replica)
        elif new.partition_epoch < replica.registration.partition_epoch:
            # The leader knows a later ISR by the answer to its AlterPartition.  Kafka:
            # Partition.makeLeader.
            return
        replica.cause = cause
        self._replicas.touch(replica)
        if new.leader == view.node_id:
            self._lead(replica, new, now_ms)
        else:
            self._follow(replica, new, now_ms)
        self._isr.track(replica)

    def _lead(self, replica: Replica, new: PartitionRegistration, now_ms: int) -> None:
        was_leader = replica.is_leader
        self._fetchers.remove(replica)
        if not replica.lead(new, now_ms):
            return
        self._outbox.note(
            BecameLeader(
                topic=replica.topic,
                partition=replica.partition,
                broker=self._view.node_id,
                leader_epoch=new.leader_epoch,
                start_offset=replica.leader_epoch_start_offset,
            ),
            replica.cause,
        )
        if not was_leader and replica.topic in self._coordinators:
            self._coordinators[replica.topic].on_elected(replica.partition, now_ms)

    def _follow(self, replica: Replica, new: PartitionRegistration, now_ms: int) -> None:
        was_leader = replica.is_leader
        changed = replica.follow(new)
        if changed:
            self._fetchers.put(replica)
        if was_leader:
            self._outbox.note(
                BecameFollower(
                    topic=replica.topic,
                    partition=replica.partition,
                    broker=self._view.node_id,
                    leader=new.leader,
                    leader_epoch=new.leader_epoch,
                ),
                replica.cause,
            )
            self._share_partitions.on_resigned(replica.topic_id, replica.partition)
            if replica.topic in self._coordinators:
                self._coordinators[replica.topic].on_resigned(replica.partition, now_ms)

    def _remove_topic(self, name: str, topic_id: bytes, now_ms: int) -> None:
        for replica in self._replicas.all():
            if replica.topic_id == topic_id:
                self._remove_replica(replica, now_ms)
        self._topic_configs.pop(name, None)
        self._throttles.on_topic(name, bool(self._replicas.last_fetches), now_ms)
        for coordinator in self._coordinators.values():
            coordinator.on_topic_deleted(name, now_ms)

    def _remove_replica(self, replica: Replica, now_ms: int) -> None:
        self._replicas.remove(replica)
        self._fetchers.remove(replica)
        self._throttles.forget(replica)
        was_leader = replica.is_leader
        replica.retire()
        self._isr.track(replica)
        self._disk.remove(*replica.key)
        self._replicas.touch(replica)
        if was_leader:
            self._share_partitions.on_resigned(replica.topic_id, replica.partition)
            if replica.topic in self._coordinators:
                self._coordinators[replica.topic].on_resigned(replica.partition, now_ms)

    def remove_strays(self) -> None:
        """Delete logs of an earlier life whose partitions have since been deleted or moved away.

        Kafka: LogManager.isStrayReplica.
        """
        for key in [key for key in self._disk.logs if self._replicas.get(*key) is None]:
            self._disk.remove(*key)

    # ------------------------------------------------------------------------------- configs

    def _topic_config(self, topic: str) -> TopicConfig:
        config = self._topic_configs.get(topic)
        if config is None:
            view = self._view
            own = view.image.topic_configs(topic)
            own = known_configs(TOPIC_CONFIGS, own, view.release.number)
            config = TopicConfig.resolve(view.config, own)
            self._topic_configs[topic] = config
        return config

    def _reconfigure(self, resource_type: int, resource_name: str, now_ms: int) -> None:
        if resource_type == TOPIC_RESOURCE:
            self._topic_configs.pop(resource_name, None)
            config = self._topic_config(resource_name)
            for replica in self._replicas.all():
                if replica.topic == resource_name:
                    replica.configure(config)
                    self._replicas.touch(replica)
            has_followers = bool(self._replicas.last_fetches)
            self._throttles.on_topic(resource_name, has_followers, now_ms)
        elif resource_type == BROKER_RESOURCE:
            view = self._view
            view.reconfigurations += 1
            configs = view.image.configs
            view.config = view.static_config.override(
                configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {}),
                configs.get((BROKER_RESOURCE, str(view.node_id)), {}),
                release=view.release.number,
            ).capped()
            self._topic_configs.clear()
            for replica in self._replicas.all():
                replica.configure(self._topic_config(replica.topic))
            self._throttles.on_rates()
