"""A workload that stands in for the clients of a live cluster, as its brokers have seen them.

Owns: the producers and consumers that brokers have seen, and the keys of a workload that
approximate them.  Never: plays the workload, reports the differences.
Kafka: no counterpart.

Brokers see a client's requests: its topics, acks, the number and the size of its records, its
group.  They do not see its retries, its timeouts or the work of its application, for which the
defaults stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.broker.serving.reading import READ_COMMITTED
from kcluster.evidence.client_names import keeps_a_ledger
from kcluster.evidence.recorder import Recorder
from kcluster.evidence.rows import GroupRow
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import has_internal_prefix
from kcluster.protocol.records.batches import NO_PRODUCER_ID

MAX_RATE_PER_S: Final = 200
"""The highest rate of a producer that stands in for a client: a minute at this rate is played in a
second."""
PAUSE_MS: Final = 10_000
"""The silence after which a client is taken to have ended."""


class SeenClient(Struct):
    """A client that brokers have seen.  `kind`: producers or consumers; `keys`: its keys in a
    workload.  `first_ms`, `last_ms`: the first and the last time at which it was seen.
    `is_slowed`: whether the client that stands in for it sends less."""

    kind: str
    keys: JsonObject
    first_ms: int
    last_ms: int
    is_slowed: bool = False


class _Sent(Struct):
    """The records that one client has sent to one topic."""

    acks: int
    is_idempotent: bool
    transactional_id: str
    first_ms: int
    last_ms: int
    records: int = 0
    size_bytes: int = 0
    batches: int = 0


def seen_clients(
    recorder: Recorder, until_ms: int, is_known: Callable[[str], bool]
) -> list[SeenClient]:
    """The clients that brokers saw until `until_ms`, except clients for which `is_known(client.id)`
    holds.  To be called in the driver's thread."""

    def counts(client: str | None) -> bool:
        return not keeps_a_ledger(client) and not is_known(client or "")

    return [*_producers(recorder, until_ms, counts), *_consumers(recorder, until_ms, counts)]


# ---------------------------------------------------------------------------------- producers


def _producers(
    recorder: Recorder, until_ms: int, counts: Callable[[str | None], bool]
) -> Iterator[SeenClient]:
    sent: dict[tuple[str, str], _Sent] = {}
    for observed in recorder.partitions.values():
        if has_internal_prefix(observed.topic):
            continue
        for append in observed.appends:
            request = append.request
            if request is None or append.at_ms > until_ms or not counts(request.client_id):
                continue
            key = (request.client_id or "", observed.topic)
            batch, body = append.batch, request.body
            of = sent.get(key)
            if of is None:
                of = sent[key] = _Sent(
                    acks=body.acks,
                    is_idempotent=batch.producer_id != NO_PRODUCER_ID,
                    transactional_id=body.transactional_id or "",
                    first_ms=append.at_ms,
                    last_ms=append.at_ms,
                )
            of.first_ms = min(of.first_ms, append.at_ms)
            of.last_ms = max(of.last_ms, append.at_ms)
            of.records += batch.record_count
            of.size_bytes += len(batch.buffer)
            of.batches += 1
    for (client, topic), of in sent.items():
        yield _producer(client, topic, of)


def _producer(client: str, topic: str, of: _Sent) -> SeenClient:
    span_s = max(1.0, (of.last_ms - of.first_ms) / 1000)
    rate = of.records / span_s
    acks = "all" if of.acks == -1 else str(of.acks)
    keys: dict[str, object] = {
        "name": client,
        "topic": topic,
        "rate": f"{max(0.1, min(rate, MAX_RATE_PER_S)):.3g}/s",
        "acks": acks,
        "size": max(1, min(of.size_bytes // max(1, of.records), 1 << 20)),
    }
    if of.transactional_id:
        every = max(1, of.records // max(1, of.batches))
        keys["transactions"] = {"every": every, "id": of.transactional_id}
    elif acks == "all":
        keys["idempotent"] = of.is_idempotent
    return SeenClient("producers", keys, of.first_ms, of.last_ms, rate > MAX_RATE_PER_S)


# ---------------------------------------------------------------------------------- consumers


class _Read(Struct):
    """The topics and partitions that one client has fetched, with the times."""

    topics: dict[str, None]
    partitions: dict[tuple[str, int], None]
    is_read_committed: bool
    first_ms: int
    last_ms: int


def _consumers(
    recorder: Recorder, until_ms: int, counts: Callable[[str | None], bool]
) -> Iterator[SeenClient]:
    read: dict[str, _Read] = {}
    for answer in recorder.partition_answers(ApiKey.FETCH, lambda entry: entry[0] <= until_ms):
        client = answer.client
        if not counts(client) or has_internal_prefix(answer.partition[0]):
            continue
        of = read.get(client)
        if of is None:
            isolation = answer.reply.request.body.isolation_level
            is_committed = isolation == READ_COMMITTED
            of = read[client] = _Read({}, {}, is_committed, answer.at_ms, answer.at_ms)
        of.topics[answer.partition[0]] = None
        of.partitions[answer.partition] = None
        of.last_ms = answer.at_ms
    groups = _members(row for row in recorder.states.groups.rows if row.at_ms <= until_ms)
    for client, of in read.items():
        keys: dict[str, object] = {"name": client}
        found = groups.get(client)
        if found is not None:
            keys |= {"topics": list(of.topics), "group": found[0], "group_protocol": found[1]}
        else:
            keys |= {"partitions": [f"{topic}-{number}" for topic, number in of.partitions]}
        if of.is_read_committed:
            keys["isolation"] = "read_committed"
        yield SeenClient("consumers", keys, of.first_ms, of.last_ms)


def _members(rows: Iterable[GroupRow]) -> dict[str, tuple[str, str]]:
    """The members' groups, with their protocols, by client.id."""
    return {
        member.client: (row.group, "consumer" if row.kind == "consumer" else "classic")
        for row in rows
        if row.kind in ("classic", "consumer")
        for member in row.members
    }
