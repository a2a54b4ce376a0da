"""Requests to the controller for changes of ISRs.

Owns: the followers outside of ISRs, the queue of proposals, and the one AlterPartition request
under way.  Never: decides an ISR; partition/replica.py proposes, and the controller decides.
Kafka: AlterPartitionManager, KIP-497.
"""

from __future__ import annotations

from typing import final

from msgspec.structs import replace

from kcluster.broker.peers import PeerCalls
from kcluster.broker.ports import BrokerView
from kcluster.broker.replication.replicas import Replicas
from kcluster.metadata.records import PartitionRegistration
from kcluster.partition.replica import IsrProposal, Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import Timers

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
"""Errors that show that a partition has changed meanwhile: the proposal is void, and new metadata
is on its way."""
RETRY_MS = 50
"""The time before a retry, a constant in Kafka, too."""


@final
class IsrChanges:
    """Proposals by replica: sent together, one request at a time."""

    __slots__ = (
        "_asking",
        "_outsiders",
        "_peers",
        "_replicas",
        "_timers",
        "_under_way",
        "_view",
        "_waiting",
    )

    def __init__(
        self, view: BrokerView, timers: Timers, peers: PeerCalls, replicas: Replicas
    ) -> None:
        self._view = view
        self._timers = timers
        self._peers = peers
        self._replicas = replicas
        self._outsiders: dict[int, dict[Replica, None]] = {}
        """The replicas led here whose ISR lacks a follower, by the follower's broker."""
        self._waiting: dict[Replica, IsrProposal] = {}
        self._under_way: dict[Replica, IsrProposal] = {}
        self._asking = False

    # -------------------------------------------------------------------------------- proposals

    def track(self, replica: Replica) -> None:
        """Update the followers outside of the ISR of `replica`, whose role or ISR has changed."""
        for outside in self._outsiders.values():
            outside.pop(replica, None)
        for follower_id in replica.followers:
            if follower_id not in replica.registration.isr:
                self._outsiders.setdefault(follower_id, {})[replica] = None

    def propose_expansions(self, follower_id: int, now_ms: int) -> None:
        """Propose every ISR that a follower, after its fetch, qualifies to join."""
        outsiders = self._outsiders.get(follower_id)
        if not outsiders:
            return
        for replica in outsiders:
            proposal = replica.propose_expansion(follower_id)
            if proposal is not None:
                self._submit(replica, proposal, now_ms)

    def propose_shrink(self, replica: Replica, now_ms: int) -> None:
        """Propose an ISR without the followers that have been behind for too long."""
        proposal = replica.propose_shrink(now_ms)
        if proposal is not None:
            self._submit(replica, proposal, now_ms)

    def _submit(self, replica: Replica, proposal: IsrProposal, now_ms: int) -> None:
        self._waiting[replica] = proposal
        self._send(now_ms)

    # ------------------------------------------------------------------------------ one request

    def _send(self, now_ms: int) -> None:
        """Send all proposals, unless a request is under way or waits for its retry."""
        if self._asking or not self._waiting or ("isr", "retry") in self._timers:
            return
        self._under_way = {r: p for r, p in self._waiting.items() if r.proposal is p}
        self._waiting = {}
        if not self._under_way:
            return
        self._asking = True
        request = _alter_partition(self._view, self._under_way)
        timeout_ms = self._view.config.controller_quorum_request_timeout_ms
        self._peers.ask_controller(request, self._on_answer, timeout_ms, now_ms)

    def _on_answer(self, response: m.AlterPartitionResponse | None, now_ms: int) -> None:
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

    def _settle(
        self,
        replica: Replica,
        proposal: IsrProposal,
        answer: m.AlterPartitionResponse.PartitionData | None,
        now_ms: int,
    ) -> bool:
        """Apply the answer to a proposal; False if it must be sent again.  Kafka:
        handleAlterPartitionError/Update."""
        if replica.proposal is not proposal:
            return True
        if answer is None:
            return False
        if answer.error_code == ErrorCode.NONE:
            self._commit(replica, answer, now_ms)
            return True
        if answer.error_code in _BACK_TO_COMMITTED:
            replica.drop_proposal(proposal)
            self._replicas.touch(replica)
            return True
        return answer.error_code in _WAIT_FOR_METADATA

    def _commit(
        self, replica: Replica, answer: m.AlterPartitionResponse.PartitionData, now_ms: int
    ) -> None:
        registration: PartitionRegistration = replica.registration
        if answer.leader_epoch != registration.leader_epoch:
            return
        if answer.partition_epoch < registration.partition_epoch:
            return
        committed = replace(
            registration,
            isr=tuple(answer.isr),
            partition_epoch=answer.partition_epoch,
            recovering=False,
        )
        replica.commit_isr(committed, now_ms)
        self.track(replica)
        self._replicas.touch(replica)

    def _retry(self, proposals: dict[Replica, IsrProposal], now_ms: int) -> None:
        for replica, proposal in proposals.items():
            self._waiting.setdefault(replica, proposal)
        self._timers.set(("isr", "retry"), now_ms + RETRY_MS, self._send)


def _alter_partition(
    view: BrokerView, proposals: dict[Replica, IsrProposal]
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
                        broker_id=member, broker_epoch=_epoch_of(view, replica, member)
                    )
                    for member in sorted(proposal.isr)  # in the order of Kafka's hash set
                ],
                leader_recovery_state=0,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return m.AlterPartitionRequest(
        broker_id=view.node_id, broker_epoch=view.epoch, topics=list(topics.values())
    )


def _epoch_of(view: BrokerView, replica: Replica, member: int) -> int:
    if member == view.node_id:
        return view.epoch
    return replica.followers[member].broker_epoch
