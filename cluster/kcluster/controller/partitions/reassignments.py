"""Moving partitions: AlterPartitionReassignments (API 45, v0-1), ListPartitionReassignments (46,
v0).

Owns: the start and the cancelling of reassignments, and the list of reassignments in progress.
Never: changes replicas (reassigning.py), decides on completion or the leader (elections.py). Kafka:
ReplicationControlManager.alterPartitionReassignments, listPartitionReassignments; KIP-455, KIP-860
(a request may forbid changes of the replication factor).
"""

from __future__ import annotations

from msgspec.structs import replace

from kcluster.contract import NoteId
from kcluster.controller.outcome import ApiError
from kcluster.controller.partitions.elections import Election, ElectionMode
from kcluster.controller.partitions.leadership import Change
from kcluster.controller.partitions.partitions import Partitions
from kcluster.controller.partitions.placement import check_manual
from kcluster.controller.partitions.reassigning import Assignment, is_reassigning, reverted, towards
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.partitions import ReassignmentCancelled, ReassignmentStarted
from kcluster.events.reasons import ElectionKind, ReassignmentReverted, Requested
from kcluster.metadata.image import TopicImage
from kcluster.metadata.records import PartitionRecord, PartitionRegistration
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

_OK = ApiError(ErrorCode.NONE)

Records = dict[tuple[bytes, int], PartitionRecord]
"""Records by partition.  Each change starts from the partition before the request.  DIFFERS: if a
partition is named twice, only its last change is written.  Kafka writes both, so fields that the
last change leaves alone keep the values of the first."""


class Reassignments:
    """Moves of partitions to other brokers, started, cancelled and listed."""

    def __init__(self, metadata: MetadataPort, partitions: Partitions) -> None:
        self._metadata = metadata
        self._partitions = partitions

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {
            "AlterPartitionReassignmentsRequest": self.alter_partition_reassignments,
            "ListPartitionReassignmentsRequest": self.list_partition_reassignments,
        }

    # --------------------------------------------------------------------------------- alter

    def alter_partition_reassignments(
        self, request: m.AlterPartitionReassignmentsRequest, _now_ms: int
    ) -> m.AlterPartitionReassignmentsResponse:
        """Start or cancel reassignments; each partition succeeds or fails by itself.  `replicas`
        null cancels the reassignment in progress. Versions: v1 may forbid that the number of
        replicas changes (KIP-860)."""
        may_change_factor = request.allow_replication_factor_change
        answers = m.AlterPartitionReassignmentsResponse
        response = answers(allow_replication_factor_change=may_change_factor, error_message=None)
        records: Records = {}
        for topic in request.topics:
            answer = answers.ReassignableTopicResponse(name=topic.name)
            response.responses.append(answer)
            for requested in topic.partitions:
                error = self._alter_one(topic.name, requested, may_change_factor, records)
                answer.partitions.append(
                    answers.ReassignablePartitionResponse(
                        partition_index=requested.partition_index,
                        error_code=error.code,
                        error_message=error.message,
                    )
                )
        self._metadata.commit(list(records.values()))
        return response

    def _alter_one(
        self,
        topic: str,
        requested: m.AlterPartitionReassignmentsRequest.ReassignablePartition,
        may_change_factor: bool,
        records: Records,
    ) -> ApiError:
        image = self._metadata.image
        if topic not in image.topics:
            text = f"Unable to find a topic named {topic}."
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        partition = image.partition(topic, requested.partition_index)
        if partition is None:
            text = f"Unable to find partition {topic}:{requested.partition_index}."
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        if requested.replicas is None:
            return self._cancel(topic, partition, records)
        error = check_manual(requested.replicas, image.brokers, None)
        if error is None and not may_change_factor:
            error = _factor_changed(partition, len(requested.replicas))
        if error is not None:
            return error
        self._start(topic, partition, tuple(requested.replicas), records)
        return _OK

    def _start(
        self,
        topic: str,
        partition: PartitionRegistration,
        target: tuple[int, ...],
        records: Records,
    ) -> None:
        assignment = towards(partition, target)
        election = self._partitions.elect(
            topic, partition, ElectionMode.ONLINE, assignment=assignment
        )
        if election is None:
            return
        key = (partition.topic_id, partition.partition)
        causes = self._partitions.reassignments
        cause = self._note_started(topic, partition, target, election, causes.get(key))
        if is_reassigning(election.registration):
            causes[key] = cause
        change = Change(topic, partition, election, Requested(), cause)
        records[key] = self._partitions.record_of(change)

    def _note_started(
        self,
        topic: str,
        partition: PartitionRegistration,
        target: tuple[int, ...],
        election: Election,
        cause: NoteId | None,
    ) -> NoteId:
        after = election.registration
        event = ReassignmentStarted(
            topic=topic,
            partition=partition.partition,
            old_replicas=partition.replicas,
            replicas=target,
            partition_epoch=after.partition_epoch,
            adding=after.adding_replicas,
            removing=after.removing_replicas,
            replaced=is_reassigning(partition),
        )
        return self._metadata.note(event, cause)

    def _cancel(self, topic: str, partition: PartitionRegistration, records: Records) -> ApiError:
        if not is_reassigning(partition):
            return ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        back = reverted(partition)
        if not back.clean and not self._partitions.unclean_allowed(topic):
            text = (
                f"Unable to revert partition assignment for {topic}:{partition.partition} because "
                "it would require an unclean leader election."
            )
            return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        election = self._partitions.elect(
            topic,
            partition,
            self._partitions.usual_mode(topic),
            isr=back.isr,
            assignment=Assignment(back.replicas),
        )
        assert election is not None, partition
        if not back.clean:
            election = replace(election, kind=ElectionKind.UNCLEAN, clean=False)
        key = (partition.topic_id, partition.partition)
        started = self._partitions.reassignments.pop(key, None)
        cause = self._note_cancelled(topic, partition, election, started)
        change = Change(topic, partition, election, ReassignmentReverted(), cause)
        records[key] = self._partitions.record_of(change)
        return _OK

    def _note_cancelled(
        self, topic: str, partition: PartitionRegistration, election: Election, cause: NoteId | None
    ) -> NoteId:
        event = ReassignmentCancelled(
            topic=topic,
            partition=partition.partition,
            old_replicas=partition.replicas,
            replicas=reverted(partition).replicas,
            partition_epoch=election.registration.partition_epoch,
            adding=partition.adding_replicas,
            removing=partition.removing_replicas,
        )
        return self._metadata.note(event, cause)

    # ---------------------------------------------------------------------------------- list

    def list_partition_reassignments(
        self, request: m.ListPartitionReassignmentsRequest, _now_ms: int
    ) -> m.ListPartitionReassignmentsResponse:
        """List reassignments in progress; null topics mean all.  Partitions that are not moving, or
        do not exist, are left out."""
        image = self._metadata.image
        wanted: list[tuple[TopicImage, list[int]]] = []
        if request.topics is None:
            # DIFFERS: in order of their start; Kafka's topics are in the order of a hash table.
            moving: dict[bytes, list[int]] = {}
            for topic_id, partition in self._partitions.index.reassigning:
                moving.setdefault(topic_id, []).append(partition)
            wanted = [
                (image.topics[image.topic_names[topic_id]], partitions)
                for topic_id, partitions in moving.items()
            ]
        else:
            wanted = [
                (image.topics[topic.name], topic.partition_indexes)
                for topic in request.topics
                if topic.name in image.topics
            ]
        response = m.ListPartitionReassignmentsResponse(error_message=None)
        for topic, indexes in wanted:
            ongoing = [
                _ongoing(topic.partitions[index])
                for index in indexes
                if 0 <= index < len(topic.partitions) and is_reassigning(topic.partitions[index])
            ]
            if ongoing:
                response.topics.append(
                    m.ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                        name=topic.name, partitions=ongoing
                    )
                )
        return response


def _factor_changed(partition: PartitionRegistration, wanted: int) -> ApiError | None:
    """The refusal of a move that changes the number of replicas; None if the number stays.  For a
    moving partition, the final number counts."""
    moving = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    factor = len(moving) if is_reassigning(partition) else len(partition.replicas)
    if factor == wanted:
        return None
    text = f"The replication factor is changed from {factor} to {wanted}"
    return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _ongoing(
    partition: PartitionRegistration,
) -> m.ListPartitionReassignmentsResponse.OngoingPartitionReassignment:
    return m.ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
        partition_index=partition.partition,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
