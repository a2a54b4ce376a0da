"""When a cluster has settled after an operation: conditions on its state.

Owns: these conditions.  Never: waits (the drivers do), changes anything.
Kafka: TestUtils.waitUntilMetadataIsPropagated and similar methods.
"""

from __future__ import annotations

from typing import Any

from kcluster.deaths import ProcessState
from kcluster.metadata.image import MetadataImage
from kcluster.operations.status import controller_id, controller_image
from kcluster.runtime.dispatch import Dispatcher


class Settled:
    """Conditions to test between two dispatches, without side effects."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.controller_id = controller_id(dispatcher)

    @property
    def image(self) -> MetadataImage:
        """The controller's metadata."""
        return controller_image(self._dispatcher)

    def has_applied_all(self) -> bool:
        """Every broker that runs and is reachable has applied the newest metadata."""
        newest = self.image.offset
        fabric = self._dispatcher.fabric
        for process in self._dispatcher.processes.values():
            node_id = process.node_id
            if process.state is not ProcessState.UP or node_id == self.controller_id:
                continue
            if fabric.is_cut(self.controller_id, node_id) or fabric.is_cut(
                node_id, self.controller_id
            ):
                continue
            node: Any = process.node
            if node.image.offset < newest:
                return False
        return True

    def all_serving(self) -> bool:
        """Every broker is unfenced, every partition has a leader, and all brokers know."""
        image = self.image
        return (
            all(x in image.brokers and not image.brokers[x].fenced for x in self._brokers())
            and all(
                partition.leader >= 0
                for topic in image.topics.values()
                for partition in topic.partitions
            )
            and self.has_applied_all()
        )

    def all_in_sync(self) -> bool:
        """All brokers serve, and every replica is in sync."""
        return self.all_serving() and all(map(self.is_in_sync, self._brokers()))

    def _brokers(self) -> list[int]:
        return [
            process.node_id
            for process in self._dispatcher.processes.values()
            if process.node_id != self.controller_id and not process.is_removed
        ]

    def is_down(self, broker_id: int) -> bool:
        """The broker's process has ended."""
        return self._dispatcher.processes[broker_id].state is ProcessState.DOWN

    def is_without(self, broker_id: int) -> bool:
        """The controller has fenced the broker, it leads no partition, and the others know."""
        image = self.image
        registration = image.brokers.get(broker_id)
        return (
            (registration is None or registration.fenced)
            and not any(
                partition.leader == broker_id
                for topic in image.topics.values()
                for partition in topic.partitions
            )
            and self.has_applied_all()
        )

    def is_serving(self, broker_id: int) -> bool:
        """The broker is unfenced in its current life, and all brokers know."""
        node: Any = self._dispatcher.processes[broker_id].node
        registration = self.image.brokers.get(broker_id)
        return (
            node is not None
            and registration is not None
            and registration.epoch == node.epoch
            and not registration.fenced
            and self.has_applied_all()
        )

    def is_in_sync(self, broker_id: int) -> bool:
        """The broker is in the ISR of every partition that has it as a replica."""
        return all(
            broker_id in partition.isr
            for topic in self.image.topics.values()
            for partition in topic.partitions
            if broker_id in partition.replicas
        )

    def is_led_by(self, topic: str, partition: int, broker_id: int) -> bool:
        """The partition's leader is this broker, and all brokers know."""
        registration = self.image.partition(topic, partition)
        return (
            registration is not None and registration.leader == broker_id and self.has_applied_all()
        )
