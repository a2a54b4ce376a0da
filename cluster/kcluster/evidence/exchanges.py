"""Clients' requests and answers, and the beliefs that follow from them.

Owns: one row per request with its answer, the leader of each partition in each client's view, and
the choice of rows to keep.  Never: waits for an answer, judges one.  Kafka: no counterpart; each
client has its own part of this in its log.

Rows are in order of time.  Beyond MAX_EXCHANGES the older half loses its routine: requests that
ended like their predecessor for one client, broker, API and partition.  If that is not enough, the
oldest rows are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.contract import Reply, Request
from kcluster.events.render import api_name
from kcluster.evidence.client_names import client_name
from kcluster.evidence.kept_rows import StateRows
from kcluster.evidence.rows import BeliefRow, ExchangeRow
from kcluster.invariants.observed import ObservedPartition, PartitionKey
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import error_of
from kcluster.protocol.messages import Message

MAX_EXCHANGES: Final = 30_000
MAX_BELIEFS: Final = 50_000
MAX_NAMES: Final = 10_000

_PRODUCE: Final = int(ApiKey.PRODUCE)
_PRODUCE_NAME: Final = api_name(_PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_SHARE_FETCH: Final = int(ApiKey.SHARE_FETCH)
_WITH_LEADERS: Final = (int(ApiKey.METADATA), int(ApiKey.DESCRIBE_TOPIC_PARTITIONS))


if TYPE_CHECKING:
    Fetched = m.FetchResponse.PartitionData
    Shared = m.ShareFetchResponse.PartitionData
    Refused = m.ProduceResponse.PartitionProduceResponse | Fetched | Shared

Offsets = Callable[..., tuple[int, int] | None]


class Exchanges:
    """All requests of clients.  `simulated`: names of simulated clients; `topics`: names by topic
    id, which the owner updates."""

    def __init__(self, simulated: Mapping[int, str], max_rows: int = MAX_EXCHANGES) -> None:
        self.rows: list[ExchangeRow] = []
        self.beliefs: StateRows[tuple[str, str, int], BeliefRow] = StateRows(
            lambda row: (row.client, row.topic, row.partition), MAX_BELIEFS
        )
        self.topics: dict[bytes, str] = {}
        self.dropped_rows = 0
        self.max_rows = max_rows
        self._simulated = simulated
        self._apis: dict[int, str] = {}
        self._clients: dict[str | None, str] = {}

    # ------------------------------------------------------------------------- recording

    def answered(self, at_ms: int, broker: int, reply: Reply) -> ExchangeRow:
        """Add a broker's answer.  For a Produce, `last` of the row must be set later, because the
        answer does not name it."""
        request, body = reply.request, reply.body
        row = self._new(at_ms, broker, request)
        api = request.api_key
        if api == _PRODUCE:
            row.acks = request.body.acks
        if body is None:
            self._read_topics(row, request.body)
            return row  # acks=0: nothing is sent
        row.answered_ms = at_ms
        if api == _PRODUCE:
            self._read_produce(row, body)
        elif api == _FETCH:
            self._read_fetch(row, body, _fetched)
        elif api == _SHARE_FETCH:
            self._read_fetch(row, body, _acquired)
        elif api in _WITH_LEADERS:
            self._read_metadata(row, body)
        else:
            self._read_topics(row, request.body)
            row.error = _first_error(body)
        return row

    def unanswered(self, at_ms: int, broker: int, request: Request) -> None:
        """Add a request that has ended without an answer."""
        self._read_topics(self._new(at_ms, broker, request), request.body)

    def trim(self) -> None:
        """Drop rows beyond the bound."""
        excess = len(self.rows) - self.max_rows
        if excess > 0:
            half = len(self.rows) // 2
            kept = list(_without_routine(self.rows[:half]))
            newer = len(self.rows) - half
            kept = kept[max(0, len(kept) + newer - self.max_rows * 3 // 4) :]
            self.dropped_rows += half - len(kept)
            self.rows[:half] = kept
        self.beliefs.trim()

    def _new(self, at_ms: int, broker: int, request: Request) -> ExchangeRow:
        api_key, client_id = request.api_key, request.client_id
        api = self._apis.get(api_key)
        if api is None:
            api = self._apis[api_key] = api_name(api_key)
        client = self.client(client_id)
        row = ExchangeRow(at_ms, client, broker, api, request.arrived_ms, -1)
        self.rows.append(row)
        return row

    def client(self, client_id: str | None) -> str:
        """The name of a client."""
        client = self._clients.get(client_id)
        if client is None:
            if len(self._clients) >= MAX_NAMES:
                self._clients.clear()
            client = self._clients[client_id] = client_name(client_id, self._simulated)
        return client

    # --------------------------------------------------------------------------- answers

    def _read_produce(self, row: ExchangeRow, body: m.ProduceResponse) -> None:
        for topic in body.responses:
            for data in topic.partition_responses:
                row.partitions += 1
                if row.partitions > 1 and (row.error or not data.error_code):
                    continue
                name = topic.name or self.topics.get(topic.topic_id, "")
                row.topic, row.partition = name, data.index
                if data.error_code:
                    self._read_error(row, name, data.index, data)
                elif data.base_offset >= 0:
                    row.first = row.last = data.base_offset

    def _read_fetch(
        self, row: ExchangeRow, body: m.FetchResponse | m.ShareFetchResponse, of: Offsets
    ) -> None:
        """Read a Fetch or a ShareFetch; `of(partition)` returns the offsets in the answer."""
        if body.error_code:
            row.error = error_of(body.error_code).name
        shown = -1
        for topic in body.responses:
            for data in topic.partitions:
                row.partitions += 1
                offsets = of(data)
                rank = 2 if data.error_code else 0 if offsets is None else 1
                if rank <= shown:
                    continue
                shown = rank
                # Old versions have the topic's name; ShareFetch has only its id.
                name = self.topics.get(topic.topic_id, "") or str(getattr(topic, "topic", ""))
                row.topic, row.partition = name, data.partition_index
                if rank == 2:
                    self._read_error(row, name, data.partition_index, data)
                elif offsets is not None:
                    row.first, row.last = offsets

    def _read_error(self, row: ExchangeRow, topic: str, partition: int, data: Refused) -> None:
        """Read a refusal for one partition, which may name its leader (KIP-951)."""
        row.error = error_of(data.error_code).name
        row.first = row.last = -1
        leader, epoch = data.current_leader.leader_id, data.current_leader.leader_epoch
        if epoch >= 0:
            row.leader, row.leader_epoch = leader, epoch
            self._believe(row, topic, partition, leader, epoch)

    def _read_metadata(
        self, row: ExchangeRow, body: m.MetadataResponse | m.DescribeTopicPartitionsResponse
    ) -> None:
        for topic in body.topics:
            name = topic.name or self.topics.get(topic.topic_id, "")
            if topic.error_code and not row.error:
                row.topic, row.error = name, error_of(topic.error_code).name
            for data in topic.partitions:
                row.partitions += 1
                leader, epoch = data.leader_id, data.leader_epoch
                self._believe(row, name, data.partition_index, leader, epoch)
                if row.partitions == 1 or (data.error_code and not row.error):
                    row.topic, row.partition = name, data.partition_index
                    row.leader, row.leader_epoch = leader, epoch
                    if data.error_code:
                        row.error = error_of(data.error_code).name

    def _read_topics(self, row: ExchangeRow, body: Message) -> None:
        """The topics that a request names, in one of the fields that requests have for them."""
        for field in _TOPICS:
            topics = getattr(body, field, None)
            if isinstance(topics, list) and topics and isinstance(topics[0], Struct):
                break
        else:
            return
        for topic in topics:
            partitions: list[object] = []
            for field in _PARTITIONS:
                partitions = getattr(topic, field, None) or partitions
            row.partitions += len(partitions)
            if row.topic is None:
                name = getattr(topic, "name", None) or getattr(topic, "topic", None)
                row.topic = name or self.topics.get(getattr(topic, "topic_id", b""))
                if partitions:
                    row.partition = _number_of(partitions[0])

    def _believe(
        self, row: ExchangeRow, topic: str, partition: int, leader: int, epoch: int
    ) -> None:
        old = self.beliefs.newest.get((row.client, topic, partition))
        if old is None or old.leader != leader or old.leader_epoch != epoch:
            belief = BeliefRow(row.client, topic, partition, leader, epoch, row.at_ms)
            self.beliefs.add(belief)


def _fetched(data: Fetched) -> tuple[int, int] | None:
    records = data.records
    if type(records) is not list or not records:
        return None  # old formats arrive as bytes
    return records[0].base_offset, records[-1].last_offset


def _acquired(data: Shared) -> tuple[int, int] | None:
    acquired = data.acquired_records
    return (acquired[0].first_offset, acquired[-1].last_offset) if acquired else None


class AppendEnds:
    """The end offsets of batches that leaders appended, for the rows of their requests."""

    def __init__(self) -> None:
        self._ends: dict[tuple[int, str, int, int], int] = {}
        self._read: dict[PartitionKey, int] = {}

    def read(self, partitions: Iterable[ObservedPartition]) -> None:
        """Take over the appends since the last call."""
        for observed in partitions:
            appends = observed.appends
            for append in appends[self._read.get(observed.key, 0) :]:
                key = (append.broker, observed.topic, observed.partition, append.base_offset)
                self._ends[key] = append.last_offset
            self._read[observed.key] = len(appends)

    def complete(self, row: ExchangeRow) -> None:
        """Set the last offset in the row of a Produce that was acked."""
        if (
            row.first >= 0
            and row.api == _PRODUCE_NAME
            and row.topic is not None
            and row.partition is not None
        ):
            key = (row.broker, row.topic, row.partition, row.first)
            row.last = max(row.last, self._ends.pop(key, -1))


def _without_routine(rows: list[ExchangeRow]) -> Iterator[ExchangeRow]:
    """The rows that ended differently from their predecessor for one client, broker, API and
    partition."""
    before: dict[tuple[object, ...], tuple[str, bool]] = {}
    for row in rows:
        key = (row.client, row.broker, row.api, row.topic, row.partition)
        end = (row.error, row.answered_ms >= 0)
        if before.get(key) != end:
            yield row
        before[key] = end


def _first_error(body: Message) -> str:
    code = next((code for code in error_codes(body) if code), 0)
    return error_of(code).name if code else ""


_TOPICS: Final = ("topics", "topic_data")
_PARTITIONS: Final = ("partitions", "partition_data", "partition_indexes")
_NUMBERS: Final = ("partition_index", "partition", "index")


def _number_of(partition: object) -> int | None:
    if isinstance(partition, int):
        return partition
    for field in _NUMBERS:
        number = getattr(partition, field, None)
        if isinstance(number, int):
            return number
    return None


def error_codes(message: Struct) -> Iterator[int]:
    """Every error code in a response, at any depth."""
    for field in message.__struct_fields__:
        value = getattr(message, field)
        if field == "error_code":
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            for item in value:
                yield from error_codes(item)
