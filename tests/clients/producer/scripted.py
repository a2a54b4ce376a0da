"""Three scripted brokers, for responses that a real broker sends only rarely."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from kcluster.broker.handlers.metadata.api_versions import build_api_versions
from kcluster.clients.producer.producer import Producer
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import parse_batches

TOPIC_ID = bytes(15) + b"\1"


class Produced:
    """A Produce request with one batch that waits for its response."""

    def __init__(self, broker_id: int, number: int, body: m.ProduceRequest) -> None:
        self.broker_id = broker_id
        self.number = number
        data = body.topic_data[0].partition_data[0]
        self.partition = data.index
        (batch,) = parse_batches(data.records)
        self.epoch = batch.producer_epoch
        self.sequence = batch.base_sequence
        self.records = batch.record_count


class Brokers:
    """A Wire and a clock for one producer.  All requests but Produce are answered at once."""

    client_id = 100_000
    broker_ids = (1, 2, 3)

    def __init__(
        self, producer: Producer, refusals: dict[ApiKey, list[ErrorCode]] | None = None
    ) -> None:
        self.producer = producer
        self.rng = Random(1)
        self.now_ms = 0
        self.leader, self.leader_epoch = 1, 0
        self.asked: list[tuple[int, int]] = []
        """(broker, API) of every request."""
        self.produced: list[Produced] = []
        self.refusals = refusals or {}
        """By API: the errors of the next responses."""
        self._number = 0
        self._pending: list[Callable[[], None]] = []
        producer.start(self, 0)
        self._settle()

    def send(
        self, broker_id: int, api_key: int, api_version: int, body: Any, *, answered: bool = True
    ) -> int:
        self._number += 1
        number = self._number
        self.asked.append((broker_id, api_key))
        if api_key == ApiKey.PRODUCE:
            self.produced.append(Produced(broker_id, number, body))
        else:
            response = self._response(api_key, api_version, body)
            self._pending.append(
                lambda: self.producer.on_reply(broker_id, number, response, self.now_ms)
            )
        return number

    def disconnect(self, broker_id: int) -> None:
        self.produced = [x for x in self.produced if x.broker_id != broker_id]

    def run_until(self, at_ms: int) -> None:
        """Advance the clock, and call the producer's ticks."""
        while (due_ms := self.producer.deadline_ms) is not None and due_ms <= at_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.producer.on_tick(self.now_ms)
            self._settle()
        self.now_ms = at_ms

    def ack(self, request: Produced, offset: int, *, throttle_ms: int = 0) -> None:
        self._reply(request, throttle_ms, base_offset=offset, log_start_offset=0)

    def refuse(self, request: Produced, error: ErrorCode, **fields: Any) -> None:
        self._reply(request, 0, error_code=error, log_start_offset=0, **fields)

    def hang_up(self, broker_id: int) -> None:
        self.disconnect(broker_id)
        self.producer.on_disconnected(broker_id, self.now_ms)
        self._settle()

    def _reply(self, request: Produced, throttle_ms: int, **fields: Any) -> None:
        self.produced.remove(request)
        partition = m.ProduceResponse.PartitionProduceResponse(index=request.partition, **fields)
        topic = m.ProduceResponse.TopicProduceResponse(
            topic_id=TOPIC_ID, partition_responses=[partition]
        )
        body = m.ProduceResponse(responses=[topic], throttle_time_ms=throttle_ms)
        self.producer.on_reply(request.broker_id, request.number, body, self.now_ms)
        self._settle()

    def _settle(self) -> None:
        while self._pending:
            self._pending.pop(0)()

    def _response(self, api_key: int, api_version: int, body: Any) -> Any:
        refusals = self.refusals.get(ApiKey(api_key))
        error = refusals.pop(0) if refusals else ErrorCode.NONE
        if api_key == ApiKey.API_VERSIONS:
            return build_api_versions(body, api_version, 1, {})
        if api_key == ApiKey.INIT_PRODUCER_ID:
            return m.InitProducerIdResponse(error_code=error, producer_id=9, producer_epoch=0)
        metadata = m.MetadataResponse
        partition = metadata.MetadataResponsePartition(
            partition_index=0, leader_id=self.leader, leader_epoch=self.leader_epoch
        )
        brokers = [metadata.MetadataResponseBroker(node_id=id_) for id_ in self.broker_ids]
        topics = [
            metadata.MetadataResponseTopic(name=x.name, topic_id=TOPIC_ID, partitions=[partition])
            for x in body.topics
        ]
        return metadata(brokers=brokers, topics=topics)
