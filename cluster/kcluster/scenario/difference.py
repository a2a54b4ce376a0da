"""The difference between two futures of one moment: its facts, and one sentence about them.

Owns: FutureDifference, and the sentence.  Never: plays a future (play/fork.py), judges one.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Outcome
from kcluster.events.words.base import counted
from kcluster.protocol.names import has_internal_prefix
from kcluster.runs.record import RunRecord, SendFate, SendRow

LEAST_DELAY_MS: Final = 20
"""The shortest delay of an ack that counts as a difference."""

Partition = tuple[str, int]


class InBoth(Struct, frozen=True):
    """A number in both futures."""

    here: int
    there: int


class FirstAck(Struct, frozen=True):
    """The time from the moment to a partition's first ack of a record that was sent after the
    moment; None: no such ack comes before the future ends."""

    topic: str
    partition: int
    here_ms: int | None
    there_ms: int | None


class LeaderPair(Struct, frozen=True):
    """The leader of a partition when the futures end; -1: none."""

    topic: str
    partition: int
    here: int
    there: int


class FutureDifference(Struct, frozen=True):
    """The difference between `here`, without the choice, and `there`, with it.

    `acks`: the settings `acks` of the records that were sent after the moment, -1 for all.  `lost`:
    acknowledged records that are lost.  `duplicated`: records that are in the log more than once.
    `failed`: sends that failed.  `first_acks`: the first acks that differ, the longest delay first.
    `leaders`: the leaders that differ when the futures end.  `for_ms`: the length of the futures.
    """

    acks: tuple[int, ...]
    lost: InBoth
    duplicated: InBoth
    failed: InBoth
    first_acks: tuple[FirstAck, ...]
    leaders: tuple[LeaderPair, ...]
    for_ms: int

    @property
    def text(self) -> str:
        """The difference in one sentence."""
        return _sentence(self)


def difference_of(here: RunRecord, there: RunRecord, at_ms: int, for_ms: int) -> FutureDifference:
    """The difference between two futures that begin `at_ms` on their clock and take `for_ms`."""
    until_ms = at_ms + for_ms
    acks = {send.acks for record in (here, there) for send in record.sends if send.sent_ms >= at_ms}
    return FutureDifference(
        acks=tuple(sorted(acks)),
        lost=InBoth(_lost(here), _lost(there)),
        duplicated=InBoth(_duplicated(here), _duplicated(there)),
        failed=InBoth(_failed(here), _failed(there)),
        first_acks=tuple(_first_acks(here, there, at_ms, until_ms)),
        leaders=tuple(_leaders(here, there, until_ms)),
        for_ms=for_ms,
    )


def _lost(record: RunRecord) -> int:
    return sum(send.fate is SendFate.LOST for send in record.sends)


def _duplicated(record: RunRecord) -> int:
    return sum(each.name == "duplicate" for send in record.sends for each in send.anomalies)


def _failed(record: RunRecord) -> int:
    return sum(send.outcome == Outcome.FAILED for send in record.sends)


def _first_acks(here: RunRecord, there: RunRecord, at_ms: int, until_ms: int) -> Iterator[FirstAck]:
    """The partitions whose first ack comes at another time `there`, or never; the longest delay
    first."""
    before, after = (_first_ack_ms(record.sends, at_ms, until_ms) for record in (here, there))
    for_ms = until_ms - at_ms

    def delay_ms(partition: Partition) -> int:
        return after.get(partition, for_ms) - before.get(partition, for_ms)

    found = [each for each in before | after if abs(delay_ms(each)) >= LEAST_DELAY_MS]
    for name in sorted(found, key=lambda each: (-delay_ms(each), each)):
        yield FirstAck(*name, before.get(name), after.get(name))


def _first_ack_ms(sends: list[SendRow], at_ms: int, until_ms: int) -> dict[Partition, int]:
    """The time from the moment to the first ack of each partition."""
    first: dict[Partition, int] = {}
    for send in sends:
        if send.outcome == Outcome.ACKED and at_ms <= send.sent_ms and send.ended_ms <= until_ms:
            name, took_ms = (send.topic, send.partition), send.ended_ms - at_ms
            first[name] = min(first.get(name, took_ms), took_ms)
    return first


def _leaders(here: RunRecord, there: RunRecord, until_ms: int) -> Iterator[LeaderPair]:
    before, after = (
        {(row.topic, row.partition): row.leader for row in record.leaders if row.at_ms < until_ms}
        for record in (here, there)
    )
    for name in sorted(before | after):
        leaders = before.get(name, -1), after.get(name, -1)
        if leaders[0] != leaders[1] and not has_internal_prefix(name[0]):
            yield LeaderPair(*name, *leaders)


# ------------------------------------------------------------------------------------ the words


def _sentence(found: FutureDifference) -> str:
    parts = [*records_words(found.lost, found.duplicated, found.failed), *_of_acks(found)]
    leaders = list(_of_leaders(found))
    if not parts and not leaders:
        return "Clients notice no difference."
    acks = _acks_words(found.acks)
    if found.acks and found.lost.there == 0:
        parts.insert(0, "nothing is lost")
    elif found.acks and found.lost.there == found.lost.here:
        parts.insert(0, "no further records are lost")
    text = joined([*parts, *leaders])
    text = f"with {acks}, {text}" if acks else text
    return f"{text[0].upper()}{text[1:]}."


def records_words(lost: InBoth, duplicated: InBoth, failed: InBoth) -> Iterator[str]:
    """The counts of records that differ, in words: `3 acknowledged records are lost`."""
    for pair, noun, one, several in (
        (lost, "acknowledged record", "is lost", "are lost"),
        (duplicated, "record", "is written twice", "are written twice"),
        (failed, "send", "fails", "fail"),
    ):
        if pair.there == pair.here or (pair is lost and not pair.there):
            continue
        instead = f" instead of {pair.here}" if pair.here else ""
        number = counted(pair.there, noun) if pair.there else f"no {noun}"
        yield f"{number} {one if pair.there <= 1 else several}{instead}"


def _of_acks(found: FutureDifference) -> Iterator[str]:
    if not found.first_acks:
        return
    worst = found.first_acks[0]
    name = f"{worst.topic}-{worst.partition}"
    more = len(found.first_acks) - 1
    others = f" (and {counted(more, 'other partition')})" if more else ""
    if worst.there_ms is None:
        yield f"no record of {name}{others} is acknowledged for {seconds(found.for_ms)}"
    elif worst.here_ms is None:
        yield f"records of {name}{others} are acknowledged after {seconds(worst.there_ms)}"
    else:
        delay_ms = worst.there_ms - worst.here_ms
        when = "later" if delay_ms > 0 else "earlier"
        yield f"the first ack of {name}{others} comes {seconds(abs(delay_ms))} {when}"


def _of_leaders(found: FutureDifference) -> Iterator[str]:
    by_change = Counter((pair.here, pair.there) for pair in found.leaders)
    for (here, there), count in by_change.most_common(1):
        pair = next(each for each in found.leaders if (each.here, each.there) == (here, there))
        name = f"{pair.topic}-{pair.partition}"
        others = f" and {counted(count - 1, 'other partition')}" if count > 1 else ""
        leader = f"broker {there} leads" if there >= 0 else "no broker leads"
        instead = f" instead of broker {here}" if here >= 0 else ""
        yield f"{leader} {name}{others}{instead}"


def _acks_words(acks: tuple[int, ...]) -> str:
    return f"acks={'all' if acks[0] < 0 else acks[0]}" if len(acks) == 1 else ""


def seconds(ms: int) -> str:
    """`8.2 s`, or `20 ms` if it is short."""
    return f"{ms / 1000:.1f} s" if ms >= 100 else f"{ms} ms"


def joined(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b, and c`."""
    *first, last = parts
    return f"{', '.join(first)}, and {last}" if len(first) > 1 else " and ".join(parts)
