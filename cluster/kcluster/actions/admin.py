"""The actions of an administrator while the cluster is under load: topics, partitions, configs,
moves.

Owns: these actions.  Never: sends the requests (operations/admin.py).
Kafka: kafka-topics, kafka-configs, kafka-reassign-partitions, kafka-delete-records.

A refusal by the controller fails the run, with the controller's message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Final

from kcluster.actions.base import Action, action
from kcluster.actions.kafka_configs import ANY_CONFIG, TOPIC_CONFIG
from kcluster.actions.kinds import BROKERS, PARTITION
from kcluster.actions.recording import Recording, these
from kcluster.actions.requests import refused
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import ListOf, Whole, text
from kcluster.config.kafka.client_quotas import CLIENT_ID
from kcluster.config.topology.specs import TopicSpec
from kcluster.events.brokers import BrokerFenced, BrokerRegistered
from kcluster.events.partitions import ReassignmentCancelled, ReassignmentStarted, RecordsDeleted
from kcluster.events.reasons import Fencing
from kcluster.events.topics import (
    ConfigChanged,
    PartitionsAdded,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)
from kcluster.metadata.records import CLUSTER_DEFAULT
from kcluster.operations.admin import BROKER, GROUP, TOPIC
from kcluster.operations.names import PartitionName
from kcluster.operations.targets import ALL, AllTarget, Targets

_EVERY_CLIENT: Final = "all"
COMMITTED: Final = -1
"""The offset by which DeleteRecords means all committed records."""


@action(
    "create_topic",
    short="name",
    example="create_topic: {name: payments, partitions: 3, config: {min.insync.replicas: 2}}",
)
class CreateTopic(Action, frozen=True):
    """Create a topic."""

    name: Annotated[str, text(), "The topic's name."]
    partitions: Annotated[int, Whole(1), "The number of partitions."] = 1
    replication_factor: Annotated[
        int | None,
        Whole(1, 1_000),
        "Replicas of each partition; without it as default.replication.factor says.",
    ] = None
    config: Annotated[dict[str, str], TOPIC_CONFIG, "Configs of the topic by Kafka's names."] = {}

    def do(self, stage: Stage) -> None:
        spec = TopicSpec(
            self.name, self.partitions, self.replication_factor or -1, config=self.config
        )
        stage.verbs.admin.create_topic(spec, refused(stage, "create_topic"))

    RECORDED_FROM = (TopicCreated,)

    @classmethod
    def record(cls, event: TopicCreated, recording: Recording) -> None:
        if event.topic not in recording.topics:
            count, replicas = event.partition_count, event.replication_factor
            recording.add(cls(event.topic, count, replicas, _set_configs(event.configs)), event)


@action("delete_topic", short="name", example="delete_topic: orders")
class DeleteTopic(Action, frozen=True):
    """Delete a topic."""

    name: Annotated[str, text(), "The topic's name."]

    def do(self, stage: Stage) -> None:
        topic = stage.verbs.topic(self.name)
        stage.verbs.admin.delete_topic(self.name, topic.topic_id, refused(stage, "delete_topic"))

    RECORDED_FROM = (TopicDeleted,)

    @classmethod
    def record(cls, event: TopicDeleted, recording: Recording) -> None:
        recording.add(cls(event.topic), event)


@action("recreate_topic", short="name", example="recreate_topic: orders")
class RecreateTopic(Action, frozen=True):
    """Delete a topic and create it again, with the same partitions, replicas and configs."""

    name: Annotated[str, text(), "The topic's name."]

    def do(self, stage: Stage) -> None:
        image = stage.verbs.settled.image
        topic_id = stage.verbs.partition(self.name, 0).topic_id
        partitions = image.topics[self.name].partitions
        spec = TopicSpec(
            self.name,
            assignment=tuple(tuple(found.replicas) for found in partitions),
            config={key: str(value) for key, value in image.topic_configs(self.name).items()},
        )
        admin = stage.verbs.admin

        def create() -> None:
            admin.create_topic(spec, refused(stage, "recreate_topic"))

        def deleted() -> None:
            stage.at(stage.now_ms, create)  # the answer arrives within a dispatch

        def is_new() -> bool:
            topic = stage.verbs.settled.image.topics.get(self.name)
            return topic is not None and topic.topic_id != topic_id

        stage.is_over_when(is_new)
        admin.delete_topic(self.name, topic_id, refused(stage, "recreate_topic", deleted))


@action("add_partitions", example="add_partitions: {topic: orders, to: 6}")
class AddPartitions(Action, frozen=True):
    """Add partitions to a topic, up to the number `to`."""

    topic: Annotated[str, text(), "The topic's name."]
    to: Annotated[int, Whole(2), "The number of partitions that it then has."]

    def do(self, stage: Stage) -> None:
        stage.verbs.partition(self.topic, 0)
        stage.verbs.admin.add_partitions(self.topic, self.to, refused(stage, "add_partitions"))

    RECORDED_FROM = (PartitionsAdded,)

    @classmethod
    def record(cls, event: PartitionsAdded, recording: Recording) -> None:
        recording.add(cls(event.topic, event.partition_count), event)


@action("delete_records", short="partition", example="delete_records: orders-0")
class DeleteRecords(Action, frozen=True):
    """Delete a partition's records before an offset, as kafka-delete-records does: its log then
    starts there, on every replica."""

    IS_FAULT = False
    partition: Annotated[PartitionName, PARTITION, "The partition."]
    before: Annotated[
        int | None, Whole(0), "The first offset that stays; without it, all committed records go."
    ] = None

    def do(self, stage: Stage) -> None:
        before = COMMITTED if self.before is None else self.before
        topic, number = self.partition
        stage.verbs.delete_records(topic, number, before, refused(stage, "delete_records"))

    RECORDED_FROM = (RecordsDeleted,)

    @classmethod
    def record(cls, event: RecordsDeleted, recording: Recording) -> None:
        recording.add(cls((event.topic, event.partition), event.low_watermark), event)


@action("reassign", example="reassign: {partition: orders-0, to: [2, 3]}")
class Reassign(Action, frozen=True):
    """Move a partition to other brokers, the preferred leader first.  Undone by cancelling the move
    while most of the replicas before it are in sync, else by moving the partition back."""

    IS_FAULT = False
    partition: Annotated[PartitionName, PARTITION, "The partition that is moved."]
    to: Annotated[Targets, BROKERS, "Its new replicas, the preferred leader first."]

    def do(self, stage: Stage) -> Undo:
        topic, number = self.partition
        before = tuple(stage.verbs.partition(topic, number).replicas)
        admin = stage.verbs.admin
        admin.reassign(topic, number, stage.nodes(self.to), refused(stage, "reassign"))

        def move_back() -> None:
            admin.reassign(topic, number, before, refused(stage, "reassign back"))

        def cancelled(refusal: str) -> None:
            # Only an added replica is in sync, or the move has just ended.
            if refusal:
                stage.at(stage.now_ms, move_back)  # the answer arrives within a dispatch

        def undo() -> None:
            now = stage.verbs.partition(topic, number)
            is_moving = bool(now.adding_replicas or now.removing_replicas)
            in_sync = [one for one in before if one in now.isr and one not in now.adding_replicas]
            # With fewer in sync, Kafka leaves an added replica in the ELR, which then never leads.
            if is_moving and 2 * len(in_sync) > len(before):
                admin.reassign(topic, number, None, cancelled)
            else:
                move_back()

        return undo

    RECORDED_FROM = (ReassignmentStarted,)

    @classmethod
    def record(cls, event: ReassignmentStarted, recording: Recording) -> None:
        recording.add(cls((event.topic, event.partition), these(event.replicas)), event)


@action("cancel_reassignment", short="partition", example="cancel_reassignment: orders-0")
class CancelReassignment(Action, frozen=True):
    """Cancel the move of a partition, as kafka-reassign-partitions does.  Nothing happens if the
    partition does not move, or if Kafka refuses: when none of the replicas before the move is in
    sync, and no unclean leader is allowed."""

    IS_FAULT = False
    partition: Annotated[PartitionName, PARTITION, "The partition that moves."]

    def do(self, stage: Stage) -> None:
        topic, number = self.partition
        stage.verbs.partition(topic, number)
        ended: list[str] = []
        stage.verbs.admin.reassign(topic, number, None, ended.append)
        stage.is_over_when(lambda: bool(ended))

    RECORDED_FROM = (ReassignmentCancelled,)

    @classmethod
    def record(cls, event: ReassignmentCancelled, recording: Recording) -> None:
        recording.add(cls((event.topic, event.partition)), event)


@action("set_config", example="set_config: {topics: orders, config: {min.insync.replicas: 2}}")
class SetConfig(Action, frozen=True):
    """Change configs of topics, groups or brokers, or quotas of clients, while they run.  Undone by
    restoring the old values; if other steps have set the same ones, the newest of theirs."""

    IS_FAULT = False
    config: Annotated[dict[str, str], ANY_CONFIG, "The new values by Kafka's names."]
    topics: Annotated[
        tuple[str, ...], ListOf(text(), "topics"), "The topics whose configs change."
    ] = ()
    brokers: Annotated[
        Targets | None,
        BROKERS,
        "The brokers whose configs change; all: the default of the whole cluster.",
    ] = None
    groups: Annotated[
        tuple[str, ...], ListOf(text(), "groups"), "The groups whose configs change."
    ] = ()
    clients: Annotated[
        tuple[str, ...],
        ListOf(text(), "clients"),
        "The client ids whose quotas change, such as producer_byte_rate; all: the default of each.",
    ] = ()

    def do(self, stage: Stage) -> Undo:
        resources = [(TOPIC, topic) for topic in self.topics]
        resources += [(GROUP, group) for group in self.groups]
        if self.brokers is not None:
            resources += [(BROKER, name) for name in self._broker_names(stage, self.brokers)]
        for topic in self.topics:
            stage.verbs.partition(topic, 0)
        if not resources and not self.clients:
            stage.refuse("set_config needs topics, groups, brokers or clients")
        known = stage.verbs.settled.image.configs
        ends = {
            resource: stage.configs_set.begin(resource, self.config, known.get(resource, {}))
            for resource in dict.fromkeys(resources)
        }
        for kind, name in ends:
            on_end = refused(stage, f"set_config of {name}")
            stage.verbs.admin.set_configs(kind, name, self.config, on_end)
        undo_quotas = self._set_quotas(stage)

        def undo() -> None:
            undo_quotas()
            for (kind, name), end in ends.items():
                if left := end():
                    on_end = refused(stage, f"set_config of {name} back")
                    stage.verbs.admin.set_configs(kind, name, left, on_end)

        return undo

    def _set_quotas(self, stage: Stage) -> Callable[[], None]:
        """Set the quotas of clients; returns what restores the old ones."""
        known = stage.verbs.settled.image.client_quotas
        names = [None if client == _EVERY_CLIENT else client for client in self.clients]
        wanted: dict[str, float] = {}
        try:
            wanted.update((name, float(value)) for name, value in self.config.items() if names)
        except ValueError:
            stage.refuse(f"set_config: a quota is no number: {self.config}")
            names = []
        ends = {
            name: stage.quotas_set.begin(name, wanted, known.get(((CLIENT_ID, name),), {}))
            for name in dict.fromkeys(names)
        }
        for name in ends:
            on_end = refused(stage, f"set_config of {name or _EVERY_CLIENT}")
            stage.verbs.admin.set_quotas(name, wanted, on_end)

        def restore() -> None:
            for name, end in ends.items():
                if left := end():
                    on_end = refused(stage, f"set_config of {name or _EVERY_CLIENT} back")
                    stage.verbs.admin.set_quotas(name, left, on_end)

        return restore

    def _broker_names(self, stage: Stage, brokers: Targets) -> list[str]:
        """The names of the resources; "" is the default of all brokers."""
        if any(isinstance(one, AllTarget) for one in brokers):
            return [CLUSTER_DEFAULT]
        return [str(node) for node in stage.nodes(brokers)]

    RECORDED_FROM = (ConfigChanged,)

    @classmethod
    def record(cls, event: ConfigChanged, recording: Recording) -> None:
        config = _set_configs(event.configs)
        if not config:
            return
        match event.resource_type:
            case ResourceType.TOPIC:
                recording.add(cls(config, topics=(event.resource,)), event)
            case ResourceType.BROKER:
                brokers = these([int(event.resource)]) if event.resource else ALL
                recording.add(cls(config, brokers=brokers), event)


@action("add_broker", short="id", example="add_broker: {id: 4, rack: a}")
class AddBroker(Action, frozen=True):
    """Add a new broker, with an empty disk, to the running cluster."""

    id: Annotated[int, Whole(0, 999), "Its id, which no broker has."]
    rack: Annotated[str | None, text(), "Its rack (broker.rack)."] = None

    def do(self, stage: Stage) -> None:
        stage.verbs.add_broker(self.id, self.rack)

    RECORDED_FROM = (BrokerRegistered,)

    @classmethod
    def record(cls, event: BrokerRegistered, recording: Recording) -> None:
        if event.broker not in recording.brokers:
            recording.brokers.append(event.broker)
            recording.add(cls(event.broker, event.rack), event)


@action("remove_broker", short="broker", example="remove_broker: 3")
class RemoveBroker(Action, frozen=True):
    """Unregister a broker that is down, for good.  Its replicas stay assigned until reassigned."""

    broker: Annotated[Targets, BROKERS, "The broker; it must be down."]

    def do(self, stage: Stage) -> None:
        for broker_id in stage.nodes(self.broker):
            stage.verbs.remove_broker(broker_id, refused(stage, "remove_broker"))

    RECORDED_FROM = (BrokerFenced,)

    @classmethod
    def record(cls, event: BrokerFenced, recording: Recording) -> None:
        if event.fencing is Fencing.UNREGISTERED:
            recording.add(cls(these([event.broker])), event)


def _set_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The configs that have a value."""
    return {key: value for key, value in configs.items() if value is not None}
