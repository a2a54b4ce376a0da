"""Produce (API 0, v3-13): append batches to the partitions that this broker leads.

Owns: the order of checks before an append, the allowance for decompressing, and the response; for a
transaction the batches whose partitions are verified or added first, and the meaning of the
coordinator's answer for each.  Never: opens records (partition/log/validation.py does), waits
(serving/appends.py does), asks the coordinator (handlers/transactions/verification.py does).
Kafka: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend,
UnifiedLog.maybeStartTransactionVerification.
Behaviour:
- acks=0 is not answered; after an error its connection is closed;
- acks=1 is answered after the append;
- acks=all is answered when the high watermark has passed the batch.
Versions:
- v0-2 (to 3.9): message sets (old_formats.py)
- v7: zstd (KIP-110)
- v8: record errors (KIP-467)
- v10: leader hints (KIP-951)
- v11: TRANSACTION_ABORTABLE (KIP-890)
- v12: transactions without AddPartitionsToTxn (KIP-890)
- v13: topic ids (KIP-516)
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout
from typing import Final, final

from kcluster.broker import registry
from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity, TopicPartition
from kcluster.broker.handlers.transactions.verification import (
    RETRIED_BY_PRODUCERS,
    PartitionsQuestion,
)
from kcluster.broker.old_formats import (
    FIRST_PRODUCE_OF_BATCHES,
    replace_newer_errors,
    take_message_set,
)
from kcluster.broker.registry import NO_RESPONSE, PARKED, handles
from kcluster.broker.serving.appends import ACKS_ALL, DelayedAppend
from kcluster.broker.serving.leader_hints import current_leader, node_endpoints
from kcluster.broker.versions import LATEST
from kcluster.contract import CloseConnection, Request
from kcluster.partition.log.log import Appended
from kcluster.partition.producers import Verification
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.names import INTERNAL_TOPICS
from kcluster.protocol.records.batches import CRC_START, HEADER_BYTES, TRANSACTIONAL_BIT
from kcluster.protocol.records.compression import Allowance

FIRST_VERSION_WITH_ZSTD: Final = 7
FIRST_VERSION_WITH_HINTS: Final = 10
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_OF_V2: Final = 12
"""From this version on a Produce adds its partitions to the transaction."""
ABORTABLE_SINCE: Final = 11
_PRODUCER: Final = Layout(">qhi")
"""Producer id, epoch, base sequence."""
_PRODUCER_AT: Final = 43
ZSTD: Final = 4
ATTRIBUTES_LOW_BYTE: Final = 22
"""The place of a v2 batch's compression type and flags: the low byte of its attributes."""
ADMIN_CLIENT_ID: Final = "__admin_client"
_NO_SUCH_PARTITION: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)

Answer: Final = m.ProduceResponse
TopicAnswer: Final = m.ProduceResponse.TopicProduceResponse
PartitionAnswer: Final = m.ProduceResponse.PartitionProduceResponse
_NO_HINT: Final = m.ProduceResponse.LeaderIdAndEpoch()


@final
class DelayedProduce(DelayedAppend):
    """A producer's request, until it can be answered.  Kafka: DelayedProduce."""

    __slots__ = ("_broker", "_request", "_response")

    def __init__(self, broker: Broker, request: Request, response: m.ProduceResponse) -> None:
        super().__init__()
        self._broker = broker
        self._request = request
        self._response = response

    def on_failed(
        self, answer: m.ProduceResponse.PartitionProduceResponse, error: ErrorCode
    ) -> None:
        _fail(answer, error)

    def on_done(self, now_ms: int) -> None:
        self._broker.reply(self._request, _with_hints(self._broker, self._request, self._response))


@handles(ApiKey.PRODUCE, versions=(3, 13))
def produce(
    broker: Broker, request: Request, now_ms: int, verified: VerifiedPartitions | None = None
) -> registry.Answer:
    """Append each partition's batch; answer when the requested acks have arrived.

    `verified`: the coordinator's answer about a transactional request's partitions.
    """
    body: m.ProduceRequest = request.body
    if body.transactional_id is not None and verified is None:
        return _verify_first(broker, request, now_ms)
    acks = body.acks
    topics: list[m.ProduceResponse.TopicProduceResponse] = []
    response = Answer(topics)
    delayed: DelayedProduce | None = None
    topic_data = body.topic_data
    allowance: Allowance | None = None
    if len(topic_data) != 1 or len(topic_data[0].partition_data) != 1:
        topic_data = _once_each(topic_data)
        allowance = _allowance_of(topic_data)
    for topic in topic_data:
        answers: list[m.ProduceResponse.PartitionProduceResponse] = []
        topics.append(TopicAnswer(topic.name, topic.topic_id, answers))
        for data in topic.partition_data:
            index = data.index
            replica = _find_leader(broker, request, topic, data, acks, allowance)
            if not isinstance(replica, Replica):
                data.records = _header_of(data.records)
                answers.append(_failed(index, replica))
                continue
            if verified is None:
                appended = replica.append_as_leader(
                    data.records, acks, now_ms, True, False, allowance
                )
            else:
                error = verified.error((replica.topic, index))
                if error is not None:
                    data.records = _header_of(data.records)
                    answers.append(_unverified(index, error))
                    continue
                appended = replica.append_as_leader(
                    data.records, acks, now_ms, True, verified.is_verified(replica), allowance
                )
            if appended.error:
                data.records = _header_of(data.records)
                answers.append(_refused(index, appended))
                continue
            data.records = None
            answer = PartitionAnswer(
                index,
                appended.error,
                appended.base_offset,
                appended.log_append_time_ms,
                appended.log_start_offset,
                [],
                None,
                _NO_HINT,
            )
            answers.append(answer)
            broker.replicas.touch(replica)
            if acks == ACKS_ALL:
                if delayed is None:
                    delayed = DelayedProduce(broker, request, response)
                delayed.wait_for(replica, appended.last_offset + 1, answer)
    if acks == 0:
        return _silent(broker, request, response)
    if delayed is None:
        return _with_hints(broker, request, response)
    # Appends that need no other replica (RF 1, an ISR of one) are answered when this step ends.
    broker.purgatory.park(delayed, max(0, body.timeout_ms), now_ms)
    return PARKED


def _verify_first(broker: Broker, request: Request, now_ms: int) -> registry.Answer:
    """Append the batches of a transaction after the coordinator has confirmed their partitions."""

    def find(topic: m.ProduceRequest.TopicProduceData, index: int) -> Replica | ErrorCode:
        if request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            return broker.replicas.find_by_id(topic.topic_id, index)
        return broker.replicas.find(topic.name, index)

    def proceed(verified: VerifiedPartitions, at_ms: int) -> None:
        if verified.has_many_producers:
            answer: object = _of_many_producers(request.body)
        else:
            answer = produce(broker, request, at_ms, verified)
        if answer is not PARKED:
            broker.reply(request, None if answer is NO_RESPONSE else answer)

    verify(broker, request, find, proceed, now_ms)
    return PARKED


def _once_each(
    topic_data: list[m.ProduceRequest.TopicProduceData],
) -> list[m.ProduceRequest.TopicProduceData]:
    """The topics of a request, each once, with each of its partitions once.

    If a partition is named twice, its last batch counts and the others are dropped; a topic without
    partitions is left out.  Kafka's maps by partition have this effect.  Returns the list itself if
    nothing is repeated.
    """
    topics: dict[tuple[str, bytes], dict[int, m.ProduceRequest.PartitionProduceData]] = {}
    named = 0
    for topic in topic_data:
        partitions = topic.partition_data
        named += len(partitions)
        if partitions:
            known = topics.setdefault((topic.name, topic.topic_id), {})
            for data in partitions:
                known[data.index] = data
    if len(topics) == len(topic_data) and sum(map(len, topics.values())) == named:
        return topic_data
    return [
        m.ProduceRequest.TopicProduceData(name, topic_id, list(partitions.values()))
        for (name, topic_id), partitions in topics.items()
    ]


def _allowance_of(topic_data: list[m.ProduceRequest.TopicProduceData]) -> Allowance:
    """The allowance for decompressing all batches of a request."""
    return Allowance(
        sum(len(data.records or b"") for topic in topic_data for data in topic.partition_data)
    )


def _find_leader(
    broker: Broker,
    request: Request,
    topic: m.ProduceRequest.TopicProduceData,
    data: m.ProduceRequest.PartitionProduceData,
    acks: int,
    allowance: Allowance | None,
) -> Replica | ErrorCode:
    """The replica to append to, or the first reason to refuse; NONE for an empty message set, which
    is neither appended nor refused."""
    index = data.index
    if request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        replica = broker.replicas.find_by_id(topic.topic_id, index)
    else:
        replica = broker.replicas.find(topic.name, index)
    if not isinstance(replica, Replica) and replica in _NO_SUCH_PARTITION:
        return replica
    records = data.records
    if not records and (records is None or request.api_version >= FIRST_PRODUCE_OF_BATCHES):
        # DIFFERS: 4.3.1 does not answer null records at all; its code intends to answer with an
        # error.
        return ErrorCode.INVALID_RECORD
    if len(records) > ATTRIBUTES_LOW_BYTE and request.api_version >= FIRST_PRODUCE_OF_BATCHES:
        attributes = records[ATTRIBUTES_LOW_BYTE]
        if attributes & TRANSACTIONAL_BIT and request.body.transactional_id is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if attributes & 7 == ZSTD and request.api_version < FIRST_VERSION_WITH_ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if acks not in (-1, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if not isinstance(replica, Replica):
        return replica
    if replica.topic in INTERNAL_TOPICS and request.client_id != ADMIN_CLIENT_ID:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not replica.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if request.api_version < FIRST_PRODUCE_OF_BATCHES:
        error = take_message_set(broker.release, data, allowance)
        return error if error or not data.records else replica
    return replica


def _header_of(records: bytes | bytearray | memoryview | None) -> bytes | None:
    """The header of refused records.  It is enough to recognize a batch that is sent again
    (evidence/attempts.py), and does not hold the frame in memory."""
    return None if records is None else bytes(records[:CRC_START])


def _fail(answer: m.ProduceResponse.PartitionProduceResponse, error: ErrorCode) -> None:
    answer.error_code = error
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1


def _failed(index: int, error: ErrorCode) -> m.ProduceResponse.PartitionProduceResponse:
    return PartitionAnswer(index, error, -1, -1, -1, [], None, _NO_HINT)


def _of_many_producers(body: m.ProduceRequest) -> m.ProduceResponse:
    """The answer to a request with batches of several producers.  Kafka: the
    InvalidPidMappingException of ReplicaManager.handleProduceAppend, which fails the whole
    request."""
    text = "Batches of more than one producer are in one transactional request."
    topics = []
    for topic in body.topic_data:
        answers = [
            _failed(data.index, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            for data in topic.partition_data
        ]
        for answer in answers:
            answer.error_message = text
        topics.append(TopicAnswer(topic.name, topic.topic_id, answers))
    return Answer(topics)


def _unverified(index: int, error: ErrorCode) -> m.ProduceResponse.PartitionProduceResponse:
    """The answer after the coordinator did not confirm the transaction.  As from Kafka, its errors
    have a text only where the client gets another error in their place."""
    answer = _failed(index, error)
    if error is ErrorCode.INVALID_TXN_STATE:
        answer.error_message = "The partition was not added to the transaction."
    elif error is ErrorCode.NOT_ENOUGH_REPLICAS:
        answer.error_message = "The transaction's coordinator could not confirm the partition."
    return answer


def _refused(index: int, appended: Appended) -> m.ProduceResponse.PartitionProduceResponse:
    """The answer after the log refused the batch.  As from Kafka, only errors of single records
    have a text."""
    answer = _failed(index, appended.error)
    answer.log_start_offset = appended.log_start_offset
    if appended.record_errors:
        answer.error_message = appended.error_message
        answer.record_errors = [
            m.ProduceResponse.BatchIndexAndErrorMessage(index, text)
            for index, text in appended.record_errors
        ]
    return answer


def _with_hints(broker: Broker, request: Request, response: m.ProduceResponse) -> m.ProduceResponse:
    """Name the leader of each partition that this broker does not lead (KIP-951)."""
    if request.api_version < FIRST_VERSION_WITH_HINTS:
        if broker.release is not LATEST:
            replace_newer_errors(broker.release, response)
        return response
    leaders: dict[int, None] = {}
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leader, epoch = current_leader(
                    broker.image, topic.name, topic.topic_id, answer.index
                )
                answer.current_leader = m.ProduceResponse.LeaderIdAndEpoch(leader, epoch)
                leaders[leader] = None
    if leaders:
        response.node_endpoints = node_endpoints(
            broker.image, leaders, request.identity.listener, m.ProduceResponse.NodeEndpoint
        )
    return response


def _silent(broker: Broker, request: Request, response: m.ProduceResponse) -> registry.Answer:
    """Send nothing to an acks=0 producer; an error closes its connection."""
    failed = [
        f"{topic.name}-{answer.index}: {error_of(answer.error_code).name}"
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code
    ]
    if failed:
        reason = f"Produce with acks=0 failed: {', '.join(failed)}"
        broker.emit(CloseConnection(request.connection_id, reason))
    return NO_RESPONSE


@final
class VerifiedPartitions:
    """The partitions of one transactional Produce.

    `errors`: why a partition must not be appended to; `verified`: the guard of a partition whose
    first batch this is.  A partition that is in neither has the transaction open, or no
    transactional batch.  `has_many_producers`: nothing of the request may be appended.
    """

    __slots__ = ("errors", "has_many_producers", "is_checked", "producer_id", "verified")

    def __init__(self, is_checked: bool) -> None:
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.verified: dict[TopicPartition, Verification] = {}
        self.producer_id = -1
        self.has_many_producers = False
        self.is_checked = is_checked
        """False with transaction.partition.verification.enable=false: no batch is checked."""

    def error(self, partition: TopicPartition) -> ErrorCode | None:
        return self.errors.get(partition)

    def is_verified(self, replica: Replica) -> bool:
        """Whether a first batch may be appended: no marker has come since its verification."""
        if not self.is_checked:
            return True
        guard = self.verified.get((replica.topic, replica.partition))
        return guard is not None and replica.log.producers.is_verified(self.producer_id, guard)


_Find = Callable[[m.ProduceRequest.TopicProduceData, int], Replica | ErrorCode]


def verify(
    broker: Broker,
    request: Request,
    find: _Find,
    proceed: Callable[[VerifiedPartitions, int], None],
    now_ms: int,
    until_ms: int | None = None,
) -> None:
    """Call `proceed` when every partition is known.  `find(topic, index)`: the replica of a
    partition.  While markers of the last transaction are on their way, all begins anew, until
    `until_ms`: guards from before would not outlast them.  None: for the configured time."""
    body, version, config = request.body, request.api_version, broker.config
    if until_ms is None:
        longest_ms = config.add_partitions_to_txn_retry_backoff_max_ms
        until_ms = now_ms + min(longest_ms, config.request_timeout_ms)
    is_v2 = version >= FIRST_OF_V2
    outcome = VerifiedPartitions(is_v2 or config.transaction_partition_verification_enable)
    producers = _take_guards(outcome, body, find, is_v2)
    outcome.has_many_producers = len(producers) > 1
    if outcome.has_many_producers or not outcome.verified:
        proceed(outcome, now_ms)
        return
    (producer,) = producers
    outcome.producer_id = producer.producer_id

    def verified(errors: dict[TopicPartition, ErrorCode], at_ms: int) -> None:
        is_early = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
        if is_v2 and is_early and at_ms < until_ms:
            again_ms = at_ms + config.add_partitions_to_txn_retry_backoff_ms
            broker.timers.set(("verification", outcome), again_ms, ask_again)
            return
        for partition, error in errors.items():
            if error in RETRIED_BY_PRODUCERS or (
                error is ErrorCode.CONCURRENT_TRANSACTIONS and not is_v2
            ):
                error = ErrorCode.NOT_ENOUGH_REPLICAS
            if error is not ErrorCode.NONE:
                outcome.errors[partition] = error
        proceed(outcome, at_ms)

    def ask_again(at_ms: int) -> None:
        verify(broker, request, find, proceed, at_ms, until_ms)

    PartitionsQuestion(
        broker,
        body.transactional_id,
        producer,
        list(outcome.verified),
        is_v2,
        version >= ABORTABLE_SINCE,
        verified,
    ).ask(now_ms)


def _take_guards(
    outcome: VerifiedPartitions, body: m.ProduceRequest, find: _Find, is_v2: bool
) -> dict[ProducerIdentity, None]:
    """Give `outcome` the guards of the first batches; returns the producers of all transactional
    batches."""
    producers: dict[ProducerIdentity, None] = {}
    for topic in body.topic_data:
        for data in topic.partition_data:
            replica = find(topic, data.index)
            records = data.records
            if (
                isinstance(replica, Replica)
                and replica.is_leader
                and records is not None
                and len(records) >= HEADER_BYTES
                and records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT
            ):
                producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
                if producer_id < 0:
                    continue  # no transaction's: it is appended as if outside of any
                producers[ProducerIdentity(producer_id, epoch)] = None
                if outcome.is_checked:
                    guard = replica.log.producers.verification(producer_id, epoch, sequence, is_v2)
                    if guard is not None:
                        outcome.verified[replica.topic, replica.partition] = guard
    return producers
