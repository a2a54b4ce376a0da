"""The replicas that this broker hosts, kept as the metadata image wants them.

Owns: which replicas exist here, their roles as metadata arrives, who is woken when one moves, and
the periodic work: ISR checks, watermark checkpoints, retention.  Never: changes a replica's state
itself (partition/replica.py does).  Kafka: ReplicaManager, LogManager, BrokerMetadataPublisher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcluster.broker.appends import AckWait
from kcluster.broker.fetchers import Fetchers
from kcluster.broker.quotas import on_client_quotas
from kcluster.config.kafka.definitions import TopicConfig
from kcluster.contract import NoteId
from kcluster.events.partitions import BecameFollower, BecameLeader
from kcluster.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
)
from kcluster.partition.replica import Replica
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC

if TYPE_CHECKING:
    from kcluster.broker.handlers.fetch import PendingFetch
    from kcluster.broker.node import BrokerNode
    from kcluster.broker.sessions import FetchSession, SessionPartition


class Replicas:
    """Replicas by (topic id, partition).  `moved`: those that changed in this step."""

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._by_key: dict[tuple[bytes, int], Replica] = {}
        self._by_topic: dict[str, dict[int, Replica]] = {}
        """By topic name, then by partition."""
        self.moved: dict[Replica, None] = {}
        self.fetchers = Fetchers(broker)
        self.last_fetches: dict[int, int] = {}
        """Per follower broker, when it last fetched from this one."""
        self._outsiders: dict[int, dict[Replica, None]] = {}
        """Per follower broker, the replicas led here whose ISR it is not in."""

    # ------------------------------------------------------------------------------ look-up

    def get(self, topic_id: bytes, partition: int) -> Replica | None:
        return self._by_key.get((topic_id, partition))

    def find(self, topic: str, partition: int) -> Replica | ErrorCode:
        """The replica hosted here, in whatever role, or why there is none.

        Kafka: ReplicaManager.getPartitionOrError.
        """
        partitions = self._by_topic.get(topic)
        if partitions is not None:
            found = partitions.get(partition)
            if found is not None:
                return found
        image = self._broker.image.topics.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        replica = self._by_key.get((image.topic_id, partition))
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if replica is None else replica

    def find_by_id(self, topic_id: bytes, partition: int) -> Replica | ErrorCode:
        """The same by topic id."""
        replica = self._by_key.get((topic_id, partition))
        if replica is not None:
            return replica
        image = self._broker.image.topic_by_id(topic_id)
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not 0 <= partition < len(image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def all(self) -> list[Replica]:
        return list(self._by_key.values())

    # -------------------------------------------------------------------------- periodic work

    def start(self, now_ms: int) -> None:
        """Begin the periodic work."""
        config = self._broker.config
        # Kafka looks twice per lag time, so that a lagging follower leaves within 1.5 of it.
        self._every(max(1, config.replica_lag_time_max_ms // 2), "isr", self._shrink_isrs, now_ms)
        self._every(
            config.replica_high_watermark_checkpoint_interval_ms, "checkpoint",
            self._checkpoint, now_ms,
        )  # fmt: skip
        self._every(
            config.log_retention_check_interval_ms, "retention", self._apply_retention, now_ms
        )
        if config.log_cleaner_enable:
            self._clean(now_ms)
        self._every(
            config.producer_id_expiration_check_interval_ms, "producers",
            self._expire_producers, now_ms,
        )  # fmt: skip
        self._every(config.log_flush_scheduler_interval_ms, "flush", self._flush_due, now_ms)

    def _every(self, interval_ms: int, name: str, work: Any, now_ms: int) -> None:
        def run(now_ms: int) -> None:
            work(now_ms)
            self._broker.timers.set(("replicas", name), now_ms + interval_ms, run)

        self._broker.timers.set(("replicas", name), now_ms + interval_ms, run)

    def _shrink_isrs(self, now_ms: int) -> None:
        for replica in self._by_key.values():
            if replica.followers and (proposal := replica.propose_shrink(now_ms)):
                self._broker.isr_changes.submit(replica, proposal, now_ms)

    def _checkpoint(self, _now_ms: int) -> None:
        for replica in self._by_key.values():
            replica.log.high_watermark_checkpoint = replica.high_watermark

    def _apply_retention(self, now_ms: int) -> None:
        for replica in self._by_key.values():
            start = replica.log.log_start_offset
            replica.log.expire(now_ms, replica.config, replica.high_watermark)
            if replica.log.log_start_offset != start:
                self.moved[replica] = None

    def _clean(self, now_ms: int) -> None:
        """Compact what is due, and look again after log.cleaner.backoff.ms, a dynamic config."""
        for replica in self._by_key.values():
            if "compact" in replica.config.cleanup_policy:
                replica.log.compact(now_ms, replica.config, replica.high_watermark)
        backoff_ms = max(1, self._broker.config.log_cleaner_backoff_ms)
        self._broker.timers.set(("replicas", "cleaner"), now_ms + backoff_ms, self._clean)

    def _expire_producers(self, now_ms: int) -> None:
        expiration_ms = self._broker.config.producer_id_expiration_ms
        for replica in self._by_key.values():
            if replica.log.has_producers:
                replica.log.producers.remove_expired(now_ms, expiration_ms)

    def _flush_due(self, now_ms: int) -> None:
        for replica in self._by_key.values():
            replica.log.flush_if_due(now_ms, replica.config)

    def checkpoint_all(self) -> None:
        """A clean stop leaves exact watermarks and flushed logs."""
        for replica in self._by_key.values():
            replica.log.high_watermark_checkpoint = replica.high_watermark
            replica.log.flush()

    # -------------------------------------------------------------------------------- the ISR

    def propose_expansions(self, follower_id: int, now_ms: int) -> None:
        """A follower has fetched: ask for it to join wherever it has earned it."""
        outsiders = self._outsiders.get(follower_id)
        if not outsiders:
            return
        for replica in outsiders:
            proposal = replica.propose_expansion(follower_id)
            if proposal is not None:
                self._broker.isr_changes.submit(replica, proposal, now_ms)

    def track_isr(self, replica: Replica) -> None:
        """The role or the ISR of `replica` has changed: who is to be let in by and by?"""
        for outside in self._outsiders.values():
            outside.pop(replica, None)
        for follower_id in replica.followers:
            if follower_id not in replica.registration.isr:
                self._outsiders.setdefault(follower_id, {})[replica] = None

    # ------------------------------------------------------------------------------- metadata

    def apply(self, records: list[MetadataRecord], now_ms: int) -> None:
        """Apply records to the image, then bring the replicas here in line with it."""
        broker = self._broker
        image = broker.image
        partitions: dict[tuple[bytes, int], NoteId | None] = {}
        removed: list[tuple[str, bytes]] = []
        configured: dict[tuple[int, str], None] = {}
        brokers_changed = quotas_changed = False
        for record in records:
            match record:
                case PartitionRecord(registration=new):
                    partitions[new.topic_id, new.partition] = record.cause
                case RemoveTopicRecord(topic_id=topic_id):
                    removed.append((image.topic_names[topic_id], topic_id))
                case ClientQuotaRecord():
                    quotas_changed = True
                case ConfigRecord():
                    configured[record.resource_type, record.resource_name] = None
                case (
                    RegisterBrokerRecord()
                    | BrokerRegistrationChangeRecord()
                    | UnregisterBrokerRecord()
                ):
                    brokers_changed = True
            image.apply(record)
        if quotas_changed:
            on_client_quotas(broker)
        for name, topic_id in removed:
            self._remove_topic(name, topic_id, now_ms)
        for resource in configured:
            self._reconfigure(*resource, now_ms)
        for (topic_id, partition), cause in partitions.items():
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                self._adopt(topic.name, topic.partitions[partition], cause, now_ms)
        if brokers_changed:
            self.fetchers.on_brokers_changed()
        self.fetchers.send(now_ms)

    def _adopt(
        self, topic: str, new: PartitionRegistration, cause: NoteId | None, now_ms: int
    ) -> None:
        """Make the replica here what `new` says; create or delete it as needed."""
        broker = self._broker
        key = (new.topic_id, new.partition)
        replica = self._by_key.get(key)
        if broker.node_id not in new.replicas:
            if replica is not None:
                self._remove_replica(replica, now_ms)
            return
        if replica is None:
            replica = self._by_key[key] = Replica(
                topic, new, broker.node_id, broker.disk.create(*key, topic),
                self._topic_config(topic), broker.image.brokers, self.last_fetches,
                broker.config.replica_lag_time_max_ms,
            )  # fmt: skip
            self._by_topic.setdefault(topic, {})[new.partition] = replica
        replica.cause = cause
        self.moved[replica] = None
        if new.leader == broker.node_id:
            self._lead(replica, new, now_ms)
        else:
            self._follow(replica, new, now_ms)
        self.track_isr(replica)

    def _lead(self, replica: Replica, new: PartitionRegistration, now_ms: int) -> None:
        broker = self._broker
        was_leader = replica.is_leader
        self.fetchers.remove(replica)
        if not replica.lead(new, now_ms):
            return
        broker.note(
            BecameLeader(
                replica.topic, replica.partition, broker.node_id, new.leader_epoch,
                replica.leader_epoch_start_offset,
            ),
            replica.cause,
        )  # fmt: skip
        if not was_leader and replica.topic == GROUP_METADATA_TOPIC:
            broker.coordinator.on_elected(replica.partition, now_ms)

    def _follow(self, replica: Replica, new: PartitionRegistration, now_ms: int) -> None:
        broker = self._broker
        was_leader = replica.is_leader
        changed = replica.follow(new)
        if changed:
            self.fetchers.put(replica)
        if was_leader:
            broker.note(
                BecameFollower(
                    replica.topic, replica.partition, broker.node_id, new.leader, new.leader_epoch
                ),
                replica.cause,
            )
            if replica.topic == GROUP_METADATA_TOPIC:
                broker.coordinator.on_resigned(replica.partition, now_ms)

    def _remove_topic(self, name: str, topic_id: bytes, now_ms: int) -> None:
        for replica in [r for r in self._by_key.values() if r.topic_id == topic_id]:
            self._remove_replica(replica, now_ms)
        self._broker.throttles.on_topic(name, now_ms)
        self._broker.coordinator.on_topic_deleted(name, now_ms)

    def _remove_replica(self, replica: Replica, now_ms: int) -> None:
        del self._by_key[replica.key]
        partitions = self._by_topic[replica.topic]
        del partitions[replica.partition]
        if not partitions:
            del self._by_topic[replica.topic]
        self.fetchers.remove(replica)
        self._broker.throttles.forget(replica)
        was_leader = replica.is_leader
        replica.retire()
        self.track_isr(replica)
        self._broker.disk.remove(*replica.key)
        self.moved[replica] = None
        if was_leader and replica.topic == GROUP_METADATA_TOPIC:
            self._broker.coordinator.on_resigned(replica.partition, now_ms)

    def remove_strays(self) -> None:
        """Delete logs of an earlier life whose partitions were deleted or moved away meanwhile.

        Kafka: LogManager.isStrayReplica.
        """
        disk = self._broker.disk
        for key in [key for key in disk.logs if key not in self._by_key]:
            disk.remove(*key)

    def _topic_config(self, topic: str) -> TopicConfig:
        return TopicConfig.resolve(self._broker.config, self._broker.image.topic_configs(topic))

    def _reconfigure(self, resource_type: int, resource_name: str, now_ms: int) -> None:
        broker = self._broker
        if resource_type == TOPIC_RESOURCE:
            config = self._topic_config(resource_name)
            for replica in self._by_key.values():
                if replica.topic == resource_name:
                    replica.configure(config)
                    self.moved[replica] = None
            broker.throttles.on_topic(resource_name, now_ms)
        elif resource_type == BROKER_RESOURCE:
            configs = broker.image.configs
            broker.config = broker.static_config.override(
                configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {}),
                configs.get((BROKER_RESOURCE, str(broker.node_id)), {}),
            )
            for replica in self._by_key.values():
                replica.configure(self._topic_config(replica.topic))
            broker.throttles.on_rates()

    # --------------------------------------------------------------------------------- waking

    def wake(self, now_ms: int) -> None:
        """Tell those who wait for the replicas that moved in this step, until nothing moves."""
        while self.moved:
            moved, self.moved = self.moved, {}
            told: list[PendingFetch] = []
            for replica in moved:
                if replica.acks_waiting:
                    self._answer_acks(replica, now_ms)
                sessions: dict[FetchSession, SessionPartition] = replica.sessions
                for session, wanted in sessions.items():
                    session.moved[wanted] = None
                    parked = session.parked
                    if parked is not None and parked.is_told_of(replica, wanted):
                        told.append(parked)
            for parked in told:
                parked.try_complete(now_ms)
            for replica in moved:
                if replica.fetches_waiting:
                    for fetch in tuple(replica.fetches_waiting):
                        fetch.try_complete(now_ms)

    def _answer_acks(self, replica: Replica, now_ms: int) -> None:
        waiting: list[AckWait] = replica.acks_waiting
        answered: list[tuple[AckWait, ErrorCode]] = []
        for wait in waiting:
            error = replica.acks_reached(wait.required_offset)
            if error is None:
                break
            answered.append((wait, error))
        if answered:
            del waiting[: len(answered)]
            for wait, error in answered:
                wait.delayed.on_partition_done(wait, error, now_ms)
