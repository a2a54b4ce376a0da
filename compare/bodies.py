"""Bodies that many cases need: batches of records, Produce, Fetch.

Owns: their usual form.  Never: a case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.protocol.records import Record, build_batch
from compare.filling import Values

MakesBytes = Callable[[Values], bytes]


def batch(
    count: int = 1, *, value: bytes | None = b"v", key: bytes | None = None, time: int = 0,
    **more: Any,
) -> MakesBytes:  # fmt: skip
    """Records at {now} + `time`, each 1 ms later; `more`: as build_batch has it; producer_id may
    be the name of a placeholder."""

    def make(values: Values) -> bytes:
        start = values.known["now"] + time
        records = [Record(at, start + at, key, value) for at in range(count)]
        filled = {name: values.fill(one) for name, one in more.items()}
        return bytes(build_batch(records, **filled))

    return make


def produce(
    topic: str = "{topic}", topic_id: str = "{topic_id}", records: Any = None, *, index: int = 0,
    acks: int = -1, timeout_ms: int = 5_000, count: int = 1, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """Produce one batch to one partition, by name and by id."""
    data = {"index": index, "records": batch(count) if records is None else records}
    topics = [{"name": topic, "topic_id": topic_id, "partition_data": [data]}]
    return {"acks": acks, "timeout_ms": timeout_ms, "topic_data": topics, **more}


def fetch(
    offset: int = 0, topic: str = "{topic}", topic_id: str = "{topic_id}", *, partition: int = 0,
    partition_max_bytes: int = 1 << 20, request: dict[str, Any] | None = None, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """Fetch one partition, not waiting; `more`: its other fields; `request`: those around it."""
    wanted = {
        "partition": partition, "fetch_offset": offset, "partition_max_bytes": partition_max_bytes,
        **more,
    }  # fmt: skip
    topics = [{"topic": topic, "topic_id": topic_id, "partitions": [wanted]}]
    return {"max_wait_ms": 0, "min_bytes": 1, "topics": topics, **(request or {})}
