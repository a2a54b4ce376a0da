"""Counters of clients' reads, writes and failed requests, whose values only grow.

Owns: TrafficCounts.  Never: finds batches or answers (sampling.py passes each to it).  Kafka:
BrokerTopicMetrics.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from kcluster.contract import Reply
from kcluster.evidence.rows import ExchangeRow
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import Batch

PRODUCE: Final = int(ApiKey.PRODUCE)
FETCH: Final = int(ApiKey.FETCH)

NONE: Final = "NONE"

Place = tuple[int, str]
"""(broker, topic)."""


class TrafficCounts:
    """Counters of topics that are not internal, since the record began."""

    __slots__ = (
        "bytes_in", "bytes_out", "errors", "failed_fetches", "failed_produces", "messages_in",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in: Counter[Place] = Counter()
        self.bytes_in: Counter[Place] = Counter()
        self.bytes_out: Counter[Place] = Counter()
        self.failed_produces: Counter[Place] = Counter()
        self.failed_fetches: Counter[Place] = Counter()
        self.errors: Counter[tuple[int, str, str]] = Counter()
        """The number of answered requests, by (broker, API, Kafka's name of the error or NONE)."""

    def appended(self, broker: int, topic: str, batch: Batch) -> None:
        """Count a client's batch that a leader appended."""
        place = (broker, topic)
        self.messages_in[place] += batch.record_count
        self.bytes_in[place] += batch.size_bytes

    def answered(self, broker: int, row: ExchangeRow, reply: Reply) -> None:
        """Count an answered request; `row`: the row of its answer, with its topic."""
        self.errors[broker, row.api, row.error or NONE] += 1
        api = reply.request.api_key
        if api == PRODUCE:
            if row.error:
                self.failed_produces[broker, row.topic or ""] += 1
        elif api == FETCH:
            if row.error:
                self.failed_fetches[broker, row.topic or ""] += 1
            elif reply.body is not None and row.first >= 0:
                self._fetched(broker, row.topic or "", reply.body)

    def _fetched(self, broker: int, topic: str, body: m.FetchResponse) -> None:
        """Count a Fetch.  Clients mostly read one topic at a time; of several topics, the first one
        gets the whole count."""
        self.bytes_out[broker, topic] += sum(
            batch.size_bytes
            for found in body.responses
            for answer in found.partitions
            if type(answer.records) is list
            for batch in answer.records
        )
