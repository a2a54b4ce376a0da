"""The attempts of an outside producer's batches, and the order in which they were first sent.

Owns: the attempts of each batch, put together from requests that brokers appended or refused.
Never: decodes a record, because a refused batch may be unreadable.  Kafka: no counterpart; a
producer's own list of batches in flight.

A batch that arrives again byte for byte, over another connection or after an attempt that was not
acked, is a further attempt.  The batch that brokers saw first counts as sent first, whether they
appended it or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Partition, SentRecord
from kcluster.contract import Request
from kcluster.protocol.records.batches import CRC_AT, CRC_START

NOT_REFUSED: Final = -1


class Attempt(Struct, frozen=True):
    """A request with a batch for one partition.  `crc`: the batch's checksum, which identifies it;
    `refused_ms`: the time at which the broker refused it."""

    request: Request
    crc: bytes
    is_acked: bool = False
    refused_ms: int = NOT_REFUSED


class SentBatch(Struct, eq=False):
    """One batch of a producer over all its attempts; `first`: the request in which a broker saw it
    first; `last`: the newest attempt."""

    first: Request
    last: Attempt
    attempts: int = 1
    sends: list[SentRecord] = []
    """The ledger's records for this batch, once they are known."""

    def may_be_in(self, request: Request) -> bool:
        """Whether a later request with equal bytes is a further attempt."""
        last = self.last
        if last.request.connection_id != request.connection_id:
            return True
        return not last.is_acked and last.refused_ms <= request.arrived_ms


def arrival(request: Request) -> tuple[int, int, int]:
    """The place of a request in the order in which brokers saw a client's requests."""
    return request.arrived_ms, request.connection_id, request.correlation_id


def crc_of(records: bytes | bytearray | memoryview | None) -> bytes | None:
    """The checksum in a batch's header, right or not; None if the batch is too short for one."""
    if records is None or len(records) < CRC_START:
        return None
    return bytes(records[CRC_AT:CRC_START])


def batches_by_request(attempts: Iterable[Attempt]) -> dict[Request, SentBatch]:
    """The batch of each request; `attempts` are the attempts for one partition."""
    known: dict[tuple[str | None, bytes], list[SentBatch]] = {}
    found: dict[Request, SentBatch] = {}
    for attempt in sorted(attempts, key=lambda each: arrival(each.request)):
        request = attempt.request
        same = known.setdefault((request.client_id, attempt.crc), [])
        batch = next((each for each in same if each.may_be_in(request)), None)
        if batch is None:
            batch = SentBatch(request, attempt)
            same.append(batch)
        else:
            batch.attempts += 1
            batch.last = attempt
        found[request] = batch
    return found


def crcs_in(request: Request, topic_names: dict[bytes, str]) -> Iterator[tuple[Partition, bytes]]:
    """The checksum of each partition's batch in a Produce request."""
    for topic in request.body.topic_data:
        name = topic_names.get(topic.topic_id) or topic.name
        for data in topic.partition_data:
            crc = crc_of(data.records)
            if crc is not None:
                yield (name, data.index), crc


def shared_client_ids(requests: Iterable[tuple[int, Request]]) -> frozenset[str]:
    """The client ids under which several producers send, found from (broker, request): a single
    producer has one connection to a broker, and never returns to an older one.  The order of sends
    under such an id is unknown."""
    newest: dict[tuple[int, str], int] = {}
    older: dict[tuple[int, str], set[int]] = {}
    shared = set()
    for broker, request in sorted(requests, key=lambda each: arrival(each[1])):
        client = request.client_id or ""
        key = (broker, client)
        before = newest.get(key)
        if before is not None and before != request.connection_id:
            older.setdefault(key, set()).add(before)
        if request.connection_id in older.get(key, ()):
            shared.add(client)
        newest[key] = request.connection_id
    return frozenset(shared)
