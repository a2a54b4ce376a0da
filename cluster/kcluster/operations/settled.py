"""The settled state of a cluster after an operation: conditions, and the reasons why they do not
hold.  Owns: these conditions.  Never: waits (the drivers do), changes anything, words a reason
(unrest.py).  Kafka: TestUtils.waitUntilMetadataIsPropagated and similar methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kcluster.controller.outcome import ApiError
from kcluster.controller.partitions.partition_index import PartitionIndex
from kcluster.deaths import ProcessState
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import NO_LEADER, PartitionRegistration
from kcluster.operations.controller import (
    controller_id,
    controller_image,
    partition_index,
    pending_topics,
)
from kcluster.operations.errors import ClusterError
from kcluster.operations.unrest import (
    BrokerNotUp,
    BrokerOfEarlierLife,
    BrokerShutsDown,
    BrokerStaysFenced,
    BrokerUnaware,
    BrokerUnregistered,
    MetadataBehind,
    NoLeader,
    OutsideIsr,
    Unrest,
)
from kcluster.runtime.dispatch import Dispatcher

MAX_REFUSED_SHOWN: Final = 10
"""The most topics that an error lists because they could not be created."""


class Settled:
    """Conditions to test between two dispatches, without side effects."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.controller_id = controller_id(dispatcher)

    @property
    def image(self) -> MetadataImage:
        """The controller's metadata."""
        return controller_image(self._dispatcher)

    @property
    def _index(self) -> PartitionIndex:
        """The partitions in the controller's metadata, by broker.  Conditions are tested after each
        dispatch, so they must not go through all partitions."""
        return partition_index(self._dispatcher)

    def has_applied_all(self) -> bool:
        """Whether every broker that runs and is reachable has applied the newest metadata."""
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
            node = process.broker
            if node is None or node.image.offset < newest:
                return False
        return True

    def has_started(self) -> bool:
        """Whether all brokers serve, and every topic of the topology exists.  ClusterError if all
        brokers run, and a topic was refused."""
        if not self.all_serving():
            return False
        pending = pending_topics(self._dispatcher)
        if pending.refused:
            raise ClusterError(_refusal(pending.refused))
        return not pending.topics

    def all_serving(self) -> bool:
        """Whether every broker runs and is unfenced, every partition has a leader, and all brokers
        know it."""
        return (
            all(map(self.is_running, self.brokers()))
            and not self._index.leaderless
            and self.has_applied_all()
        )

    def all_in_sync(self) -> bool:
        """Whether all brokers serve, none is shutting down, and every replica is in sync."""
        return next(self.unsettled(), None) is None

    def unsettled(self) -> Iterator[Unrest]:
        """The reasons why not all brokers serve or not every replica is in sync: brokers, then
        partitions."""
        image, brokers = self.image, self.brokers()
        for broker_id in brokers:
            unrest = self._unrest_of(broker_id)
            if unrest is not None:
                yield unrest
        for name, topic in image.topics.items() if self._index.leaderless else ():
            for one in topic.partitions:
                if one.leader == NO_LEADER:
                    at = (name, one.partition)
                    yield NoLeader(partition=at, isr=list(one.isr), elr=list(one.elr))
        if not self.has_applied_all():
            yield from self._behind_in_metadata()
        for broker_id in brokers:
            if not self.is_in_sync(broker_id):
                yield from self._out_of_sync(broker_id)

    def _unrest_of(self, broker_id: int) -> Unrest | None:
        """The reason why a broker does not serve; None if it does."""
        process = self._dispatcher.processes[broker_id]
        registration = self.image.brokers.get(broker_id)
        if process.state is not ProcessState.UP:
            return BrokerNotUp(broker=broker_id, state=process.state)
        if self._dispatcher.is_shutting_down(broker_id):
            return BrokerShutsDown(broker=broker_id)
        if registration is None:
            return BrokerUnregistered(broker=broker_id)
        if registration.fenced:
            return BrokerStaysFenced(broker=broker_id)
        if not self.is_registered(broker_id):
            return BrokerOfEarlierLife(broker=broker_id)
        return None if process.accepts_clients else BrokerUnaware(broker=broker_id)

    def _behind_in_metadata(self) -> Iterator[Unrest]:
        newest = self.image.offset
        for broker_id in self.brokers():
            node = self._dispatcher.broker(broker_id)
            if node is not None and node.image.offset < newest:
                yield MetadataBehind(broker=broker_id, applied=node.image.offset, newest=newest)

    def _out_of_sync(self, broker_id: int) -> Iterator[Unrest]:
        for name, topic in self.image.topics.items():
            for partition in topic.partitions:
                if broker_id in partition.replicas and broker_id not in partition.isr:
                    yield self._outside(name, partition, broker_id)

    def _outside(self, topic: str, partition: PartitionRegistration, broker_id: int) -> OutsideIsr:
        """A replica that is not in sync: where its log and its leader's end, and the ISR that the
        leader has proposed since."""
        key = (partition.topic_id, partition.partition)
        leader = self._dispatcher.replica(partition.leader, *key)
        follower = self._dispatcher.replica(broker_id, *key)
        found = OutsideIsr(
            broker=broker_id, partition=(topic, partition.partition), isr=list(partition.isr)
        )
        if leader is not None and follower is not None:
            found = replace(
                found,
                leader=partition.leader,
                log_end_offset=follower.log.log_end_offset,
                leader_end_offset=leader.log.log_end_offset,
            )
        if leader is not None and leader.proposal is not None:
            found = replace(found, proposed=list(leader.proposal.isr))
        return found

    def brokers(self) -> list[int]:
        """All brokers that have not been removed, up or not."""
        return [
            process.node_id
            for process in self._dispatcher.processes.values()
            if process.node_id != self.controller_id and not process.is_removed
        ]

    def is_settled(self) -> bool:
        """Whether no broker is shutting down, the controller has noticed the state of each, and
        leaders and ISRs no longer change."""
        is_leaving = any(map(self._dispatcher.is_shutting_down, self.brokers()))
        return not is_leaving and self.has_noticed() and self.are_in_sync()

    def has_noticed(self) -> bool:
        """Whether the controller has noticed the state of each broker: a broker that runs and
        reaches it is unfenced, any other is fenced and leads nothing.  A leader must not count a
        replica as in sync if that lacks records and cannot fetch them.  False while no controller
        is active."""
        if self.is_down(self.controller_id):
            return True
        return (
            all(map(self._is_seen_as_it_is, self.brokers()))
            and not (self._dispatcher.fabric.has_cuts and self._trusts_a_replica_behind_a_cut())
            and self.has_applied_all()
        )

    def _trusts_a_replica_behind_a_cut(self) -> bool:
        return any(
            self._is_cut(partition.leader, member) and self._is_behind(partition, member)
            for topic in self.image.topics.values()
            for partition in topic.partitions
            for member in partition.isr
        )

    def _is_seen_as_it_is(self, broker_id: int) -> bool:
        process = self._dispatcher.processes[broker_id]
        if process.state is ProcessState.UP and not self._is_cut(self.controller_id, broker_id):
            return self.is_registered(broker_id)
        return not self.is_active(broker_id)

    def _is_cut(self, a: int, b: int) -> bool:
        """Whether either direction of a link is cut."""
        fabric = self._dispatcher.fabric
        return a != b and (fabric.is_cut(a, b) or fabric.is_cut(b, a))

    def _is_behind(self, partition: PartitionRegistration, member: int) -> bool:
        """Whether a replica's log is shorter than the leader's."""
        ends = []
        for broker_id in (partition.leader, member):
            node = self._dispatcher.broker(broker_id)
            if node is None:
                return False
            replica = node.replicas.get(partition.topic_id, partition.partition)
            ends.append(0 if replica is None else replica.log.log_end_offset)
        return ends[1] < ends[0]

    def is_running(self, broker_id: int) -> bool:
        """Whether the broker's process is up, and the broker is unfenced and serves clients."""
        process = self._dispatcher.processes[broker_id]
        is_open = process.state is ProcessState.UP and process.accepts_clients
        return is_open and self.is_registered(broker_id)

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker is unfenced, or leads a partition."""
        registration = self.image.brokers.get(broker_id)
        # A broker leaves the ISRs of many partitions in several steps.
        leads_any = bool(self._index.led_by.get(broker_id))
        return leads_any or (registration is not None and not registration.fenced)

    def is_registered(self, broker_id: int) -> bool:
        """Whether the broker is unfenced in its current life."""
        node = self._dispatcher.broker(broker_id)
        registration = self.image.brokers.get(broker_id)
        return (
            node is not None
            and registration is not None
            and registration.epoch == node.epoch
            and not registration.fenced
        )

    def are_in_sync(self) -> bool:
        """Whether every unfenced broker is in the ISR of each partition that has it as a replica. A
        partition without a leader does not count, because no leader can admit the broker."""
        image, out_of_sync = self.image, self._index.out_of_sync
        for broker_id in filter(self.is_registered, self.brokers()):
            for topic_id, number in out_of_sync.get(broker_id, ()):
                leader = image.topics[image.topic_names[topic_id]].partitions[number].leader
                if leader >= 0 and not self._is_cut(leader, broker_id):
                    return False
        return True

    def is_down(self, broker_id: int) -> bool:
        """Whether the broker's process has ended."""
        return self._dispatcher.processes[broker_id].state is ProcessState.DOWN

    def is_without(self, broker_id: int) -> bool:
        """Whether the controller has fenced the broker, it leads no partition, and the other
        brokers know it.  False while no controller is active."""
        if self.is_down(self.controller_id):
            return True
        return not self.is_active(broker_id) and self.has_applied_all()

    def is_serving(self, broker_id: int) -> bool:
        """Whether the broker is unfenced in its current life and serves clients, and all brokers
        know it."""
        is_open = self._dispatcher.processes[broker_id].accepts_clients
        return is_open and self.is_registered(broker_id) and self.has_applied_all()

    def has_come_up(self, broker_id: int) -> bool:
        """Whether a broker that was started serves; ClusterError if it never will."""
        return self.is_serving(broker_id)

    def is_in_sync(self, broker_id: int) -> bool:
        """Whether the broker is in the ISR of every partition that has it as a replica."""
        return not self._index.out_of_sync.get(broker_id)

    def is_led_by(self, topic: str, partition: int, broker_id: int) -> bool:
        """Whether this broker leads the partition, and all brokers know it."""
        registration = self.image.partition(topic, partition)
        return (
            registration is not None and registration.leader == broker_id and self.has_applied_all()
        )


def _refusal(refused: Mapping[str, ApiError]) -> str:
    """The topics of the topology that could not be created, with the reasons: the first few, one
    line each."""
    lines = [
        f"topic {name} of the topology cannot be created: {error.code.name}"
        + (f": {error.message}" if error.message else "")
        for name, error in refused.items()
    ]
    more = len(lines) - MAX_REFUSED_SHOWN
    return "\n".join(lines[:MAX_REFUSED_SHOWN] + [f"and {more} more"] * (more > 0))
