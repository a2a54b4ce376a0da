"""The topology's topics: created as soon as the brokers that should hold them are there.

Owns: which topics of the topology are still to be created.  Never: how (topics.py).
Kafka has nothing like it: there an operator waits, then creates them.

All expected brokers unfenced: at once.  Otherwise, after the first session timeout, each topic as
soon as those that came can hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcluster.config.topology.model import TopicSpec
from kcluster.controller.topics.topics import create_topics
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode


class Bootstrap:
    """What is still to be created, and for whom to wait."""

    __slots__ = ("expected", "impatient", "pending")

    def __init__(self, pending: tuple[TopicSpec, ...], expected: tuple[int, ...]) -> None:
        self.pending = pending
        self.expected = expected
        self.impatient = False
        """The first session timeout has passed."""


def start(node: ControllerNode, now_ms: int) -> None:
    """Do not wait for missing brokers longer than a session timeout."""

    def lose_patience(at_ms: int) -> None:
        node.bootstrap.impatient = True
        _create(node, at_ms)

    if node.bootstrap.pending:
        node.timers.set("bootstrap", now_ms + node.sessions.timeout_ms, lose_patience)


def on_unfenced(node: ControllerNode, now_ms: int) -> None:
    """A broker has become active."""
    waiting = node.bootstrap
    if waiting.pending and (waiting.impatient or all(map(node.image.is_active, waiting.expected))):
        _create(node, now_ms)


def _create(node: ControllerNode, now_ms: int) -> None:
    pending = node.bootstrap.pending
    request = m.CreateTopicsRequest(topics=[_creatable(spec) for spec in pending])
    response = create_topics(node, request, now_ms)
    failed = {topic.name for topic in response.topics if topic.error_code}
    node.bootstrap.pending = tuple(spec for spec in pending if spec.name in failed)
    if not node.bootstrap.pending:
        node.timers.cancel("bootstrap")


def _creatable(spec: TopicSpec) -> Any:
    by_hand = spec.assignment or ()
    return m.CreateTopicsRequest.CreatableTopic(
        name=spec.name,
        num_partitions=-1 if by_hand else spec.partitions,
        replication_factor=-1 if by_hand else spec.replication_factor,
        assignments=[
            m.CreateTopicsRequest.CreatableReplicaAssignment(
                partition_index=partition, broker_ids=list(replicas)
            )
            for partition, replicas in enumerate(by_hand)
        ],
        configs=[
            m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=str(value))
            for name, value in spec.config.items()
        ],
    )
