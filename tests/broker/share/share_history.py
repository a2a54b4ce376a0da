"""Share groups as the leaders of their share partitions saw them: deliveries, acknowledgements.

Owns: these facts, read from recorded answers after a run.  Never: judges them (checks/), makes
words of them; costs the running cluster anything: deliveries are too frequent to be events.
Kafka: no counterpart.

A delivery is an answer of the broker: whether its client has received it is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.contract import Reply
from kcluster.evidence.group_history import client_of
from kcluster.evidence.recorder import Recorder
from kcluster.operations.controller import controller_image
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of

ACKNOWLEDGE_TYPES: Final = ("gap", "accept", "release", "reject", "renew")


class ShareDelivery(Struct, frozen=True, gc=False):
    """Records that a member was given, to be acknowledged.  `delivery_count`: how often the leader
    has given them to any member, this time included, as far as it knows.  `asked_ms`: when the
    fetch arrived; they were acquired between then and `at_ms`, the time of the answer."""

    asked_ms: int
    at_ms: int
    broker: int
    client: str
    group: str
    member: str
    partition: Partition
    first_offset: int
    last_offset: int
    delivery_count: int


class ShareAcknowledgement(Struct, frozen=True, gc=False):
    """What a member reported of records, when it was answered.  `type`: accept, release, reject,
    renew or gap.  `error`: Kafka's name of the refusal, empty if it was stored."""

    at_ms: int
    broker: int
    client: str
    group: str
    member: str
    partition: Partition
    first_offset: int
    last_offset: int
    type: str
    error: str = ""

    @property
    def is_stored(self) -> bool:
        return not self.error

    @property
    def is_final(self) -> bool:
        """Stored, and never to be delivered again: accepted, rejected, or not there."""
        return self.is_stored and self.type in ("accept", "reject", "gap")


ShareFact = ShareDelivery | ShareAcknowledgement


def share_facts_of(recorder: Recorder) -> Iterator[ShareFact]:
    """Every delivery and acknowledgement that a broker answered, of all groups, in order of time;
    in one answer the acknowledgements come first, as they took effect."""
    names = controller_image(recorder.dispatcher).topic_names
    for at_ms, broker, reply in recorder.answers:
        api = reply.request.api_key
        if reply.body is None or api not in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
            continue
        yield from _acknowledgements(recorder, at_ms, broker, reply, names)
        if api == ApiKey.SHARE_FETCH:
            yield from _deliveries(recorder, at_ms, broker, reply, names)


def _deliveries(
    recorder: Recorder, at_ms: int, broker: int, reply: Reply, names: dict[bytes, str]
) -> Iterator[ShareDelivery]:
    body = reply.request.body
    for topic in reply.body.responses:
        for partition in topic.partitions:
            for acquired in partition.acquired_records:
                yield ShareDelivery(
                    asked_ms=reply.request.arrived_ms,
                    at_ms=at_ms,
                    broker=broker,
                    client=client_of(recorder, reply.request),
                    group=body.group_id,
                    member=body.member_id,
                    partition=(names.get(topic.topic_id, ""), partition.partition_index),
                    first_offset=acquired.first_offset,
                    last_offset=acquired.last_offset,
                    delivery_count=acquired.delivery_count,
                )


def _acknowledgements(
    recorder: Recorder, at_ms: int, broker: int, reply: Reply, names: dict[bytes, str]
) -> Iterator[ShareAcknowledgement]:
    body, answer = reply.request.body, reply.body
    is_fetch = reply.request.api_key == ApiKey.SHARE_FETCH
    errors = {
        (topic.topic_id, partition.partition_index): (
            partition.acknowledge_error_code if is_fetch else partition.error_code
        )
        for topic in answer.responses
        for partition in topic.partitions
    }
    for topic in body.topics:
        for partition in topic.partitions:
            key = topic.topic_id, partition.partition_index
            code = answer.error_code or errors.get(key, ErrorCode.NONE)
            for first, last, kind in _ranges(partition.acknowledgement_batches):
                yield ShareAcknowledgement(
                    at_ms=at_ms,
                    broker=broker,
                    client=client_of(recorder, reply.request),
                    group=body.group_id,
                    member=body.member_id,
                    partition=(names.get(topic.topic_id, ""), partition.partition_index),
                    first_offset=first,
                    last_offset=last,
                    type=kind,
                    error="" if code == ErrorCode.NONE else error_of(code).name,
                )


def _ranges(batches: Iterable[Any]) -> Iterator[tuple[int, int, str]]:
    """(first offset, last offset, type) of neighbours with the same type; a request that was
    refused may have types that do not fit."""
    for batch in batches:
        types = batch.acknowledge_types
        if len(types) == 1:
            yield batch.first_offset, batch.last_offset, _name_of(types[0])
            continue
        at = 0
        while at < len(types):
            end = at + 1
            while end < len(types) and types[end] == types[at]:
                end += 1
            yield batch.first_offset + at, batch.first_offset + end - 1, _name_of(types[at])
            at = end


def _name_of(kind: int) -> str:
    return ACKNOWLEDGE_TYPES[kind] if 0 <= kind < len(ACKNOWLEDGE_TYPES) else str(kind)
