"""When a cluster has settled after an operation: conditions on its state, and what is missing.

Owns: these conditions, and the text of what does not hold.  Never: waits (the drivers do), changes
anything.
Kafka: TestUtils.waitUntilMetadataIsPropagated and similar methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kcluster.deaths import ProcessState
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import NO_LEADER, PartitionRegistration
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
        """All brokers serve, none is shutting down, and every replica is in sync."""
        return next(self.unsettled(), None) is None

    def unsettled(self) -> Iterator[str]:
        """What is missing until all is in sync, one line each: brokers, then partitions."""
        dispatcher, image = self._dispatcher, self.image
        brokers = self._brokers()
        for broker_id in brokers:
            process, registration = dispatcher.processes[broker_id], image.brokers.get(broker_id)
            if process.state is not ProcessState.UP:
                yield f"broker {broker_id} is {process.state}"
            elif dispatcher.is_shutting_down(broker_id):
                yield f"broker {broker_id} is shutting down"
            elif registration is None:
                yield f"broker {broker_id} is not registered"
            elif registration.fenced:
                yield f"broker {broker_id} is fenced"
        for name, topic in image.topics.items():
            for partition in topic.partitions:
                if partition.leader == NO_LEADER:
                    yield (
                        f"{name}-{partition.partition} has no leader; ISR {list(partition.isr)},"
                        f" ELR {list(partition.elr)}"
                    )
        if not self.has_applied_all():
            yield from self._behind_in_metadata()
        for broker_id in brokers:
            if not self.is_in_sync(broker_id):
                yield from self._out_of_sync(broker_id)

    def _behind_in_metadata(self) -> Iterator[str]:
        newest = self.image.offset
        for broker_id in self._brokers():
            node: Any = self._dispatcher.processes[broker_id].node
            if node is not None and node.image.offset < newest:
                applied = node.image.offset
                yield f"broker {broker_id} has applied metadata up to {applied} of {newest}"

    def _out_of_sync(self, broker_id: int) -> Iterator[str]:
        for name, topic in self.image.topics.items():
            for partition in topic.partitions:
                if broker_id in partition.replicas and broker_id not in partition.isr:
                    yield (
                        f"{name}-{partition.partition}: broker {broker_id} is not in the ISR"
                        f" {list(partition.isr)}{self._progress(partition, broker_id)}"
                    )

    def _progress(self, partition: PartitionRegistration, broker_id: int) -> str:
        """How far a replica has come, and the ISR that its leader has proposed meanwhile."""
        key = (partition.topic_id, partition.partition)
        processes = self._dispatcher.processes
        leading: Any = processes[partition.leader].node if partition.leader >= 0 else None
        following: Any = processes[broker_id].node
        leader = None if leading is None else leading.replicas.get(*key)
        follower = None if following is None else following.replicas.get(*key)
        text = ""
        if leader is not None and follower is not None:
            ends = follower.log.log_end_offset, leader.log.log_end_offset
            text = f"; its log ends at {ends[0]}, that of leader {partition.leader} at {ends[1]}"
        if leader is not None and leader.proposal is not None:
            proposed = list(leader.proposal.isr)
            text += f"; the leader's proposal of the ISR {proposed} has not been decided"
        return text

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
