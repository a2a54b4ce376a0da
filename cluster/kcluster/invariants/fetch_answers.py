"""What consumers get from a leader or a follower, compared with what they asked for.

Owns: each Fetch answer that is larger than its request allows, has records from elsewhere, denies
that its broker leads, or sends a consumer to a follower that may lag.  Never: looks into a log or a
session.  Kafka: ReplicaManager.{readFromLog, findPreferredReadReplica}, LocalLog.read; KIP-74,
KIP-392.

    fetch-over-limit   more than the request's max_bytes, though not by the first batch alone
    fetch-elsewhere    the records of a partition that the request names end before its fetch
                       offset, or follow one another out of order
    leader-denied      a leader answers as if it did not lead the partition, or had none of it
    redirected-outside a leader names a broker outside its ISR as the preferred read replica

The first batch of an answer comes whole, however large it is.  Compaction leaves gaps, so records
may begin after the fetch offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kcluster.invariants.facts import (
    AnswerDiffers,
    LeaderDenied,
    Measure,
    Observed,
    OutOfBounds,
    SentOutside,
)
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.errors import ErrorCode

_Place = tuple[str | bytes, int]
"""(topic id, or the name before there were ids; partition)."""
_DENIALS: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)  # fmt: skip
ReplicaOf = Callable[[bytes, str, int], Replica | None]
"""(topic id, topic, partition) -> the broker's replica; the name is for answers without ids."""


def misfetched(asked: m.FetchRequest, answer: m.FetchResponse) -> Iterator[tuple[str, Observed]]:
    """What an answer breaks.  Records in old formats are bytes, and not looked at."""
    size_bytes = batches = 0
    wanted: dict[_Place, int] | None = None
    for topic in answer.responses:
        for data in topic.partitions:
            records = data.records
            if type(records) is not list or not records:
                continue
            batches += len(records)
            for batch in records:
                size_bytes += batch.size_bytes
            if wanted is None:
                wanted = _fetch_offsets(asked)
            offset = wanted.get(_place(topic, data.partition_index), 0)
            for batch in records:
                if batch.last_offset < offset:
                    what = f"the offset that follows {offset} in partition {data.partition_index}"
                    given, due = str(batch.last_offset), f"{offset} or later"
                    yield "fetch-elsewhere", AnswerDiffers(what, given, due)
                    break
                offset = batch.last_offset + 1
    if size_bytes > asked.max_bytes and batches > 1:
        got = (Measure.BYTES, size_bytes, Measure.MAX_BYTES, asked.max_bytes)
        yield "fetch-over-limit", OutOfBounds(*got)


def misdirected(
    answer: m.FetchResponse, replica_of: ReplicaOf
) -> Iterator[tuple[Replica, str, Observed]]:
    """The partitions that a broker leads although its answer denies that, or sends the consumer to
    a broker outside the ISR; each with what is broken."""
    for topic in answer.responses:
        for data in topic.partitions:
            preferred = data.preferred_read_replica
            is_denied = data.error_code in _DENIALS
            if preferred < 0 and not is_denied:
                continue
            replica = replica_of(topic.topic_id, topic.topic, data.partition_index)
            if replica is None or not replica.is_leader:
                continue
            if is_denied:
                denied = LeaderDenied(ErrorCode(data.error_code).name, replica.leader_epoch)
                yield replica, "leader-denied", denied
            elif preferred not in replica.isr:
                isr = tuple(replica.isr)
                yield replica, "redirected-outside", SentOutside(preferred, isr)


def _fetch_offsets(asked: m.FetchRequest) -> dict[_Place, int]:
    return {
        _place(topic, one.partition): one.fetch_offset
        for topic in asked.topics
        for one in topic.partitions
    }


def _place(
    topic: m.FetchRequest.FetchTopic | m.FetchResponse.FetchableTopicResponse, partition: int
) -> _Place:
    return (topic.topic_id if topic.topic_id != ZERO_UUID else topic.topic, partition)
