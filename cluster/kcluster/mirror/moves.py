"""Giving a partition of a real Kafka the leader that a user chooses.

Owns: the requests for it, in their order.  Never: waits for the leader (the verb does).
Kafka: kafka-reassign-partitions with the same replicas in another order, kafka-leader-election.

Kafka elects the first replica that is in sync.  So the wanted leader becomes the first replica, is
elected, and the replicas get their old order back: no later election prefers it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcluster.mirror.changes import MOVE
from kcluster.mirror.metadata_state import MetadataState
from kcluster.mirror.requests import ControllerRequests
from kcluster.operations.admin import TIMEOUT_MS
from kcluster.operations.asking import elect_request
from kcluster.protocol import messages as m


def move_leader(
    requests: ControllerRequests, state: MetadataState, topic: str, number: int, leader: int
) -> None:
    """Make `leader` the leader of a partition; called in a greenlet."""
    partition = state.image.partition(topic, number)
    if partition is None or leader not in partition.replicas:
        return
    state.known.requested[topic, number] = MOVE
    answered = m.AlterPartitionReassignmentsResponse
    others = [each for each in partition.replicas if each != leader]
    requests.ask(_in_order(topic, number, [leader, *others]), answered)
    requests.ask(elect_request(topic, number, unclean=False), m.ElectLeadersResponse)
    requests.ask(_in_order(topic, number, partition.replicas), answered)


def _in_order(
    topic: str, number: int, replicas: Sequence[int]
) -> m.AlterPartitionReassignmentsRequest:
    ask = m.AlterPartitionReassignmentsRequest
    one = ask.ReassignablePartition(partition_index=number, replicas=list(replicas))
    topics = [ask.ReassignableTopic(name=topic, partitions=[one])]
    return ask(timeout_ms=TIMEOUT_MS, topics=topics)
