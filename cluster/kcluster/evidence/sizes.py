"""The size of kept requests and answers: their records, and the bytes of these.

Owns: the counting.  Never: keeps anything.  A batch that a log and an answer share counts for both.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Any, Final

from kcluster.protocol import messages as m

OFFSET_BYTES: Final = 200
"""The size of an offset in a request besides its text."""


def fetched(body: m.FetchResponse) -> tuple[int, int, bool]:
    """The number of records in a Fetch response, their bytes, and whether it has an error."""
    records, size_bytes, has_error = 0, 0, False
    for topic in body.responses:
        for data in topic.partitions:
            has_error = has_error or bool(data.error_code)
            if type(data.records) is list:
                for batch in data.records:
                    records += batch.record_count
                    size_bytes += batch.size_bytes
            elif data.records:
                size_bytes += len(data.records)  # records of an older format are bytes
    return records, size_bytes, has_error


def refused_bytes(request: m.ProduceRequest, answer: m.ProduceResponse) -> int:
    """The bytes of records in a refused Produce request; its answer keeps them in memory."""
    if not any(data.error_code for topic in answer.responses for data in topic.partition_responses):
        return 0
    return sum(
        len(data.records or b"") for topic in request.topic_data for data in topic.partition_data
    )


def offsets_bytes(request: Any) -> int:
    """The approximate size of an OffsetCommit or OffsetFetch request, in bytes."""
    size_bytes = 0
    for group in getattr(request, "groups", None) or (request,):
        for topic in group.topics or ():
            partitions = getattr(topic, "partitions", ()) or getattr(topic, "partition_indexes", ())
            size_bytes += OFFSET_BYTES * len(partitions)
            size_bytes += sum(len(getattr(x, "committed_metadata", "") or "") for x in partitions)
    return size_bytes


def drop_oldest(known: dict[Any, Any], count_max: int) -> None:
    """Drop the oldest entries beyond this number."""
    while len(known) > count_max:
        del known[next(iter(known))]
