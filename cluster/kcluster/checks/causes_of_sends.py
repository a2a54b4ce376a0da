"""How a record came to be appended twice, or behind one that was sent later.

Owns: the chains of what retries do.  Never: guesses: each link is a note, an append, an answer or a
client's own word.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.clients.ledger import Partition
from kcluster.events.partitions import LeaderChange
from kcluster.evidence.history import Anomaly, Link, shown
from kcluster.evidence.lookups import Facts, between, link, told_once
from kcluster.invariants.ground import Append
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of

MAX_TOLD: Final = 4
"""So many of a client's errors are told in a chain; more say no more."""


def duplicate_story(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The first append, what became of its answer, and the second."""
    partition, value = anomaly.partition, anomaly.values[0]
    places = [
        entry
        for entry in facts.places(partition, value)
        if entry[2] in (anomaly.first, anomaly.other)
    ]
    for number, (_, append, offset) in enumerate(places):
        again = "again " if number else ""
        yield Link(
            append.at_ms,
            f"{shown(value)} was {again}appended at offset {offset} by broker {append.broker},"
            f" leader in epoch {append.epoch}{_by_request(append)}",
        )
        if not number:
            yield from _fate_of_answer(facts, append, partition)
    if len(places) > 1:
        from_ms, to_ms = places[0][1].at_ms, places[-1][1].at_ms
        yield from told_to(facts, anomaly.client, from_ms, to_ms, partition)
        yield from _meanwhile(facts, partition, from_ms, to_ms)


def _by_request(append: Append) -> str:
    if append.request is None:
        return ""
    return f" (request {append.request.correlation_id} of {append.request.client_id})"


def _fate_of_answer(facts: Facts, append: Append, partition: Partition) -> Iterator[Link]:
    request = append.request
    if request is None:
        return
    answer = facts.answer(request)
    which = f"request {request.correlation_id}"
    hit = facts.rule_hit(request)
    if hit is not None:
        yield link(hit)
    if answer is None:
        deed = facts.deed_before(append.broker, facts.recorder.dispatcher.now_ms)
        yield Link(append.at_ms, f"{which} was never answered")
        if hit is None and deed is not None and deed.at_ms >= append.at_ms:
            yield link(deed)
        return
    at_ms, broker, reply = answer
    code = code_of(reply.body, partition)
    if code:
        yield Link(at_ms, f"broker {broker} answered {which} with {error_of(code).name}")
    else:
        yield Link(at_ms, f"broker {broker} acked {which}; its producer did not get the answer")


def code_of(body: object, partition: Partition) -> int:
    if body is None:
        return 0
    for topic in getattr(body, "responses", ()):
        for answer in topic.partition_responses:
            if answer.index == partition[1]:
                code: int = answer.error_code
                return code
    return 0


def reorder_story(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """How the one sent first came behind: its attempts that failed, and both appends."""
    partition, value = anomaly.partition, anomaly.values[0]
    late = facts.appends_at(partition, anomaly.other)
    early = facts.places(partition, value)
    if not late or not early:
        return
    append = late[-1][1]
    names = [
        own for offset, own in facts.recorder.contents.of(append.batch) if offset == anomaly.other
    ]
    first = shown(names[0]) if names else f"offset {anomaly.other}"
    send = facts.send(partition, names[0]) if names else None
    from_ms = send.sent_ms if send is not None and send.sent_ms >= 0 else early[0][1].at_ms
    yield Link(from_ms, f"{first} was sent")
    yield from told_to(facts, anomaly.client, from_ms, append.at_ms, partition)
    yield from _refusals(facts, append, from_ms, partition)
    _, before, offset = early[0]
    yield Link(
        before.at_ms,
        f"{shown(value)}, sent after it, was appended at offset {offset} by broker {before.broker}"
        f"{_by_request(before)}",
    )
    yield Link(
        append.at_ms,
        f"{first} was appended at offset {anomaly.other} by broker {append.broker}"
        f"{_by_request(append)}",
    )
    yield from _meanwhile(facts, partition, from_ms, append.at_ms)


def _refusals(facts: Facts, append: Append, from_ms: int, partition: Partition) -> Iterator[Link]:
    """Produce answers with an error to the client that made `append`, up to it."""
    if append.request is None:
        return
    client = append.request.client_id
    told = 0
    for answer in facts.recorder.partition_answers(
        ApiKey.PRODUCE, lambda a: from_ms <= a[0] <= append.at_ms
    ):
        if answer.partition == partition and answer.error_code and answer.client == client:
            name = error_of(answer.error_code).name
            number = answer.reply.request.correlation_id
            yield Link(answer.at_ms, f"broker {answer.broker} refused request {number}: {name}")
            told += 1
            if told == MAX_TOLD:
                return


def told_to(
    facts: Facts, client: str, from_ms: int, to_ms: int, partition: Partition | None = None
) -> Iterator[Link]:
    """What a client was told in that time, by its own ledger; equal errors once, with a count."""
    errors: dict[tuple[str, str], list[int]] = {}
    for told in facts.ledger.told:
        if (
            told.client == client
            and from_ms <= told.at_ms <= to_ms
            and (partition is None or told.partition in (None, partition))
        ):
            errors.setdefault((told.api, told.error), []).append(told.at_ms)
    for (api, error), times in list(errors.items())[:MAX_TOLD]:
        again = f" ({len(times)} times until {times[-1]} ms)" if len(times) > 1 else ""
        own = error not in ErrorCode.__members__ or error == "REQUEST_TIMED_OUT"
        met = "met" if own else "was told"
        yield Link(times[0], f"{client} {met} {error} for its {api}{again}")


def _meanwhile(facts: Facts, partition: Partition, from_ms: int, to_ms: int) -> Iterator[Link]:
    """Changes of leader in that time with their causes, and what was done to the cluster."""
    changes = [note for note, _ in facts.of_partition(partition, LeaderChange)]
    for note in between(changes, from_ms, to_ms):
        yield from facts.with_causes(note)
    yield from told_once(between(facts.notes, from_ms, to_ms, facts.is_deed))
