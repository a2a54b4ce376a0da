"""DescribeQuorum 55 (v0-2), AddRaftVoter 80 (v0-1), RemoveRaftVoter 81 (v0): who keeps the
metadata log.

Owns: how far each broker has read the log and when.  Never: replicates it: the voters share one
(metadata_log.py), and one of them is active.
Kafka: KafkaRaftClient.handleDescribeQuorumRequest, LeaderState, AddVoterHandler,
RemoveVoterHandler; KIP-595, KIP-836, KIP-853.

DIFFERS: brokers are observers here, for none is a controller; the controller has no listener, so
v2 names none of its endpoints.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kcluster.controller.metadata_log import VOTERS
from kcluster.controller.registry import answers
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import KRAFT_VERSION
from kcluster.protocol.names import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

CONTROLLER_LISTENER: Final = "CONTROLLER"
OBSERVER_SESSION_MS: Final = 300_000
"""Who has not fetched for so long is forgotten.  Kafka: LeaderState.OBSERVER_SESSION_TIMEOUT_MS."""

NO_DIRECTORY: Final = bytes(16)


class Observer(Struct):
    """How far a broker has read the metadata log."""

    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int = -1
    leader_end_offset: int = -1
    """End of the log when it last fetched."""


def record_fetch(node: ControllerNode, broker_id: int, offset: int, now_ms: int) -> None:
    """A broker that fetches from `offset` on has everything before it."""
    seen = node.observers.get(broker_id)
    if seen is None:
        seen = node.observers[broker_id] = Observer(offset, now_ms)
    if offset >= node.end_offset:
        seen.last_caught_up_ms = now_ms
    elif 0 < seen.leader_end_offset <= offset:
        # It has all that there was when it fetched before.
        seen.last_caught_up_ms = max(seen.last_caught_up_ms, seen.last_fetch_ms)
    seen.log_end_offset, seen.last_fetch_ms = offset, now_ms
    seen.leader_end_offset = node.end_offset


# ----------------------------------------------------------------------------- DescribeQuorum


@answers("DescribeQuorumRequest")
def describe_quorum(node: ControllerNode, request: Any, now_ms: int) -> Any:
    """Behaviour: partition 0 of __cluster_metadata alone is answered; anything more, or else, is
    an unknown partition, each.  Versions: v1 when a replica last fetched and last was caught up
    (KIP-836), v2 directory ids and endpoints (KIP-853)."""
    asked = [(topic.topic_name, p.partition_index) for topic in request.topics
             for p in topic.partitions]  # fmt: skip
    is_known = asked == [(CLUSTER_METADATA_TOPIC, 0)] and len(request.topics) == 1
    response = m.DescribeQuorumResponse(error_message="")
    for topic in request.topics:
        partitions = [
            _metadata_partition(node, now_ms) if is_known else _unknown(p.partition_index)
            for p in topic.partitions
        ]
        response.topics.append(
            m.DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=partitions)
        )
    if is_known:
        response.nodes = [m.DescribeQuorumResponse.Node(node_id=voter) for voter in VOTERS]
    return response


def _unknown(partition: int) -> Any:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return m.DescribeQuorumResponse.PartitionData(
        partition_index=partition, error_code=error, error_message=error.text
    )


def _metadata_partition(node: ControllerNode, now_ms: int) -> Any:
    end_offset = node.end_offset
    for broker_id, seen in list(node.observers.items()):
        if now_ms - seen.last_fetch_ms >= OBSERVER_SESSION_MS:
            del node.observers[broker_id]
    return m.DescribeQuorumResponse.PartitionData(
        partition_index=0,
        error_message="",
        leader_id=node.log.leader,
        leader_epoch=node.log.epoch,
        high_watermark=end_offset,
        current_voters=[
            m.DescribeQuorumResponse.ReplicaState(
                replica_id=voter,
                replica_directory_id=_voter_directory(node, voter),
                log_end_offset=end_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for voter in VOTERS
        ],
        observers=[
            m.DescribeQuorumResponse.ReplicaState(
                replica_id=broker_id,
                replica_directory_id=_directory(node, broker_id),
                log_end_offset=seen.log_end_offset,
                last_fetch_timestamp=seen.last_fetch_ms,
                last_caught_up_timestamp=seen.last_caught_up_ms,
            )
            for broker_id, seen in sorted(node.observers.items())
        ],
    )


def _voter_directory(node: ControllerNode, voter: int) -> bytes:
    """A quorum that is fixed (kraft.version 0) knows no directories of its voters."""
    return _directory(node, voter) if _is_reconfigurable(node) else NO_DIRECTORY


def _directory(node: ControllerNode, node_id: int) -> bytes:
    """16 bytes, always the same for a node: the id of its metadata log's directory."""
    return hashlib.md5(f"{node.cluster_id}/{node_id}".encode(), usedforsecurity=False).digest()


def _is_reconfigurable(node: ControllerNode) -> bool:
    return node.image.features.get(KRAFT_VERSION, 0) >= 1


# ------------------------------------------------------------------------------------- voters


@answers("AddRaftVoterRequest")
def add_voter(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: refused, with 4.3.1's reasons in their order; a voter that would be new cannot be
    reached, for no other controller runs."""
    error, message = _voter_problem(node, request, "Add")
    if error is ErrorCode.NONE and CONTROLLER_LISTENER not in [x.name for x in request.listeners]:
        error = ErrorCode.INVALID_REQUEST
        message = (
            "Add voter request didn't include the endpoint for the default listener "
            f"{CONTROLLER_LISTENER}"
        )
    elif error is ErrorCode.NONE and not _is_reconfigurable(node):
        error = ErrorCode.UNSUPPORTED_VERSION
        message = "Cluster doesn't support adding voter because the kraft.version feature is 0"
    elif error is ErrorCode.NONE and request.voter_id in VOTERS:
        error = ErrorCode.DUPLICATE_VOTER
        message = f"Voter {request.voter_id} is already part of the set of voters"
    elif error is ErrorCode.NONE:
        error = ErrorCode.REQUEST_TIMED_OUT
        message = f"Aborted add voter operation: voter {request.voter_id} cannot be reached"
    return m.AddRaftVoterResponse(error_code=error, error_message=message)


@answers("RemoveRaftVoterRequest")
def remove_voter(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: as `add_voter`; the last voter stays, and is not found."""
    error, message = _voter_problem(node, request, "Remove")
    if error is ErrorCode.NONE and not _is_reconfigurable(node):
        error = ErrorCode.UNSUPPORTED_VERSION
        message = "Cluster doesn't support removing voter because the kraft.version feature is 0"
    elif error is ErrorCode.NONE:
        error = ErrorCode.VOTER_NOT_FOUND
        message = f"Cannot remove voter {request.voter_id} from the set of voters"
    return m.RemoveRaftVoterResponse(error_code=error, error_message=message)


def _voter_problem(node: ControllerNode, request: Any, verb: str) -> tuple[ErrorCode, str | None]:
    if request.cluster_id is not None and request.cluster_id != node.cluster_id:
        text = (
            f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{node.cluster_id}"'
        )
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    if request.voter_id < 0 or request.voter_directory_id == NO_DIRECTORY:
        return ErrorCode.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter"
    return ErrorCode.NONE, None
