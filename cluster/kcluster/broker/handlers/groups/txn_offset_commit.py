"""TxnOffsetCommit (API 28, v0-6): offsets that are committed with a transaction, or not at all.

Owns: checks that need no group, verification of the group's partition, the shape of the answer.
Never: decides who may commit or stores an offset (coordinator/ does).
Kafka: KafkaApis.handleTxnOffsetCommitRequest, GroupCoordinatorService.commitTransactionalOffsets.
Behaviour:
- the offsets are pending until the transaction's marker comes to the group's partition.
Versions:
- v3: the member that commits (KIP-447)
- v4: TRANSACTION_ABORTABLE (KIP-890)
- v5: transactions V2: adds the group's partition to the transaction (KIP-890)
- v6: topic ids; GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319)
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.group import Committer
from kcluster.broker.coordinator.group_log import CommittedOffset
from kcluster.broker.coordinator.offsets import committed_offset
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity, TopicPartition
from kcluster.broker.handlers.groups.group_offsets import OffsetsToCommit
from kcluster.broker.handlers.transactions.verification import PartitionsQuestion
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.partition.producers import Verification
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC

LOADING_SINCE: Final = 2
"""The first version whose producers survive COORDINATOR_LOAD_IN_PROGRESS; older ones get
COORDINATOR_NOT_AVAILABLE."""
ABORTABLE_SINCE: Final = 4
V2_SINCE: Final = 5
TOPIC_IDS_SINCE: Final = 6
NO_SEQUENCE: Final = -1

STALE_EPOCHS_SINCE: Final = 6
"""The first version whose producers know STALE_MEMBER_EPOCH; older ones get ILLEGAL_GENERATION."""

CommitPartition = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
TopicResult = m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionResult = m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


@handles(ApiKey.TXN_OFFSET_COMMIT, versions=(0, 6))
def txn_offset_commit(
    broker: Broker, request: Request, now_ms: int
) -> m.TxnOffsetCommitResponse | Parked:
    pending = PendingTxnOffsets(broker, request)
    if not pending.offsets.known:
        return pending.answer()
    pending.start(now_ms)
    return PARKED


class PendingTxnOffsets:
    """One request, from its arrival to its answer."""

    def __init__(self, broker: Broker, request: Request) -> None:
        self._broker = broker
        self._request = request
        self._body: m.TxnOffsetCommitRequest = request.body
        by_id = request.api_version >= TOPIC_IDS_SINCE
        self.offsets = OffsetsToCommit(
            broker, self._body.topics, by_id, TopicResult, PartitionResult
        )

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> m.TxnOffsetCommitResponse:
        """The response: `error` for each partition that exists, or each partition's own outcome."""
        return m.TxnOffsetCommitResponse(topics=self.offsets.results(error))

    def _finish(self, error: ErrorCode, _now_ms: int) -> None:
        version = self._request.api_version
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif error is ErrorCode.STALE_MEMBER_EPOCH and version < STALE_EPOCHS_SINCE:
            error = ErrorCode.ILLEGAL_GENERATION
        self._broker.reply(self._request, self.answer(error))

    # ------------------------------------------------------------------- verification

    def start(self, now_ms: int) -> None:
        """Verify the group's partition, or add it; then commit."""
        broker, body, version = self._broker, self._body, self._request.api_version
        if not body.group_id:
            self._finish(ErrorCode.INVALID_GROUP_ID, now_ms)
            return
        index = broker.coordinator.partition_for(body.group_id)
        replica = broker.leader_replica(GROUP_METADATA_TOPIC, index)
        if isinstance(replica, ErrorCode):
            self._finish(ErrorCode.NOT_COORDINATOR, now_ms)
            return
        is_v2 = version >= V2_SINCE
        guard = None
        if is_v2 or broker.config.transaction_partition_verification_enable:
            guard = replica.log.producers.verification(
                body.producer_id, body.producer_epoch, NO_SEQUENCE, is_v2
            )
        if guard is None:
            self._commit(None, now_ms)
            return
        partition = (GROUP_METADATA_TOPIC, index)

        def verified(errors: dict[TopicPartition, ErrorCode], at_ms: int) -> None:
            error = errors.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if error is ErrorCode.NETWORK_EXCEPTION:
                error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # old producers retry only that
            if error is ErrorCode.NONE:
                self._commit(guard, at_ms)
            else:
                self._finish(error, at_ms)

        PartitionsQuestion(
            broker,
            body.transactional_id,
            ProducerIdentity(body.producer_id, body.producer_epoch),
            [partition],
            is_v2,
            version >= ABORTABLE_SINCE,
            verified,
        ).ask(now_ms)

    # ------------------------------------------------------------------------- commit

    def _commit(self, guard: Verification | None, now_ms: int) -> None:
        body = self._body
        ignores_member = self._broker.view.era.ignores_committing_members
        committer = Committer(
            member_id="" if ignores_member else body.member_id,
            instance_id=None if ignores_member else body.group_instance_id,
            generation=-1 if ignores_member else body.generation_id_or_member_epoch,
            api_version=self._request.api_version,
            is_in_transaction=True,
        )

        def committed(partition: CommitPartition, _: bytes, topic_id: bytes) -> CommittedOffset:
            return committed_offset(partition, topic_id, now_ms)

        records = self.offsets.records(body.group_id, committed)
        producer = ProducerIdentity(body.producer_id, body.producer_epoch)
        self._broker.coordinator.commit_in_transaction(
            body.group_id, committer, records, producer, guard, self._finish, now_ms
        )
