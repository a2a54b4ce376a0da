"""TxnOffsetCommit (API 28, v0-5): offsets that are committed with a transaction, or not at all.

Owns: checks that need no group, verification of the group's partition, the shape of the answer.
Never: decides who may commit or stores an offset (coordinator/ does).
Kafka: KafkaApis.handleTxnOffsetCommitRequest, GroupCoordinatorService.commitTransactionalOffsets.
Behaviour:
- the offsets are pending until the transaction's marker comes to the group's partition.
Versions:
- v3: the member that commits (KIP-447)
- v4: TRANSACTION_ABORTABLE (KIP-890)
- v5: transactions V2: adds the group's partition to the transaction (KIP-890)
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.group import Committer
from kcluster.broker.coordinator.group_log import NO_TOPIC_ID, LogRecord, OffsetRecord
from kcluster.broker.coordinator.offsets import committed_offset
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity, TopicPartition
from kcluster.broker.handlers.transactions.verification import PartitionsQuestion
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.partition.producers import Verification
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC

LOADING_SINCE: Final = 2
"""Before it COORDINATOR_LOAD_IN_PROGRESS is fatal to producers: COORDINATOR_NOT_AVAILABLE then."""
ABORTABLE_SINCE: Final = 4
V2_SINCE: Final = 5
NO_SEQUENCE: Final = -1

PartitionResult = m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


@handles(ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5))
def txn_offset_commit(
    broker: Broker, request: Request, now_ms: int
) -> m.TxnOffsetCommitResponse | Parked:
    pending = PendingTxnOffsets(broker, request)
    if not pending.known:
        return pending.answer()
    pending.start(now_ms)
    return PARKED


class PendingTxnOffsets:
    """One request, from its arrival to its answer."""

    def __init__(self, broker: Broker, request: Request) -> None:
        self._broker = broker
        self._request = request
        self._body: m.TxnOffsetCommitRequest = request.body
        self._errors: dict[TopicPartition, ErrorCode] = {}
        self.known: list[tuple[str, m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = []
        """Topic and offset of each partition that exists."""
        metadata_max = broker.config.offset_metadata_max_bytes
        for topic in self._body.topics:
            for partition in topic.partitions:
                index = partition.partition_index
                if broker.image.partition(topic.name, index) is None:
                    self._errors[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif len(partition.committed_metadata or "") > metadata_max:
                    self._errors[topic.name, index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    self.known.append((topic.name, partition))

    def answer(self) -> m.TxnOffsetCommitResponse:
        """The response; partitions without an error are committed to the transaction."""
        return m.TxnOffsetCommitResponse(
            topics=[
                m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        PartitionResult(
                            one.partition_index,
                            self._errors.get((topic.name, one.partition_index), ErrorCode.NONE),
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in self._body.topics
            ]
        )

    def _finish(self, error: ErrorCode, _now_ms: int) -> None:
        if (
            error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            and self._request.api_version < LOADING_SINCE
        ):
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error is not ErrorCode.NONE:
            for topic, partition in self.known:
                self._errors[topic, partition.partition_index] = error
        self._broker.reply(self._request, self.answer())

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
        broker, body = self._broker, self._body
        shard = broker.coordinator.shard_for(body.group_id)
        if isinstance(shard, ErrorCode):
            self._finish(shard, now_ms)
            return
        replica = shard.replica
        if guard is not None and (
            replica is None or not replica.log.producers.is_verified(body.producer_id, guard)
        ):
            # A marker came after the coordinator had confirmed the transaction.
            self._finish(ErrorCode.INVALID_TXN_STATE, now_ms)
            return
        committer = Committer(
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            generation=body.generation_id_or_member_epoch,
            api_version=self._request.api_version,
            is_in_transaction=True,
        )
        partitions = [
            (broker.image.topics[topic].topic_id, partition.partition_index)
            for topic, partition in self.known
        ]
        error = shard.admit_commit(body.group_id, committer, partitions, now_ms)
        if error is ErrorCode.STALE_MEMBER_EPOCH:
            error = ErrorCode.ILLEGAL_GENERATION  # producers do not know the other
        if error is not ErrorCode.NONE:
            self._finish(error, now_ms)
            return
        producer = ProducerIdentity(body.producer_id, body.producer_epoch)
        shard.append_in_transaction(self._records(now_ms), producer, self._finish, now_ms)

    def _records(self, now_ms: int) -> list[LogRecord]:
        return [
            OffsetRecord(
                self._body.group_id,
                topic,
                partition.partition_index,
                committed_offset(partition, _topic_id(self._broker, topic), now_ms),
            )
            for topic, partition in self.known
        ]


def _topic_id(broker: Broker, topic: str) -> bytes:
    image = broker.image.topics.get(topic)
    return NO_TOPIC_ID if image is None else image.topic_id
