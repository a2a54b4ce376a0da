"""Bodies of Produce, Fetch, OffsetCommit and OffsetFetch requests, for every test that sends one.

Owns: record batches from plain values, the nesting of topics and partitions in a request, and which
API a body belongs to.  Never: sends anything; takes a response apart.  Kafka: versions up to 12 of
Produce and Fetch name a topic, later ones give its id; a body holds both, and the codec writes the
one that belongs to the version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcluster.broker.registry import SERVED_APIS
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.records.batches import HEADER_BYTES, LENGTH_END, seal
from kcluster.protocol.records.compression import ZSTD, compress
from kcluster.protocol.records.records import Record, build_batch

ACKS_ALL = -1
NO_ID = bytes(16)
MAX_BYTES = 1 << 20

_API_OF = {api_key.name.replace("_", ""): api_key for api_key in ApiKey}
"""By the name of its request: JOINGROUP -> JOIN_GROUP."""


def api_of(body: Any, version: int | None = None) -> tuple[ApiKey, int]:
    """The API of a request, and `version`, or the latest that a broker serves."""
    api_key = _API_OF[type(body).__name__.removesuffix("Request").upper()]
    latest = SERVED_APIS[api_key].max_version
    version = latest if version is None else version
    assert APIS[api_key].all_versions[0] <= version <= latest
    return api_key, version


def batch(
    *values: bytes, timestamp_ms: int = 1_000, key: bytes | None = None, **header: Any
) -> bytes:
    """One record batch, a record per value; `header`: what `build_batch` takes."""
    records = [Record(i, timestamp_ms, key, value, ()) for i, value in enumerate(values)]
    return bytes(build_batch(records, **header))


def produce_topic(topic: str, batches: Mapping[int, Any], topic_id: bytes = NO_ID) -> Any:
    """The part of a Produce request about one topic: the records by partition."""
    data = [m.ProduceRequest.PartitionProduceData(at, data) for at, data in batches.items()]
    return m.ProduceRequest.TopicProduceData(topic, topic_id, data)


def produce_request(
    topic: str,
    partition: int,
    records: Any,
    *,
    acks: int = ACKS_ALL,
    timeout_ms: int = 5_000,
    topic_id: bytes = NO_ID,
) -> m.ProduceRequest:
    """Produce to one partition; `records`: a batch, or any bytes that are to pass for one."""
    topics = [produce_topic(topic, {partition: records}, topic_id)]
    return m.ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)


def fetch_partition(partition: int = 0, offset: int = 0, **more: Any) -> Any:
    """One partition of a Fetch request; `more`: further fields of it."""
    fields = {"partition_max_bytes": MAX_BYTES} | more
    return m.FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, **fields)


def fetch_request(
    topic: str, *partitions: Any, topic_id: bytes = NO_ID, **more: Any
) -> m.FetchRequest:
    """Fetch partitions of one topic, or none (in a session); `more`: further fields of the request.

    It waits for one byte, and for no time unless `max_wait_ms` is given.
    """
    topics = [m.FetchRequest.FetchTopic(topic, topic_id, list(partitions))] if partitions else []
    return m.FetchRequest(topics=topics, **({"min_bytes": 1} | more))


def commit_request(
    group: str,
    offset: int,
    partition: int = 0,
    topic: str = "orders",
    *,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    metadata: str = "",
) -> m.OffsetCommitRequest:
    """Commit one offset; without a generation, as one who is no member."""
    request = m.OffsetCommitRequest
    wanted = request.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    return request(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[request.OffsetCommitRequestTopic(name=topic, partitions=[wanted])],
    )


def offset_fetch_request(
    group: str, partition: int = 0, topic: str = "orders"
) -> m.OffsetFetchRequest:
    """Fetch the offset that a group has committed of one partition."""
    request = m.OffsetFetchRequest
    wanted = request.OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
    return request(groups=[request.OffsetFetchRequestGroup(group_id=group, topics=[wanted])])


def batch_with_wrong_lengths(records: list[Record]) -> bytes:
    """A batch that Kafka appends and nobody can read: compressed, with a wrong length in it."""
    sound = bytes(build_batch(records))
    plain = sound[HEADER_BYTES:]
    data = bytearray(sound[:HEADER_BYTES] + compress(ZSTD, bytes([plain[0] + 2]) + plain[1:]))
    data[8:12] = (len(data) - LENGTH_END).to_bytes(4, "big")
    data[22] = ZSTD
    seal(data)
    return bytes(data)
