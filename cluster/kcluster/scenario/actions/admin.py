"""What an administrator does while the cluster is under load: topics, partitions, configs, moves.

Owns: these actions.  Never: sends the requests (operations/admin.py).
Kafka: kafka-topics, kafka-configs, kafka-reassign-partitions.

A refusal by the controller fails the run, with the controller's message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from kcluster.config.topology.specs import TopicSpec
from kcluster.operations.admin import BROKER, TOPIC
from kcluster.operations.names import PartitionName
from kcluster.operations.targets import Targets
from kcluster.scenario.actions.base import Action, Undo, action
from kcluster.scenario.language.fields import ListOf, MapOf, Whole, text
from kcluster.scenario.language.words import PARTITION, TARGETS
from kcluster.scenario.play.stage import Stage


def _refused(
    stage: Stage, what: str, then: Callable[[], None] | None = None
) -> Callable[[str], None]:
    """A callback for the end of a request: it fails the run, or calls `then`."""

    def on_end(refusal: str) -> None:
        if refusal:
            stage.refuse(f"{what}: {refusal}")
        elif then is not None:
            then()

    return on_end


@action("create_topic", short="name")
class CreateTopic(Action, frozen=True):
    """Create a topic."""

    name: Annotated[str, text()]
    partitions: Annotated[int, Whole(1)] = 1
    replication_factor: Annotated[int | None, Whole(1, 1_000)] = None
    """None: as many as default.replication.factor says."""
    config: Annotated[dict[str, str], MapOf(text(), "topic configs")] = {}

    def do(self, stage: Stage) -> None:
        spec = TopicSpec(
            self.name, self.partitions, self.replication_factor or -1, config=self.config
        )
        stage.verbs.admin.create_topic(spec, _refused(stage, "create_topic"))


@action("delete_topic", short="name")
class DeleteTopic(Action, frozen=True):
    """Delete a topic."""

    name: Annotated[str, text()]

    def do(self, stage: Stage) -> None:
        topic = stage.verbs.partition(self.name, 0)
        stage.verbs.admin.delete_topic(self.name, topic.topic_id, _refused(stage, "delete_topic"))


@action("recreate_topic", short="name")
class RecreateTopic(Action, frozen=True):
    """Delete a topic and create it again, with the same partitions, replicas and configs."""

    name: Annotated[str, text()]

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
            admin.create_topic(spec, _refused(stage, "recreate_topic"))

        def deleted() -> None:
            stage.at(stage.now_ms, create)  # the answer arrives within a dispatch

        admin.delete_topic(self.name, topic_id, _refused(stage, "recreate_topic", deleted))


@action("add_partitions")
class AddPartitions(Action, frozen=True):
    """Add partitions to a topic, up to the number `to`."""

    topic: Annotated[str, text()]
    to: Annotated[int, Whole(2)]

    def do(self, stage: Stage) -> None:
        stage.verbs.partition(self.topic, 0)
        stage.verbs.admin.add_partitions(self.topic, self.to, _refused(stage, "add_partitions"))


@action("reassign")
class Reassign(Action, frozen=True):
    """Move a partition to other brokers, the preferred leader first.  Undone by moving it back."""

    IS_FAULT = False
    partition: Annotated[PartitionName, PARTITION]
    to: Annotated[Targets, TARGETS]

    def do(self, stage: Stage) -> Undo:
        topic, number = self.partition
        before = tuple(stage.verbs.partition(topic, number).replicas)
        admin = stage.verbs.admin
        admin.reassign(topic, number, stage.nodes(self.to), _refused(stage, "reassign"))
        return lambda: admin.reassign(topic, number, before, _refused(stage, "reassign back"))


@action("set_config")
class SetConfig(Action, frozen=True):
    """Change configs of topics or brokers while they run.  Undone by restoring the old values."""

    IS_FAULT = False
    config: Annotated[dict[str, str], MapOf(text(), "Kafka's configs")]
    topics: Annotated[tuple[str, ...], ListOf(text(), "topics")] = ()
    brokers: Annotated[Targets | None, TARGETS] = None

    def do(self, stage: Stage) -> Undo:
        resources = [(TOPIC, topic) for topic in self.topics]
        if self.brokers is not None:
            resources += [(BROKER, str(node)) for node in stage.nodes(self.brokers)]
        for topic in self.topics:
            stage.verbs.partition(topic, 0)
        if not resources:
            stage.refuse("set_config needs topics or brokers")
        known = stage.verbs.settled.image.configs
        before = {
            resource: {key: known.get(resource, {}).get(key) for key in self.config}
            for resource in resources
        }
        for kind, name in resources:
            refused = _refused(stage, f"set_config of {name}")
            stage.verbs.admin.set_configs(kind, name, self.config, refused)

        def undo() -> None:
            for (kind, name), configs in before.items():
                refused = _refused(stage, f"set_config of {name} back")
                stage.verbs.admin.set_configs(kind, name, configs, refused)

        return undo


@action("add_broker", short="id")
class AddBroker(Action, frozen=True):
    """Add a new broker, with an empty disk, to the running cluster."""

    id: Annotated[int, Whole(0, 999)]
    rack: Annotated[str | None, text()] = None

    def do(self, stage: Stage) -> None:
        stage.verbs.add_broker(self.id, self.rack)


@action("remove_broker", short="broker")
class RemoveBroker(Action, frozen=True):
    """Unregister a broker that is down, for good.  Its replicas stay assigned until reassigned."""

    broker: Annotated[Targets, TARGETS]

    def do(self, stage: Stage) -> None:
        for broker_id in stage.nodes(self.broker):
            stage.verbs.remove_broker(broker_id, _refused(stage, "remove_broker"))
