"""How much clients wrote and read, and which of their requests failed: counts that only grow.

Owns: TrafficCounts.  Never: looks for what it counts (sampling.py shows it each batch and answer).
Kafka: BrokerTopicMetrics.
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
    """Of topics that are not internal, since the record began."""

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
        """By (broker, API, Kafka's name of the error or NONE): answered requests."""

    def appended(self, broker: int, topic: str, batch: Batch) -> None:
        """A leader appended a batch of a client."""
        place = (broker, topic)
        self.messages_in[place] += batch.record_count
        self.bytes_in[place] += batch.size_bytes

    def answered(self, broker: int, row: ExchangeRow, reply: Reply) -> None:
        """A request was answered; `row`: what its answer says, with the topic that it is about."""
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
        """Clients mostly read one topic at a time; of several, the first has it all."""
        self.bytes_out[broker, topic] += sum(
            batch.size_bytes
            for found in body.responses
            for answer in found.partitions
            if type(answer.records) is list
            for batch in answer.records
        )
