"""Produce (API 0, v3-13): append batches to the partitions that this broker leads.

Owns: the order of checks before an append, and the response.  Never: opens records (only
partition/log/log.py does, where it must), waits (appends.py does).
Kafka: KafkaApis.handleProduceRequest.
Behaviour: acks=0 gets no answer, and a closed connection on an error; acks=1 is answered after the
  append, acks=all when the high watermark has passed it.
Versions: v0-2 (to 3.9) message sets (old_formats.py), v7 zstd (KIP-110), v8 record errors
  (KIP-467), v10 leader hints (KIP-951), v13 topic ids (KIP-516).
Not done: transactions (v12's implicit partitions), quotas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from kcluster.broker.appends import ACKS_ALL, DelayedAppend
from kcluster.broker.fetching import current_leader, node_endpoints
from kcluster.broker.handlers.produce_once import once_each
from kcluster.broker.old_formats import FIRST_PRODUCE_OF_BATCHES, as_of_its_time, take_message_set
from kcluster.broker.registry import NO_RESPONSE, PARKED, handles
from kcluster.broker.versions import LATEST
from kcluster.contract import CloseConnection, Request
from kcluster.partition.log.log import Appended
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode

FIRST_VERSION_WITH_ZSTD: Final = 7
FIRST_VERSION_WITH_HINTS: Final = 10
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
ZSTD: Final = 4
TRANSACTIONAL: Final = 0x10
_ATTRIBUTES_LOW_BYTE: Final = 22
"""Where a v2 batch holds its compression type and flags: the low byte of its attributes."""
ADMIN_CLIENT_ID: Final = "__admin_client"
_NO_SUCH_PARTITION: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID,
)  # fmt: skip

Answer: Final = m.ProduceResponse
TopicAnswer: Final = m.ProduceResponse.TopicProduceResponse
PartitionAnswer: Final = m.ProduceResponse.PartitionProduceResponse
_NO_HINT: Final = m.ProduceResponse.LeaderIdAndEpoch()


@final
class DelayedProduce(DelayedAppend):
    """A producer's request, until it can be answered.  Kafka: DelayedProduce."""

    __slots__ = ("_broker", "_request", "_response")

    def __init__(self, broker: BrokerNode, request: Request, response: m.ProduceResponse) -> None:
        super().__init__()
        self._broker = broker
        self._request = request
        self._response = response

    def on_failed(self, answer: Any, error: ErrorCode) -> None:
        _fail(answer, error)

    def on_done(self, now_ms: int) -> None:
        self._broker.reply(self._request, _with_hints(self._broker, self._request, self._response))


@handles(ApiKey.PRODUCE, versions=(3, 13))
def produce(broker: BrokerNode, request: Request, now_ms: int) -> Any:
    """Append each partition's batch; answer when the acks asked for are there."""
    body: m.ProduceRequest = request.body
    acks = body.acks
    topics: list[m.ProduceResponse.TopicProduceResponse] = []
    response = Answer(topics)
    delayed: DelayedProduce | None = None
    moved = broker.replicas.moved
    topic_data = body.topic_data
    if len(topic_data) != 1 or len(topic_data[0].partition_data) != 1:
        topic_data = once_each(topic_data)
    for topic in topic_data:
        answers: list[m.ProduceResponse.PartitionProduceResponse] = []
        topics.append(TopicAnswer(topic.name, topic.topic_id, answers))
        for data in topic.partition_data:
            index = data.index
            replica = _find_leader(broker, request, topic, data, index, acks)
            if not isinstance(replica, Replica):
                answers.append(_failed(index, replica))
                continue
            appended = replica.append_as_leader(data.records, acks, now_ms)
            data.records = None
            if appended.error:
                answers.append(_refused(index, appended))
                continue
            answer = PartitionAnswer(
                index, appended.error, appended.base_offset, appended.log_append_time_ms,
                appended.log_start_offset, [], None, _NO_HINT,
            )  # fmt: skip
            answers.append(answer)
            moved[replica] = None
            if acks == ACKS_ALL:
                if delayed is None:
                    delayed = DelayedProduce(broker, request, response)
                delayed.wait_for(replica, appended.last_offset + 1, answer)
    if acks == 0:
        return _silent(broker, request, response)
    if delayed is None:
        return _with_hints(broker, request, response)
    # What needs nobody else (RF 1, a lone ISR) is answered when the step wakes who waits.
    broker.purgatory.park(delayed, max(0, body.timeout_ms), now_ms)
    return PARKED


def _find_leader(
    broker: BrokerNode, request: Request, topic: Any, data: Any, index: int, acks: int
) -> Replica | ErrorCode:
    """The replica to append to, or the first thing that speaks against it: NONE where a message
    set has nothing in it."""
    if request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        replica = broker.replicas.find_by_id(topic.topic_id, index)
    else:
        replica = broker.replicas.find(topic.name, index)
    if not isinstance(replica, Replica) and replica in _NO_SUCH_PARTITION:
        return replica
    records = data.records
    if not records and (records is None or request.api_version >= FIRST_PRODUCE_OF_BATCHES):
        # DIFFERS: null records get no answer from 4.3.1 at all; an error is what is meant.
        return ErrorCode.INVALID_RECORD
    if len(records) > _ATTRIBUTES_LOW_BYTE and request.api_version >= FIRST_PRODUCE_OF_BATCHES:
        attributes = records[_ATTRIBUTES_LOW_BYTE]
        if attributes & TRANSACTIONAL and request.body.transactional_id is None:
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
        error = take_message_set(broker, data)
        return error if error or not data.records else replica
    return replica


def _fail(answer: Any, error: ErrorCode) -> None:
    answer.error_code = error
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1


def _failed(index: int, error: ErrorCode) -> m.ProduceResponse.PartitionProduceResponse:
    return PartitionAnswer(index, error, -1, -1, -1, [], None, _NO_HINT)


def _refused(index: int, appended: Appended) -> m.ProduceResponse.PartitionProduceResponse:
    """The log did not take the batch.  As from Kafka, there are words only about single records."""
    answer = _failed(index, appended.error)
    answer.log_start_offset = appended.log_start_offset
    if appended.record_errors:
        answer.error_message = appended.error_message
        answer.record_errors = [
            m.ProduceResponse.BatchIndexAndErrorMessage(index, text)
            for index, text in appended.record_errors
        ]
    return answer


def _with_hints(
    broker: BrokerNode, request: Request, response: m.ProduceResponse
) -> m.ProduceResponse:
    """Tell who leads where this broker does not (KIP-951)."""
    if request.api_version < FIRST_VERSION_WITH_HINTS:
        if broker.release is not LATEST:
            as_of_its_time(broker, response)
        return response
    leaders: dict[int, None] = {}
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leader, epoch = current_leader(broker, topic.name, topic.topic_id, answer.index)
                answer.current_leader = m.ProduceResponse.LeaderIdAndEpoch(leader, epoch)
                leaders[leader] = None
    if leaders:
        response.node_endpoints = node_endpoints(broker, leaders, m.ProduceResponse.NodeEndpoint)
    return response


def _silent(broker: BrokerNode, request: Request, response: m.ProduceResponse) -> Any:
    """acks=0: a producer that hears nothing learns of an error by its connection closing."""
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
