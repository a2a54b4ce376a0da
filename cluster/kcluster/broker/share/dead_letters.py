"""Dead letter queues of share groups: topics for records that a group does not deliver again.

Owns: the checks of the topic, its creation, the content of a dead letter, the requests to the
leaders of the topic, their retries.  Never: changes the state of a record (share_partition.py does,
when a batch is finished).  Kafka: ShareGroupDLQStateManager, ShareGroupDLQRecordFetcher; KIP-1191.

A dead letter is a record of its own: headers that name the group and the record, and, if the group
wants a copy, the record's key and value.  There is one for each offset, also for one without a
record.  If a leader dies between the write and storing its outcome, the next leader writes the
letter again.

Requests go over the fabric, also to this broker.  There is one request in flight per leader; later
letters wait, and are sent together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, final

from msgspec import Struct

from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.serving.appends import ACKS_ALL
from kcluster.broker.share.configs import DEAD_LETTERS_ENABLED, ShareConfigs, is_dead_letter_queue
from kcluster.broker.share.in_flight import DeadLetterBatch, DeadLetterCause
from kcluster.events.share_groups import DeadLetterProblem, DeadLettersDropped, DeadLettersWritten
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records import compression
from kcluster.protocol.records.batches import HEADER_BYTES, Batch, InvalidRecords
from kcluster.protocol.records.records import (
    Header,
    Record,
    build_batch,
    read_records,
    record_size_bytes,
)

MAX_ATTEMPTS: Final = 5
"""The most attempts of a creation, and of a write.  Kafka:
ShareGroupDLQStateManager.MAX_REQUEST_ATTEMPTS."""
_BACKOFFS_PER_TIMEOUT: Final = 30
"""The number of backoffs in request.timeout.ms: Kafka's first backoff is 1 s, a 30th of it, and
profiles scale both."""
_MAX_BACKOFFS: Final = 30
# DIFFERS: the backoff has no jitter.

_RESERVED: Final = "__"
_READ_BYTES: Final = 1 << 20
"""The number of bytes of the log that are read at once for copies.  Kafka: DLQ_MAX_FETCH_BYTES."""

_REASONS: Final = {
    DeadLetterCause.REJECTED: b"Offset rejected by client.",
    DeadLetterCause.EXHAUSTED: b"Offset delivery count exceeded the threshold.",
}
"""The contents of the header __dlq.errors.message."""


OnFinished = Callable[[int], None]
"""Called with (now_ms) when the batch is in the queue, or cannot be written to it."""


@final
class _Letters:
    """One batch on its way.  `next_offset`: the first record that is not in the queue yet."""

    __slots__ = (
        "batch", "creations", "index", "key", "next_offset", "on_finished", "replica",
        "sent_offset", "topic", "topic_id", "writes",
    )  # fmt: skip

    def __init__(
        self, key: SharePartition, replica: Replica, batch: DeadLetterBatch, on_finished: OnFinished
    ) -> None:
        self.key = key
        self.replica = replica
        self.batch = batch
        self.on_finished = on_finished
        self.next_offset = batch.first_offset
        self.sent_offset = self.next_offset - 1
        """The last record in the request in flight."""
        self.creations = 0
        self.writes = 0
        """The number of attempts that failed, or are in flight."""
        self.topic = ""
        self.topic_id = b""
        self.index = -1
        """The number of the queue's partition."""


class _Round(Struct):
    """The letters in one request, for one partition of a queue."""

    records: list[Record]
    size_bytes: int


@final
class DeadLetters:
    """The dead letters that this broker, as the leader of share partitions, sends."""

    # DIFFERS: neighbouring records that were acknowledged one by one are sent together; Kafka sends
    # a request for each, unless others wait for the leader.

    def __init__(self, broker: CoordinatorBroker, configs: ShareConfigs) -> None:
        self._broker = broker
        self._configs = configs
        self._waiting: dict[int, list[_Letters]] = {}
        """The letters to send, by leader."""
        self._in_flight: set[int] = set()
        """The leaders to which a request is in flight."""
        self._delays = 0

    def send(
        self,
        key: SharePartition,
        replica: Replica,
        batch: DeadLetterBatch,
        on_finished: OnFinished,
        now_ms: int,
    ) -> None:
        """Write records of a share partition that this broker leads to the group's queue;
        `on_finished` is called once, maybe before this returns."""
        self._route(_Letters(key, replica, batch, on_finished), now_ms)

    # ------------------------------------------------------------------------------- the topic

    def _problem_of(self, group_id: str) -> DeadLetterProblem | None:
        """The reason why the group's queue cannot be used."""
        name = self._configs.of(group_id).dead_letter_topic
        config, image = self._broker.config, self._broker.image
        if not name:
            return DeadLetterProblem.NO_QUEUE
        if name.startswith(_RESERVED):
            return DeadLetterProblem.RESERVED_NAME
        if name in image.topics:
            if not is_dead_letter_queue(image, name):
                return DeadLetterProblem.NOT_ENABLED
        elif not config.errors_deadletterqueue_auto_create_topics_enable:
            return DeadLetterProblem.NOT_CREATED
        if not name.startswith(config.errors_deadletterqueue_topic_name_prefix):
            return DeadLetterProblem.WRONG_PREFIX
        return None

    def _route(self, letters: _Letters, now_ms: int) -> None:
        """Find the leader of the queue's partition; create the topic if there is none."""
        problem = self._problem_of(letters.key.group_id)
        if problem is not None:
            self._drop(letters, problem, now_ms)
            return
        leader = self._find_leader(letters)
        if leader is None:
            # As in Kafka, the topic's existence is a reason to wait, even without a leader.
            self._create(letters, now_ms)
        else:
            self._enqueue(leader, letters, now_ms)

    def _find_leader(self, letters: _Letters) -> int | None:
        """Choose the queue's partition by the number of the records' partition.  Returns its
        leader, None if that leader is not up."""
        image = self._broker.image
        name = self._configs.of(letters.key.group_id).dead_letter_topic
        topic = image.topics.get(name)
        if topic is None:
            return None
        letters.topic, letters.topic_id = name, topic.topic_id
        letters.index = letters.key.partition % len(topic.partitions)
        leader = image.brokers.get(topic.partitions[letters.index].leader)
        return None if leader is None or leader.fenced else leader.broker_id

    def _create(self, letters: _Letters, now_ms: int) -> None:
        name = self._configs.of(letters.key.group_id).dead_letter_topic
        kind = m.CreateTopicsRequest
        configs = {DEAD_LETTERS_ENABLED: "true", "message.timestamp.type": "CreateTime"}
        topic = kind.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            configs=[kind.CreatableTopicConfig(*one) for one in configs.items()],
        )
        timeout_ms = self._broker.config.request_timeout_ms
        letters.creations += 1

        def created(body: m.CreateTopicsResponse | None, at_ms: int) -> None:
            error = ErrorCode.NETWORK_EXCEPTION if body is None else error_of(_first_error(body))
            self._on_created(letters, error, at_ms)

        body = kind(topics=[topic], timeout_ms=timeout_ms)
        self._broker.ask_controller(body, created, timeout_ms, now_ms)

    def _on_created(self, letters: _Letters, error: ErrorCode, now_ms: int) -> None:
        leader = None if error else self._find_leader(letters)
        if leader is not None:
            letters.creations = 0
            self._enqueue(leader, letters, now_ms)
        elif error not in _CREATION_MAY_PASS or letters.creations >= MAX_ATTEMPTS:
            self._drop(letters, DeadLetterProblem.CREATION_FAILED, now_ms, error)
        else:
            self._route_later(letters, letters.creations, now_ms)

    # ------------------------------------------------------------------------------- the write

    def _enqueue(self, leader: int, letters: _Letters, now_ms: int) -> None:
        self._waiting.setdefault(leader, []).append(letters)
        self._send_to(leader, now_ms)

    def _send_to(self, leader: int, now_ms: int) -> None:
        """Send the waiting letters to a leader, unless a request to it is in flight."""
        waiting = self._waiting.get(leader)
        if not waiting or leader in self._in_flight:
            return
        rounds: dict[tuple[bytes, int], _Round] = {}
        sent: list[_Letters] = []
        left: list[_Letters] = []
        for letters in waiting:
            limit = self._max_message_bytes(letters.topic)
            round_ = _round_of(letters, limit, self._copies(letters, limit), now_ms)
            key = (letters.topic_id, letters.index)
            before = rounds.get(key)
            if before is None:
                rounds[key] = round_
            elif before.size_bytes + round_.size_bytes <= limit:
                before.records += round_.records
                before.size_bytes += round_.size_bytes
            else:
                left.append(letters)
                continue
            sent.append(letters)
        self._waiting[leader] = left
        self._in_flight.add(leader)
        for letters in sent:
            letters.writes += 1
        self._broker.ask_broker(
            leader,
            _produce_request(rounds, self._broker.config.request_timeout_ms),
            lambda body, at_ms: self._on_written(leader, sent, body, at_ms),
            self._broker.config.request_timeout_ms,
            now_ms,
        )

    def _on_written(
        self, leader: int, sent: list[_Letters], body: m.ProduceResponse | None, now_ms: int
    ) -> None:
        self._in_flight.discard(leader)
        errors = {} if body is None else _errors_of(body)
        missing = ErrorCode.NETWORK_EXCEPTION if body is None else ErrorCode.UNKNOWN_SERVER_ERROR
        for letters in sent:
            error = errors.get((letters.topic_id, letters.index), missing)
            if not error:
                self._on_round_written(leader, letters, now_ms)
            elif error not in _WRITE_MAY_PASS or letters.writes >= MAX_ATTEMPTS:
                self._drop(letters, DeadLetterProblem.PRODUCE_FAILED, now_ms, error)
            else:
                self._route_later(letters, letters.writes, now_ms)
        self._send_to(leader, now_ms)

    def _on_round_written(self, leader: int, letters: _Letters, now_ms: int) -> None:
        letters.writes = 0
        letters.next_offset = letters.sent_offset + 1
        if letters.next_offset <= letters.batch.last_offset:
            self._waiting.setdefault(leader, []).append(letters)
            return
        self._broker.note(
            DeadLettersWritten(
                **_place(letters), queue_topic=letters.topic, queue_partition=letters.index
            ),
            letters.replica.cause,
        )
        letters.on_finished(now_ms)

    def _route_later(self, letters: _Letters, attempts: int, now_ms: int) -> None:
        first_ms = max(1, self._broker.config.request_timeout_ms // _BACKOFFS_PER_TIMEOUT)
        backoff_ms = first_ms * min(_MAX_BACKOFFS, 1 << attempts - 1)
        self._delays += 1
        timer = ("dead letters", self._delays)
        self._broker.timers.set(
            timer, now_ms + backoff_ms, lambda at_ms: self._route(letters, at_ms)
        )

    def _drop(
        self,
        letters: _Letters,
        problem: DeadLetterProblem,
        now_ms: int,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        name = self._configs.of(letters.key.group_id).dead_letter_topic
        self._broker.note(
            DeadLettersDropped(
                **_place(letters),
                queue_topic=name,
                problem=problem,
                error=error.name if error else "",
            )
        )
        letters.on_finished(now_ms)

    def _max_message_bytes(self, topic: str) -> int:
        own = self._broker.image.topic_configs(topic).get("max.message.bytes")
        return self._broker.config.message_max_bytes if own is None else int(own)

    def _copies(self, letters: _Letters, limit: int) -> _Copies:
        """The original records, if the group wants copies of them."""
        copies = _Copies(letters.next_offset, letters.batch.last_offset, limit)
        if self._configs.of(letters.key.group_id).copies_dead_letters:
            copies.read(letters.replica)
        else:
            copies.resolve_all()
        return copies


# ----------------------------------------------------------------------------------------- copies


@final
class _Copies:
    """The original records of some offsets, as many as fit into `limit` bytes.

    `resolved_offset`: the offset up to which the copies are complete; the rest is copied in the
    next round.  A record that is too large by itself, or that cannot be read, has no copy.
    """

    __slots__ = ("_end_offset", "_limit", "_size_bytes", "records", "resolved_offset")

    def __init__(self, first_offset: int, last_offset: int, limit: int) -> None:
        self.records: dict[int, Record] = {}
        self.resolved_offset = first_offset - 1
        self._end_offset = last_offset + 1
        self._limit = limit
        self._size_bytes = 0

    def resolve_all(self) -> None:
        self.resolved_offset = self._end_offset - 1

    def read(self, replica: Replica) -> None:
        """Take the committed records from the log, if this broker still leads it."""
        log = replica.log
        while replica.is_leader and self.resolved_offset + 1 < self._end_offset:
            next_offset = self.resolved_offset + 1
            if not log.log_start_offset <= next_offset < replica.high_watermark:
                break
            batches = log.read(next_offset, _READ_BYTES, replica.high_watermark)
            if not batches:
                break
            for batch in batches:
                if not self._take(batch):
                    return
        self.resolve_all()

    def _take(self, batch: Batch) -> bool:
        """Copy the wanted records of a batch.  False: the rest is for the next round."""
        first, last = self.resolved_offset + 1, min(batch.last_offset, self._end_offset - 1)
        is_compressed = batch.codec != compression.NONE
        try:
            records = read_records(batch, self._limit if is_compressed else compression.SIZE_MAX)
        except InvalidRecords:
            records = []
        for record in records:
            if not first <= record.offset <= last:
                continue
            size_bytes = record_size_bytes(record, record.offset - batch.base_offset)
            if size_bytes > self._limit:
                continue
            if self._size_bytes + size_bytes > self._limit:
                self.resolved_offset = record.offset - 1
                return False
            self.records[record.offset] = record
            self._size_bytes += size_bytes
        self.resolved_offset = last
        return True


# --------------------------------------------------------------------------------------- messages

_CREATION_MAY_PASS: Final = (
    ErrorCode.NONE,  # the topic is not in this broker's metadata yet
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)
_WRITE_MAY_PASS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION)


def _round_of(letters: _Letters, limit: int, copies: _Copies, now_ms: int) -> _Round:
    """The dead letters of the next request: at least one, and no more than fit into `limit`
    bytes."""
    last_offset = max(letters.next_offset, copies.resolved_offset)
    round_ = _Round([], HEADER_BYTES)
    for offset in range(letters.next_offset, last_offset + 1):
        original = copies.records.get(offset)
        letter = Record(
            offset=-1,
            timestamp=now_ms,
            key=None if original is None else original.key,
            value=None if original is None else original.value,
            headers=tuple(_headers(letters, offset)),
        )
        size_bytes = record_size_bytes(letter, len(round_.records))
        if round_.records and round_.size_bytes + size_bytes > limit:
            break
        round_.records.append(letter)
        round_.size_bytes += size_bytes
    letters.sent_offset = letters.next_offset + len(round_.records) - 1
    return round_


def _headers(letters: _Letters, offset: int) -> Iterator[Header]:
    batch = letters.batch
    yield "__dlq.errors.topic", letters.replica.topic.encode()
    yield "__dlq.errors.partition", b"%d" % letters.key.partition
    yield "__dlq.errors.offset", b"%d" % offset
    yield "__dlq.errors.group", letters.key.group_id.encode()
    yield "__dlq.errors.delivery.count", b"%d" % batch.delivery_count
    yield "__dlq.errors.message", _REASONS[batch.cause]


def _produce_request(rounds: dict[tuple[bytes, int], _Round], timeout_ms: int) -> m.ProduceRequest:
    kind = m.ProduceRequest
    topics: dict[bytes, m.ProduceRequest.TopicProduceData] = {}
    for (topic_id, index), round_ in rounds.items():
        if topic_id not in topics:
            topics[topic_id] = kind.TopicProduceData(topic_id=topic_id)
        records = memoryview(build_batch(round_.records))
        topics[topic_id].partition_data.append(kind.PartitionProduceData(index, records))
    return kind(acks=ACKS_ALL, timeout_ms=timeout_ms, topic_data=list(topics.values()))


def _errors_of(body: m.ProduceResponse) -> dict[tuple[bytes, int], ErrorCode]:
    return {
        (topic.topic_id, one.index): error_of(one.error_code)
        for topic in body.responses
        for one in topic.partition_responses
    }


def _first_error(body: m.CreateTopicsResponse) -> int:
    return body.topics[0].error_code if body.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _place(letters: _Letters) -> dict[str, Any]:
    """The place of the records, for every event about them."""
    return {
        "group": letters.key.group_id,
        "topic": letters.replica.topic,
        "partition": letters.key.partition,
        "broker": letters.replica.broker_id,
        "first_offset": letters.batch.first_offset,
        "last_offset": letters.batch.last_offset,
    }
