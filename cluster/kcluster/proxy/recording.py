"""The record of what passes: a row per exchange, and rows of what clients sent, got and committed.

Owns: the exchanges' rows, the names of topics, counts.  Never: holds more than exchanges under way,
opens a record of a batch, writes a file (run_files.py).  Kafka: no counterpart.

A message is read after it was sent on, so that nobody waits for the record.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final, Protocol

from msgspec import Struct

from kcluster.contract import Reply, Request
from kcluster.evidence.exchanges import Exchanges
from kcluster.evidence.rows import ExchangeRow
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey, codec, is_known
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import decode_response_frame
from kcluster.protocol.messages import Message
from kcluster.protocol.records.batches import InvalidRecords, parse_batches
from kcluster.proxy import client_rows
from kcluster.proxy.client_rows import Commits, Ended, Transactional
from kcluster.proxy.connection import ProxiedConnection
from kcluster.proxy.exchange import BARE_TOKEN, AskedRequest, Exchange
from kcluster.proxy.sessions import PassingSessions
from kcluster.runs.proxied_rows import (
    BELIEFS,
    COMMITS,
    EXCHANGES,
    FETCHED,
    LEADERS,
    PRODUCED,
    TRANSACTION_REQUESTS,
    ProxiedRow,
)
from kcluster.runs.record import LeaderRow

MAX_NAMES: Final = 100_000
_SECRET: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_FETCH: Final = int(ApiKey.FETCH)
_WITH_NAMES: Final = (m.MetadataResponse, m.DescribeTopicPartitionsResponse, m.CreateTopicsResponse)
"""The answers that have a topic's name beside its id."""


class Sink(Protocol):
    """Takes the rows of the record."""

    def put(self, file: str, row: Struct) -> None:
        """Write a row to a file of the run."""

    def flush(self) -> None:
        """Write what waits."""


class ExchangeRecorder:
    """Reads exchanges.  `sink`: None if nothing is kept; then only names and sessions are read."""

    def __init__(self, sink: Sink | None) -> None:
        self.sessions = PassingSessions()
        self.counts: Counter[tuple[int, str]] = Counter()
        """The number of answered requests, by broker and API."""
        self._sink = sink
        self._exchanges = Exchanges({})
        self._leaders: dict[tuple[str, int], LeaderRow] = {}
        """The newest registration of each partition in the answers."""
        self.names = self._exchanges.topics

    def flush(self) -> None:
        """Write the rows that wait."""
        if self._sink is not None:
            self._sink.flush()

    # ----------------------------------------------------------------------------- requests

    def asked(self, broker_id: int, exchange: Exchange, frame: memoryview) -> None:
        """Take note of a request that was forwarded."""
        key, version = exchange.api_key, exchange.api_version
        if self._sink is None and key != _FETCH:
            return
        if key in _SECRET or not is_known(key, version):
            return
        try:
            body = codec(key, version).decode_request(frame, exchange.body_position)
        except ProtocolError:
            return  # the broker refuses it
        exchange.kept = client_rows.asked_request(body)
        if isinstance(body, m.FetchRequest):
            exchange.kept.parts = self.sessions.wanted(broker_id, body)

    # ------------------------------------------------------------------------------ answers

    def answered(
        self,
        connection: ProxiedConnection,
        exchange: Exchange,
        size_bytes: int,
        body: Message | None,
        frame: memoryview | None,
    ) -> None:
        """Take note of the end of an exchange.  `size_bytes`: -1 if the client got no answer;
        `body`: the answer, if it was decoded; `frame`: its bytes, for one that was not."""
        key, version = exchange.api_key, exchange.api_version
        if key == BARE_TOKEN:
            return
        broker = connection.broker_id
        if size_bytes >= 0:
            self.counts[broker, _api_name(key)] += 1
        kept, exchange.kept = exchange.kept, None
        if kept is not None and isinstance(body, m.FetchResponse):
            self.sessions.answered(broker, kept.parts, body)
        self._learn_names(body)
        if self._sink is None:
            return
        if isinstance(body, m.MetadataResponse | m.DescribeTopicPartitionsResponse):
            self._write_leaders(self._sink, body)
        if body is None and frame is not None and is_known(key, version):
            body = decoded_answer(key, version, frame)
        at_ms = time.time_ns() // 1_000_000
        ended = Ended(at_ms, exchange, connection.number, broker, size_bytes >= 0)
        self._write(self._sink, ended, size_bytes, kept, body)

    def _learn_names(self, body: Message | None) -> None:
        if not isinstance(body, _WITH_NAMES):
            return
        if len(self.names) >= MAX_NAMES:
            self.names.clear()
        for topic in body.topics:
            if topic.name and any(topic.topic_id):
                self.names[topic.topic_id] = topic.name

    def _write_leaders(
        self, sink: Sink, body: m.MetadataResponse | m.DescribeTopicPartitionsResponse
    ) -> None:
        """Write the partitions whose leader or ISR has changed since an older answer."""
        at_ms = time.time_ns() // 1_000_000
        for topic in body.topics:
            for data in topic.partitions:
                if data.leader_epoch < 0 or topic.name is None:
                    continue  # versions before 7 have no epoch
                place = topic.name, data.partition_index
                known = self._leaders.get(place)
                isr, replicas = tuple(data.isr_nodes), tuple(data.replica_nodes)
                if known is not None and (
                    known.leader_epoch > data.leader_epoch
                    or (known.leader, known.isr) == (data.leader_id, isr)
                ):
                    continue
                row = self._leaders[place] = LeaderRow(
                    *place, at_ms, data.leader_id, data.leader_epoch, isr, (), replicas
                )
                sink.put(LEADERS, row)
        if len(self._leaders) > MAX_NAMES:
            self._leaders.clear()

    def _write(
        self,
        sink: Sink,
        ended: Ended,
        size_bytes: int,
        kept: AskedRequest | None,
        body: Message | None,
    ) -> None:
        exchange = ended.exchange
        latency_us = round((time.perf_counter() - exchange.asked_s) * 1e6)
        row = self._row(ended, kept, body)
        columns = {name: getattr(row, name) for name in ExchangeRow.__struct_fields__}
        columns["answered_ms"] = ended.at_ms if ended.is_answered else -1
        sink.put(
            EXCHANGES,
            ProxiedRow(
                **columns,
                client_id=exchange.client_id,
                connection=ended.connection,
                correlation_id=exchange.correlation_id,
                version=exchange.api_version,
                request_bytes=exchange.size_bytes,
                answer_bytes=size_bytes,
                latency_us=latency_us if ended.is_answered else -1,
                rule=exchange.rule,
            ),
        )
        for belief in self._exchanges.beliefs.rows:
            sink.put(BELIEFS, belief)
        self._exchanges.beliefs.rows.clear()
        if kept is not None:
            self._write_details(sink, ended, kept, body)

    def _row(self, ended: Ended, kept: AskedRequest | None, body: Message | None) -> ExchangeRow:
        exchange = ended.exchange
        if body is None or kept is None:
            name = _api_name(exchange.api_key)
            return ExchangeRow(
                ended.at_ms, exchange.client_id, ended.broker, name, exchange.asked_ms, -1
            )
        request = Request(
            ended.connection,
            exchange.api_key,
            exchange.api_version,
            exchange.correlation_id,
            exchange.client_id,
            kept.body,
            arrived_ms=exchange.asked_ms,
        )
        if isinstance(body, m.FetchResponse):
            read_batches(body)
        row = self._exchanges.answered(ended.at_ms, ended.broker, Reply(request, body))
        self._exchanges.rows.clear()
        if row.first >= 0:
            heads = [head for _, _, index, heads in kept.heads for head in heads
                     if index == row.partition]  # fmt: skip
            row.last = max(row.last, row.first + sum(head.count for head in heads) - 1)
        return row

    def _write_details(
        self, sink: Sink, ended: Ended, kept: AskedRequest, body: Message | None
    ) -> None:
        request = kept.body
        if isinstance(request, m.ProduceRequest):
            for row in client_rows.produced(ended, kept, body, self._name):
                sink.put(PRODUCED, row)
        elif isinstance(body, m.FetchResponse):
            for fetched in client_rows.fetched(ended, kept, body, self._name):
                sink.put(FETCHED, fetched)
        if isinstance(request, Commits):
            for commit in client_rows.commits(ended, request, body, self._name):
                sink.put(COMMITS, commit)
        if isinstance(request, Transactional):
            row_ = client_rows.transaction_request(ended, request, body)
            sink.put(TRANSACTION_REQUESTS, row_)

    def _name(self, topic_id: bytes) -> str:
        return self.names.get(topic_id, "")


def _api_name(api_key: int) -> str:
    line = APIS.get(api_key)
    return str(api_key) if line is None else line.name


def decoded_answer(api_key: int, version: int, frame: memoryview) -> Message | None:
    """The answer in a frame; None if it cannot be read."""
    try:
        body: Message = decode_response_frame(api_key, version, frame)[1]
    except ProtocolError:
        return None
    return body


def read_batches(body: m.FetchResponse) -> None:
    """Replace the records of an answer that was sent by their batches, as a broker has them."""
    for topic in body.responses:
        for data in topic.partitions:
            try:
                data.records = parse_batches(data.records) if data.records else []
            except InvalidRecords:
                data.records = []
