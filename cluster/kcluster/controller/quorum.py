"""The quorum: DescribeQuorum 55 (v0-2), AddRaftVoter 80 (v0-1), RemoveRaftVoter 81 (v0),
UnregisterController 94 (v0).

Owns: each broker's place in the metadata log, with its times.  Never: replicates the log, which the
voters share (metadata_log.py). Kafka: KafkaRaftClient.handleDescribeQuorumRequest, LeaderState,
AddVoterHandler, RemoveVoterHandler, QuorumController.unregisterController; KIP-595, KIP-836,
KIP-853, KIP-1312.

DIFFERS: all brokers are observers, because none is a controller; the controller has no listener, so
the answer has no endpoints.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.controller.metadata_log import VOTERS
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import KRAFT_VERSION, METADATA_VERSION
from kcluster.protocol.names import CLUSTER_METADATA_TOPIC

CONTROLLER_LISTENER: Final = "CONTROLLER"
OBSERVER_SESSION_MS: Final = 300_000
"""The time after which a broker that does not fetch is forgotten. Kafka:
LeaderState.OBSERVER_SESSION_TIMEOUT_MS."""

FIRST_WITH_UNREGISTRATION: Final = 33
"""The first metadata.version (4.4-IV2) that allows controllers to be unregistered."""

NO_DIRECTORY: Final = bytes(16)


class Observer(Struct):
    """A broker's place in the metadata log."""

    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int = -1
    leader_end_offset: int = -1
    """The end of the log at the broker's last fetch."""


class Quorum:
    """The brokers as observers of the metadata log, and the quorum's fixed voters."""

    def __init__(self, metadata: MetadataPort) -> None:
        self.observers: dict[int, Observer] = {}
        """The brokers that have fetched the metadata log, by id."""
        self._metadata = metadata
        self._log = metadata.log
        self._records = metadata.log.records

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {
            "DescribeQuorumRequest": self.describe_quorum,
            "AddRaftVoterRequest": self.add_voter,
            "RemoveRaftVoterRequest": self.remove_voter,
            "UnregisterControllerRequest": self.unregister_controller,
        }

    def record_fetch(self, broker_id: int, offset: int, now_ms: int) -> None:
        """Record a broker's fetch from `offset` on: the broker has all earlier records."""
        observer = self.observers.get(broker_id)
        if observer is None:
            observer = self.observers[broker_id] = Observer(offset, now_ms)
        if offset >= len(self._records):
            observer.last_caught_up_ms = now_ms
        elif 0 < observer.leader_end_offset <= offset:
            # The broker has all records that the log had at its previous fetch.
            observer.last_caught_up_ms = max(observer.last_caught_up_ms, observer.last_fetch_ms)
        observer.log_end_offset, observer.last_fetch_ms = offset, now_ms
        observer.leader_end_offset = len(self._records)

    # ----------------------------------------------------------------------------- DescribeQuorum

    def describe_quorum(
        self, request: m.DescribeQuorumRequest, now_ms: int
    ) -> m.DescribeQuorumResponse:
        """Answer a request for partition 0 of __cluster_metadata alone.  In any other request each
        partition is unknown. Versions: v1 the times at which a replica last fetched and was last
        caught up (KIP-836), v2 directory ids and endpoints (KIP-853)."""
        requested = [
            (topic.topic_name, p.partition_index)
            for topic in request.topics
            for p in topic.partitions
        ]
        is_known = requested == [(CLUSTER_METADATA_TOPIC, 0)] and len(request.topics) == 1
        response = m.DescribeQuorumResponse(error_message="")
        for topic in request.topics:
            partitions = [
                self._metadata_partition(now_ms) if is_known else _unknown(p.partition_index)
                for p in topic.partitions
            ]
            response.topics.append(
                m.DescribeQuorumResponse.TopicData(
                    topic_name=topic.topic_name, partitions=partitions
                )
            )
        if is_known:
            response.nodes = [m.DescribeQuorumResponse.Node(node_id=voter) for voter in VOTERS]
        return response

    def _metadata_partition(self, now_ms: int) -> m.DescribeQuorumResponse.PartitionData:
        end_offset = len(self._records)
        for broker_id, observer in list(self.observers.items()):
            if now_ms - observer.last_fetch_ms >= OBSERVER_SESSION_MS:
                del self.observers[broker_id]
        return m.DescribeQuorumResponse.PartitionData(
            partition_index=0,
            error_message="",
            leader_id=self._log.leader,
            leader_epoch=self._log.epoch,
            high_watermark=end_offset,
            current_voters=[
                m.DescribeQuorumResponse.ReplicaState(
                    replica_id=voter,
                    replica_directory_id=self._voter_directory(voter),
                    log_end_offset=end_offset,
                    last_fetch_timestamp=now_ms,
                    last_caught_up_timestamp=now_ms,
                )
                for voter in VOTERS
            ],
            observers=[
                m.DescribeQuorumResponse.ReplicaState(
                    replica_id=broker_id,
                    replica_directory_id=self._directory(broker_id),
                    log_end_offset=observer.log_end_offset,
                    last_fetch_timestamp=observer.last_fetch_ms,
                    last_caught_up_timestamp=observer.last_caught_up_ms,
                )
                for broker_id, observer in sorted(self.observers.items())
            ],
        )

    def _voter_directory(self, voter: int) -> bytes:
        """The directory id of a voter; unknown in a fixed quorum (kraft.version 0)."""
        return self._directory(voter) if self._is_reconfigurable() else NO_DIRECTORY

    def _directory(self, node_id: int) -> bytes:
        """The id of a node's metadata log directory: 16 bytes, always the same for a node."""
        import hashlib  # OpenSSL takes a fiftieth of the start, and few clusters need it

        return hashlib.md5(
            f"{self._metadata.cluster_id}/{node_id}".encode(), usedforsecurity=False
        ).digest()

    def _is_reconfigurable(self) -> bool:
        return self._metadata.image.features.get(KRAFT_VERSION, 0) >= 1

    # ------------------------------------------------------------------------------------- voters

    def add_voter(self, request: m.AddRaftVoterRequest, _now_ms: int) -> m.AddRaftVoterResponse:
        """Refuse, after 4.4.0's checks in their order.  A new voter cannot be reached, as no other
        controller runs."""
        error, message = self._voter_problem(request, "Add")
        if error is ErrorCode.NONE and CONTROLLER_LISTENER not in [
            x.name for x in request.listeners
        ]:
            error = ErrorCode.INVALID_REQUEST
            message = (
                "Add voter request didn't include the endpoint for the default listener "
                f"{CONTROLLER_LISTENER}"
            )
        elif error is ErrorCode.NONE and not self._is_reconfigurable():
            error = ErrorCode.UNSUPPORTED_VERSION
            message = "Cluster doesn't support adding voter because the kraft.version feature is 0"
        elif error is ErrorCode.NONE and request.voter_id in VOTERS:
            error = ErrorCode.DUPLICATE_VOTER
            message = f"Voter {request.voter_id} is already part of the set of voters"
        elif error is ErrorCode.NONE:
            error = ErrorCode.REQUEST_TIMED_OUT
            message = f"Aborted add voter operation: voter {request.voter_id} cannot be reached"
        return m.AddRaftVoterResponse(error_code=error, error_message=message)

    def remove_voter(
        self, request: m.RemoveRaftVoterRequest, _now_ms: int
    ) -> m.RemoveRaftVoterResponse:
        """Refuse, after 4.4.0's checks in their order; the last one finds no such voter."""
        error, message = self._voter_problem(request, "Remove")
        if error is ErrorCode.NONE and not self._is_reconfigurable():
            error = ErrorCode.UNSUPPORTED_VERSION
            message = (
                "Cluster doesn't support removing voter because the kraft.version feature is 0"
            )
        elif error is ErrorCode.NONE:
            error = ErrorCode.VOTER_NOT_FOUND
            message = f"Cannot remove voter {request.voter_id} from the set of voters"
        return m.RemoveRaftVoterResponse(error_code=error, error_message=message)

    def unregister_controller(
        self, request: m.UnregisterControllerRequest, _now_ms: int
    ) -> m.UnregisterControllerResponse:
        """Refuse for the active controller, at a metadata.version without the record, and for a
        controller that is not registered.  The other voters run, so they register again at once, as
        in Kafka; nothing changes."""
        error, message = ErrorCode.NONE, None
        if request.controller_id == self._log.leader:
            error = ErrorCode.INVALID_REQUEST
            message = "Controller cannot unregister itself while it is active."
        elif self._metadata.image.features[METADATA_VERSION] < FIRST_WITH_UNREGISTRATION:
            error = ErrorCode.UNSUPPORTED_VERSION
            message = "The current MetadataVersion is too old to support controller unregistration."
        elif request.controller_id not in VOTERS:
            error = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
            message = f"Controller ID {request.controller_id} is not currently registered."
        return m.UnregisterControllerResponse(error_code=error, error_message=message)

    def _voter_problem(
        self, request: m.AddRaftVoterRequest | m.RemoveRaftVoterRequest, verb: str
    ) -> tuple[ErrorCode, str | None]:
        own = self._metadata.cluster_id
        if request.cluster_id is not None and request.cluster_id != own:
            text = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{own}"'
            return ErrorCode.INCONSISTENT_CLUSTER_ID, text
        if request.voter_id < 0 or request.voter_directory_id == NO_DIRECTORY:
            return ErrorCode.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter"
        return ErrorCode.NONE, None


def _unknown(partition: int) -> m.DescribeQuorumResponse.PartitionData:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return m.DescribeQuorumResponse.PartitionData(
        partition_index=partition, error_code=error, error_message=error.text
    )
