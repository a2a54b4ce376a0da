"""Asking the controller for changes of ISRs.

Owns: the queue of proposals and the one AlterPartition request under way.  Never: decides an ISR:
partition/replica.py proposes, the controller agrees or not.  Kafka: AlterPartitionManager, KIP-497.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcluster.metadata.image import PartitionRegistration
from kcluster.partition.followers import IsrProposal
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode

_BACK_TO_COMMITTED = frozenset((ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA))
_WAIT_FOR_METADATA = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)
"""Somebody else has changed the partition: the proposal is void, and news of it is on its way."""


class IsrChanges:
    """Proposals by replica: sent together, one request at a time."""

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._waiting: dict[Replica, IsrProposal] = {}
        self._under_way: dict[Replica, IsrProposal] = {}
        self._asking = False

    def submit(self, replica: Replica, proposal: IsrProposal, now_ms: int) -> None:
        """Ask for `proposal` as soon as no other request is under way."""
        self._waiting[replica] = proposal
        self._send(now_ms)

    def _send(self, now_ms: int) -> None:
        broker = self._broker
        if self._asking or not self._waiting or ("isr", "retry") in broker.timers:
            return
        self._under_way = {r: p for r, p in self._waiting.items() if r.proposal is p}
        self._waiting = {}
        if not self._under_way:
            return
        self._asking = True
        request = _alter_partition(broker, self._under_way)
        timeout_ms = broker.config.controller_quorum_request_timeout_ms
        broker.ask_controller(request, self._on_answer, timeout_ms, now_ms)

    def _on_answer(self, response: Any, now_ms: int) -> None:
        self._asking = False
        under_way, self._under_way = self._under_way, {}
        if response is None or response.error_code != ErrorCode.NONE:
            self._retry(under_way, now_ms)
            return
        answers = {
            (topic.topic_id, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        again = {
            replica: proposal
            for replica, proposal in under_way.items()
            if not self._settle(replica, proposal, answers.get(replica.key), now_ms)
        }
        if again:
            self._retry(again, now_ms)
        self._send(now_ms)

    def _settle(self, replica: Replica, proposal: IsrProposal, answer: Any, now_ms: int) -> bool:
        """False if the proposal is to be sent again.  Kafka: handleAlterPartitionError/Update."""
        if replica.proposal is not proposal:
            return True
        if answer is None:
            return False
        if answer.error_code == ErrorCode.NONE:
            self._commit(replica, answer, now_ms)
            return True
        if answer.error_code in _BACK_TO_COMMITTED:
            replica.drop_proposal(proposal)
            self._broker.replicas.moved[replica] = None
            return True
        return answer.error_code in _WAIT_FOR_METADATA

    def _commit(self, replica: Replica, answer: Any, now_ms: int) -> None:
        registration: PartitionRegistration = replica.registration
        if answer.leader_epoch != registration.leader_epoch:
            return
        if answer.partition_epoch < registration.partition_epoch:
            return
        committed = PartitionRegistration(
            registration.topic_id, registration.partition, registration.replicas,
            tuple(answer.isr), registration.leader, registration.leader_epoch,
            answer.partition_epoch, registration.elr, registration.last_known_elr,
            adding_replicas=registration.adding_replicas,
            removing_replicas=registration.removing_replicas,
        )  # fmt: skip
        replica.commit_isr(committed, now_ms)
        self._broker.replicas.track_isr(replica)
        self._broker.replicas.moved[replica] = None

    def _retry(self, proposals: dict[Replica, IsrProposal], now_ms: int) -> None:
        for replica, proposal in proposals.items():
            self._waiting.setdefault(replica, proposal)
        # Kafka waits 50 ms; it is a constant there.
        self._broker.timers.set(("isr", "retry"), now_ms + 50, self._send)


def _alter_partition(
    broker: BrokerNode, proposals: dict[Replica, IsrProposal]
) -> m.AlterPartitionRequest:
    """One request with all proposals, each member of an ISR with its broker's epoch (KIP-903)."""
    topics: dict[bytes, m.AlterPartitionRequest.TopicData] = {}
    for replica, proposal in proposals.items():
        topic = topics.get(replica.topic_id)
        if topic is None:
            topic = topics[replica.topic_id] = m.AlterPartitionRequest.TopicData(
                topic_id=replica.topic_id, partitions=[]
            )
        topic.partitions.append(
            m.AlterPartitionRequest.PartitionData(
                partition_index=replica.partition,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[
                    m.AlterPartitionRequest.BrokerState(
                        broker_id=member, broker_epoch=_epoch_of(broker, replica, member)
                    )
                    for member in sorted(proposal.isr)  # as out of Kafka's hash set
                ],
                leader_recovery_state=0,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return m.AlterPartitionRequest(
        broker_id=broker.node_id, broker_epoch=broker.epoch, topics=list(topics.values())
    )


def _epoch_of(broker: BrokerNode, replica: Replica, member: int) -> int:
    if member == broker.node_id:
        return broker.epoch
    return replica.followers[member].broker_epoch
