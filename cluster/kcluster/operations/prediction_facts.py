"""The state of a cluster at this moment, as far as predictions depend on it.

Owns: filling ClusterState.  Never: predicts (prediction.py does), changes anything.
Kafka: no counterpart; no single process knows all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.controller.node_view import ControllerNodeView
from kcluster.deaths import ProcessState
from kcluster.metadata.image import TopicImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.operations.controller import controller_id
from kcluster.operations.errors import ClusterError
from kcluster.operations.prediction import ClusterState, PartitionState
from kcluster.protocol.names import has_internal_prefix
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher


def cluster_state(plan: Plan, dispatcher: Dispatcher) -> ClusterState:
    """The state at this moment.  To be called between two dispatches.  Raises ClusterError while no
    controller is active, because none could notice a loss."""
    process = dispatcher.processes[controller_id(dispatcher)]
    node = process.controller
    if process.state is not ProcessState.UP or node is None:
        raise ClusterError("the controller does not run, so it misses no broker and elects nobody")
    image = node.image
    active = [broker for broker in image.brokers if image.is_active(broker)]
    config = plan.topology.broker_config(next(iter(plan.addresses)))
    return ClusterState(
        active=frozenset(active),
        missed_soon=tuple(broker for broker in active if _is_gone(dispatcher, broker)),
        partitions=tuple(_partitions(plan, dispatcher, node)),
        session_timeout_ms=config.broker_session_timeout_ms,
        elr_enabled=image.elr_enabled,
    )


def _is_gone(dispatcher: Dispatcher, broker: int) -> bool:
    """Whether the controller receives no heartbeats of a broker."""
    process = dispatcher.processes.get(broker)
    return (
        process is None
        or process.state is not ProcessState.UP
        or dispatcher.fabric.is_cut(broker, controller_id(dispatcher))
    )


def _partitions(
    plan: Plan, dispatcher: Dispatcher, controller: ControllerNodeView
) -> Iterator[PartitionState]:
    moving = set(dispatcher.links_in_use())
    for topic in sorted(controller.image.topics.values(), key=lambda topic: topic.name):
        if not has_internal_prefix(topic.name):
            for found in topic.partitions:
                yield _partition(plan, controller, topic, found, moving)


def _partition(
    plan: Plan,
    controller: ControllerNodeView,
    topic: TopicImage,
    found: PartitionRegistration,
    moving: set[tuple[int, int]],
) -> PartitionState:
    key = (found.topic_id, found.partition)
    logs = {broker: plan.disks[broker].logs.get(key) for broker in found.replicas}
    partitions = controller.partitions
    return PartitionState(
        topic=topic.name,
        registration=found,
        min_isr=partitions.min_isr(topic.name),
        unclean=partitions.unclean_allowed(topic.name),
        log_ends={broker: log.log_end_offset for broker, log in logs.items() if log is not None},
        is_moving=any((found.leader, broker) in moving for broker in found.replicas),
    )
