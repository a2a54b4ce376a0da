"""DeleteRecords (API 21, v0-2): move a partition's log start, on every replica.

Owns: the checks and the wait for the replicas to follow.
Never: deletes (partition/log/log.py does).
Kafka: ReplicaManager.deleteRecords, DelayedDeleteRecords; KIP-107.
Behaviour:
- answered when every live replica's log starts at the offset or after it;
- POLICY_VIOLATION for a topic that is only compacted.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker import registry
from kcluster.broker.broker import Broker
from kcluster.broker.purgatory import DelayedOperation
from kcluster.broker.registry import PARKED, handles
from kcluster.contract import Request
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import is_internal

HIGH_WATERMARK: Final = -1
"""The offset that means the high watermark."""

PartitionAnswer = m.DeleteRecordsResponse.DeleteRecordsPartitionResult


@handles(ApiKey.DELETE_RECORDS, versions=(0, 2))
def delete_records(broker: Broker, request: Request, now_ms: int) -> registry.Answer:
    """Move the starts of this broker's logs at once; answer when the followers have moved
    theirs."""
    response = m.DeleteRecordsResponse(topics=[])
    delayed = DelayedDeleteRecords(broker, request, response)
    for topic in request.body.topics:
        answers = []
        for wanted in topic.partitions:
            answer = PartitionAnswer(wanted.partition_index, -1, ErrorCode.NONE)
            answers.append(answer)
            delayed.delete(topic.name, wanted.offset, answer)
        response.topics.append(
            m.DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=answers)
        )
    if delayed.is_complete():
        return response
    delayed.park(request.body.timeout_ms, now_ms)
    return PARKED


class DelayedDeleteRecords(DelayedOperation):
    """Waits for the low watermark of each partition."""

    __slots__ = ("_broker", "_request", "_response", "_waiting")

    def __init__(self, broker: Broker, request: Request, response: m.DeleteRecordsResponse) -> None:
        super().__init__()
        self._broker = broker
        self._request = request
        self._response = response
        self._waiting: dict[Replica, tuple[int, PartitionAnswer]] = {}

    def delete(self, topic: str, offset: int, answer: PartitionAnswer) -> None:
        """Delete the records below `offset` in this broker's replica, or put the error into
        `answer`."""
        replica = self._broker.leader_replica(topic, answer.partition_index)
        if is_internal(topic):
            answer.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif isinstance(replica, ErrorCode):
            answer.error_code = replica
        elif "delete" not in replica.config.cleanup_policy:
            answer.error_code = ErrorCode.POLICY_VIOLATION
        else:
            target = replica.high_watermark if offset == HIGH_WATERMARK else offset
            if not 0 <= target <= replica.high_watermark:
                answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                return
            replica.advance_log_start(target)
            self._broker.replicas.touch(replica)
            answer.low_watermark = replica.low_watermark()  # also answered after a time-out
            self._waiting[replica] = (target, answer)

    def is_complete(self) -> bool:
        """Answer the partitions that are done; True if none is left to wait for."""
        for replica, (target, answer) in list(self._waiting.items()):
            low_watermark = replica.low_watermark()
            if not replica.is_leader:
                answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                answer.low_watermark = -1
            elif low_watermark >= target:
                answer.low_watermark = low_watermark
            else:
                continue
            del self._waiting[replica]
            replica.fetches_waiting.pop(self, None)
        return not self._waiting

    def park(self, timeout_ms: int, now_ms: int) -> None:
        for replica in self._waiting:
            replica.fetches_waiting[self] = self.try_complete
        self._broker.purgatory.park(self, timeout_ms, now_ms)

    def try_complete(self, _now_ms: int) -> None:
        """Answer if the partition that has moved was the last to wait for."""
        if not self.done and self.is_complete():
            self.done = True
            self._broker.reply(self._request, self._response)

    def expire(self, _now_ms: int) -> None:
        for replica, (_, answer) in self._waiting.items():
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
            replica.fetches_waiting.pop(self, None)
        self.done = True
        self._broker.reply(self._request, self._response)
