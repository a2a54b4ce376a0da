"""Rows of what clients sent, got and committed, from their requests and the answers to them.

Owns: reading these rows from decoded messages.  Never: opens a record of a batch, writes a row
(recording.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from kcluster.evidence.exchanges import error_codes
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS
from kcluster.protocol.codec.primitives import Buffer
from kcluster.protocol.errors import error_of
from kcluster.protocol.messages import Message
from kcluster.protocol.records.batches import (
    CRC_AT,
    CRC_START,
    Batch,
    InvalidRecords,
    parse_batches,
)
from kcluster.proxy.exchange import AskedRequest, Exchange
from kcluster.runs.proxied_rows import BatchHead, FetchedRow, ProducedRow, TransactionRequestRow
from kcluster.runs.record import CommitRow

READ_COMMITTED = 1
MAX_BATCH_RECORDS = 1 << 20
"""The most records that a batch of Kafka's default message.max.bytes has in practice: a record is
7 bytes before compression."""
UNANSWERED = "UNANSWERED"
"""The error of a commit whose answer the client did not get."""

TopicName = Callable[[bytes], str]
"""The name of a topic by its id, empty if it is not known."""
Commits = m.OffsetCommitRequest | m.TxnOffsetCommitRequest
Transactional = (
    m.InitProducerIdRequest
    | m.AddPartitionsToTxnRequest
    | m.AddOffsetsToTxnRequest
    | m.EndTxnRequest
    | m.TxnOffsetCommitRequest
)


class Ended(Struct, frozen=True):
    """The end of an exchange.  `is_answered`: whether the client got an answer."""

    at_ms: int
    exchange: Exchange
    connection: int
    broker: int
    is_answered: bool

    def columns(self) -> tuple[int, int, int, str, int, int, int]:
        """The first columns of a row that may have no answer."""
        return (
            self.at_ms,
            self.exchange.asked_ms,
            self.at_ms if self.is_answered else -1,
            self.exchange.client_id,
            self.connection,
            self.exchange.correlation_id,
            self.broker,
        )


def asked_request(body: Message) -> AskedRequest:
    """What is kept of a request until its answer; a Produce loses its records here."""
    kept = AskedRequest(body)
    if isinstance(body, m.ProduceRequest):
        for topic in body.topic_data:
            for data in topic.partition_data:
                heads = heads_of(data.records)
                kept.heads.append((topic.topic_id, topic.name, data.index, heads))
                data.records = None
    return kept


def heads_of(records: Buffer | list[Batch] | None) -> list[BatchHead]:
    """The headers of batches; none for bytes that are no batches of format v2.  A header that
    announces more records than there can be is left out: the broker refuses such a batch."""
    if not records:
        return []
    try:
        batches = records if isinstance(records, list) else parse_batches(records)
    except InvalidRecords:
        return []
    return [_head(batch) for batch in batches if _is_plausible(batch)]


def _is_plausible(batch: Batch) -> bool:
    span = batch.last_offset - batch.base_offset + 1
    return 0 <= batch.record_count <= min(span, MAX_BATCH_RECORDS)


def _head(batch: Batch) -> BatchHead:
    return BatchHead(
        batch.base_offset,
        batch.last_offset,
        batch.record_count,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.attributes,
        batch.size_bytes,
        int.from_bytes(memoryview(batch.buffer)[CRC_AT:CRC_START]),
        batch.base_timestamp,
    )


def produced(
    ended: Ended, asked: AskedRequest, answer: Message | None, name_of: TopicName
) -> Iterator[ProducedRow]:
    """The partitions of a Produce."""
    answers = {}
    if isinstance(answer, m.ProduceResponse):
        answers = {
            (topic.topic_id, topic.name, data.index): data
            for topic in answer.responses
            for data in topic.partition_responses
        }
    request = asked.body
    assert isinstance(request, m.ProduceRequest)
    for topic_id, topic, index, heads in asked.heads:
        data = answers.get((topic_id, topic, index))
        yield ProducedRow(
            *ended.columns(),
            topic=topic or name_of(topic_id),
            partition=index,
            acks=request.acks,
            transactional_id=request.transactional_id,
            batches=heads,
            base_offset=-1 if data is None else data.base_offset,
            error="" if data is None else error_name(data.error_code),
        )


def fetched(
    ended: Ended, asked: AskedRequest, answer: m.FetchResponse, name_of: TopicName
) -> Iterator[FetchedRow]:
    """The partitions of a Fetch answer that have records or an error."""
    request, exchange = asked.body, ended.exchange
    assert isinstance(request, m.FetchRequest)
    for topic in answer.responses:
        for data in topic.partitions:
            if not data.records and not data.error_code:
                continue
            part = asked.parts.get((topic.topic_id, topic.topic or "", data.partition_index))
            yield FetchedRow(
                at_ms=ended.at_ms,
                asked_ms=exchange.asked_ms,
                answered_ms=ended.at_ms if ended.is_answered else -1,
                client_id=exchange.client_id,
                connection=ended.connection,
                correlation_id=exchange.correlation_id,
                broker=ended.broker,
                topic=topic.topic or name_of(topic.topic_id),
                partition=data.partition_index,
                read_committed=request.isolation_level == READ_COMMITTED,
                fetch_offset=-1 if part is None else part.offset,
                high_watermark=data.high_watermark,
                last_stable_offset=data.last_stable_offset,
                batches=heads_of(data.records),
                aborted=[(x.producer_id, x.first_offset) for x in data.aborted_transactions or ()],
                error=error_name(data.error_code),
            )


def commits(
    ended: Ended, request: Commits, answer: Message | None, name_of: TopicName
) -> Iterator[CommitRow]:
    """The partitions of an OffsetCommit or a TxnOffsetCommit."""
    errors: dict[tuple[str, bytes, int], int] = {}
    if isinstance(answer, m.OffsetCommitResponse | m.TxnOffsetCommitResponse):
        for answered in answer.topics:
            for result in answered.partitions:
                place = answered.name, answered.topic_id, result.partition_index
                errors[place] = result.error_code
    for topic in request.topics:
        for data in topic.partitions:
            code = errors.get((topic.name, topic.topic_id, data.partition_index))
            error = UNANSWERED if code is None or not ended.is_answered else error_name(code)
            yield CommitRow(
                group=request.group_id,
                member=request.member_id,
                generation=request.generation_id_or_member_epoch,
                client=ended.exchange.client_id,
                topic=topic.name or name_of(topic.topic_id),
                partition=data.partition_index,
                offset=data.committed_offset,
                broker=ended.broker,
                at_ms=ended.at_ms,
                error=error,
            )


def transaction_request(
    ended: Ended, request: Transactional, answer: Message | None
) -> TransactionRequestRow:
    """A request that begins, extends or ends a transaction."""
    code = 0 if answer is None else next((code for code in error_codes(answer) if code), 0)
    row = TransactionRequestRow(
        *ended.columns(), api=APIS[ended.exchange.api_key].name, error=error_name(code)
    )
    if isinstance(request, m.AddPartitionsToTxnRequest):
        row.transactional_id = request.v3_and_below_transactional_id
        row.producer_id = request.v3_and_below_producer_id
        row.producer_epoch = request.v3_and_below_producer_epoch
        row.partitions = [
            (topic.name, index)
            for topic in request.v3_and_below_topics
            for index in topic.partitions
        ]
        return row
    row.transactional_id = request.transactional_id
    source = answer if isinstance(answer, m.InitProducerIdResponse) else request
    row.producer_id, row.producer_epoch = source.producer_id, source.producer_epoch
    if isinstance(request, m.EndTxnRequest):
        row.committed = request.committed
    elif isinstance(request, m.AddOffsetsToTxnRequest | m.TxnOffsetCommitRequest):
        row.group = request.group_id
    return row


def error_name(code: int) -> str:
    """Kafka's name of an error; empty for none."""
    return error_of(code).name if code else ""
