"""The controller's state: what all of the cluster should come to know.

Owns: the way from a dispatcher to the active controller, or to the last one.  Never: changes
anything, shows it to users (status.py does).  Kafka: kafka-metadata-shell.
"""

from __future__ import annotations

from kcluster.controller.metadata_log import MetadataLog, PendingTopics
from kcluster.controller.node_view import ControllerNodeView
from kcluster.controller.partitions.partition_index import PartitionIndex
from kcluster.metadata.image import MetadataImage
from kcluster.runtime.dispatch import Dispatcher


def controller_id(dispatcher: Dispatcher) -> int:
    """The id of the controller's node."""
    return next(iter(dispatcher.processes))


def controller_image(dispatcher: Dispatcher) -> MetadataImage:
    """The newest metadata; while no controller is active, the newest that the last one had."""
    return _controller(dispatcher).image


def partition_index(dispatcher: Dispatcher) -> PartitionIndex:
    """The partitions in this metadata, by broker."""
    return _controller(dispatcher).partitions.index


def metadata_log(dispatcher: Dispatcher) -> MetadataLog:
    """The records from which the image was built, and the other state that outlives a
    controller."""
    return _controller(dispatcher).log


def _controller(dispatcher: Dispatcher) -> ControllerNodeView:
    node = dispatcher.processes[controller_id(dispatcher)].last_controller
    assert node is not None, "a controller has started"
    return node


def pending_topics(dispatcher: Dispatcher) -> PendingTopics:
    """The topology's topics that are still to be created."""
    pending = metadata_log(dispatcher).pending_topics
    assert pending is not None, "a controller has started"
    return pending
