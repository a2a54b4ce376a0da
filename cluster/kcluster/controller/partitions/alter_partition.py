"""AlterPartition (API 56, v2-3): a leader reports its in-sync replicas.

Owns: the acceptance of leaders' proposals.  Never: builds the changed partition (elections.py).
Kafka: ReplicationControlManager.alterPartition; KIP-497 (the API), KIP-455 (reassignments), KIP-704
(recovery state), KIP-841 (fenced and leaving brokers may not join), KIP-903 (brokers that have
restarted may not join: the epochs of v3).

Behaviour: a proposal must come from the leader, at the leader epoch and partition epoch that the
controller has; its answer is the partition after the change.  A change that completes a
reassignment may remove the leader: its answer is NEW_LEADER_ELECTED, though its ISR was accepted.
"""

from __future__ import annotations

from kcluster.controller.partitions.leadership import Change
from kcluster.controller.partitions.partitions import Partitions
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.reasons import AnyReason, CaughtUp, OutOfSync, Recovered
from kcluster.metadata.image import TopicImage
from kcluster.metadata.records import MetadataRecord, PartitionRegistration
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

_RECOVERING = 1
_ANY_EPOCH = -1


class IsrProposals:
    """Accepts or refuses the leaders' proposals of an ISR."""

    def __init__(self, metadata: MetadataPort, partitions: Partitions) -> None:
        self._metadata = metadata
        self._image = metadata.image
        self._partitions = partitions

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {"AlterPartitionRequest": self.alter_partition}

    def alter_partition(
        self, request: m.AlterPartitionRequest, _now_ms: int
    ) -> m.AlterPartitionResponse:
        """Decide on the ISRs that a leader proposes.  Versions: v3 names the broker epoch of each
        ISR member (KIP-903)."""
        registration = self._image.brokers.get(request.broker_id)
        if registration is None or registration.epoch != request.broker_epoch:
            return m.AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        response = m.AlterPartitionResponse()
        records: list[MetadataRecord] = []
        for topic_data in request.topics:
            topic = self._image.topic_by_id(topic_data.topic_id)
            answer = m.AlterPartitionResponse.TopicData(
                topic_name=topic_data.topic_name, topic_id=topic_data.topic_id
            )
            response.topics.append(answer)
            for proposal in topic_data.partitions:
                if topic is None:
                    answer.partitions.append(_error(proposal, ErrorCode.UNKNOWN_TOPIC_ID))
                else:
                    answer.partitions.append(
                        self._alter_one(topic, request.broker_id, proposal, records)
                    )
        self._metadata.commit(records)
        return response

    def _alter_one(
        self,
        topic: TopicImage,
        broker_id: int,
        proposal: m.AlterPartitionRequest.PartitionData,
        records: list[MetadataRecord],
    ) -> m.AlterPartitionResponse.PartitionData:
        partition = self._image.partition(topic.name, proposal.partition_index)
        if partition is None:
            return _error(proposal, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        wanted = proposal.new_isr_with_epochs or [
            m.AlterPartitionRequest.BrokerState(broker_id=member, broker_epoch=_ANY_EPOCH)
            for member in proposal.new_isr
        ]
        isr = tuple(state.broker_id for state in wanted)
        error = _refusal(partition, broker_id, proposal, isr)
        if error is ErrorCode.NONE and any(self._is_ineligible(state) for state in wanted):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error is not ErrorCode.NONE:
            return _error(proposal, error)
        election = self._partitions.elect(
            topic.name,
            partition,
            self._partitions.usual_mode(topic.name),
            isr=isr,
            recovering=proposal.leader_recovery_state == _RECOVERING,
        )
        if election is not None:
            reason = _reason(broker_id, partition, isr)
            cause = self._partitions.reassignments.get((topic.topic_id, partition.partition))
            change = Change(topic.name, partition, election, reason, cause)
            records.append(self._partitions.record_of(change))
            partition = election.registration
            if partition.leader != broker_id:
                return _error(proposal, ErrorCode.NEW_LEADER_ELECTED)
        return m.AlterPartitionResponse.PartitionData(
            partition_index=partition.partition,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            leader_recovery_state=int(partition.recovering),
            partition_epoch=partition.partition_epoch,
        )

    def _is_ineligible(self, state: m.AlterPartitionRequest.BrokerState) -> bool:
        """Whether a broker must stay out of the ISR: it is not registered, fenced, in controlled
        shutdown, or of an incarnation other than the named one."""
        registration = self._image.brokers.get(state.broker_id)
        return (
            registration is None
            or not registration.is_active
            or state.broker_epoch not in (_ANY_EPOCH, registration.epoch)
        )


def _refusal(
    partition: PartitionRegistration,
    broker_id: int,
    proposal: m.AlterPartitionRequest.PartitionData,
    isr: tuple[int, ...],
) -> ErrorCode:
    """The refusal of a proposal, after Kafka's checks in their order."""
    if (
        proposal.leader_epoch > partition.leader_epoch
        or proposal.partition_epoch > partition.partition_epoch
    ):
        return ErrorCode.NOT_CONTROLLER  # this controller is behind the leader
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not isr or len(set(isr)) != len(isr) or any(b not in partition.replicas for b in isr):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in isr:
        return ErrorCode.INVALID_REQUEST
    recovering = proposal.leader_recovery_state == _RECOVERING
    if recovering and (len(isr) > 1 or not partition.recovering):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _reason(leader: int, partition: PartitionRegistration, isr: tuple[int, ...]) -> AnyReason:
    late = tuple(broker for broker in partition.isr if broker not in isr)
    caught_up = tuple(broker for broker in isr if broker not in partition.isr)
    if late:
        return OutOfSync(leader, late)
    return CaughtUp(leader, caught_up) if caught_up else Recovered(leader)


def _error(
    proposal: m.AlterPartitionRequest.PartitionData, code: ErrorCode
) -> m.AlterPartitionResponse.PartitionData:
    return m.AlterPartitionResponse.PartitionData(
        partition_index=proposal.partition_index, error_code=code
    )
