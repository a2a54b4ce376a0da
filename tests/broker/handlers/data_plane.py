"""Produce and Fetch requests to one broker that leads `orders` (partition 0 alone in its ISR)."""

from __future__ import annotations

from typing import Any

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Record, build_batch

from .one_broker import OneBroker, broker_records, topic_id, topic_records

TOPIC = "orders"


def leader(partitions: int = 1, **configs: Any) -> OneBroker:
    """Broker 1 leads every partition of `orders` by itself."""
    return OneBroker(broker_records(1, 2), topic_records(TOPIC, *[(1,)] * partitions), **configs)


def batch(*values: bytes, timestamp_ms: int = 1_000, **more: Any) -> bytes:
    records = [Record(i, timestamp_ms, None, value, ()) for i, value in enumerate(values)]
    return bytes(build_batch(records, **more))


def produce_body(records: Any, acks: int = -1, partition: int = 0, topic: str = TOPIC) -> Any:
    data = m.ProduceRequest.PartitionProduceData(partition, records)
    topics = [m.ProduceRequest.TopicProduceData(topic, topic_id(topic), [data])]
    return m.ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=topics)


def produce(broker: OneBroker, records: Any, version: int = 9, **more: Any) -> Any:
    """The answer about the one partition."""
    response = broker.ask(ApiKey.PRODUCE, version, produce_body(records, **more))
    return response.responses[0].partition_responses[0]


def wanted(partition: int = 0, offset: int = 0, **more: Any) -> Any:
    fields = {"partition_max_bytes": 1 << 20} | more
    return m.FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, **fields)


def fetch_body(*partitions: Any, topic: str = TOPIC, **more: Any) -> Any:
    topics = [m.FetchRequest.FetchTopic(topic, topic_id(topic), list(partitions))]
    return m.FetchRequest(topics=topics if partitions else [], **({"min_bytes": 1} | more))


def fetch(broker: OneBroker, *partitions: Any, version: int = 12, **more: Any) -> Any:
    """The whole answer; None while it waits."""
    return broker.ask(ApiKey.FETCH, version, fetch_body(*partitions, **more))


def partition_results(response: Any) -> dict[int, tuple[str, int]]:
    """Per partition of an answer: its error and how many bytes of records."""
    return {
        data.partition_index: (ErrorCode(data.error_code).name, size(data.records))
        for topic in response.responses
        for data in topic.partitions
    }


def size(records: Any) -> int:
    """Bytes of what a handler answers: a list of batches."""
    return sum(one.size_bytes for one in records) if records else 0
