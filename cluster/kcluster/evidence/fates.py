"""A record's fate: from its send, over every replica that ever had it, to every read.

Owns: the facts about one record.  Never: decides whether it is an anomaly (checks/ does).  Kafka:
no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.deaths import DeathKind
from kcluster.events import kind
from kcluster.events.brokers import BrokerDown
from kcluster.events.partitions import LogTruncated
from kcluster.evidence.history import Link, shown
from kcluster.evidence.lookups import Facts
from kcluster.invariants.observed import Append, ObservedPartition


class RecordPlace(Struct, frozen=True):
    """One append of a record.  `reached`: by broker, the time at which its log had the record;
    `dropped`: by broker, the time at which it lost the record, and the kind of the event;
    `committed_ms`: -1 for never."""

    offset: int
    epoch: int
    leader: int
    at_ms: int
    reached: dict[int, int]
    dropped: dict[int, tuple[int, str]]
    committed_ms: int = -1


class Fate(Struct, frozen=True):
    """The history of a record.  Times in ms of the cluster's clock, -1 for never."""

    partition: Partition
    value: bytes | None
    outcome: str
    sent_ms: int
    ended_ms: int
    attempts: int
    places: tuple[RecordPlace, ...]
    reads: tuple[tuple[str, int, int], ...]
    """(consumer, offset, at_ms)."""

    def links(self) -> Iterator[Link]:
        """All events of the record as links of a chain, in no particular order."""
        if self.sent_ms >= 0:
            yield Link(self.sent_ms, f"{shown(self.value)} was sent")
        for place in self.places:
            where = f"at offset {place.offset} in epoch {place.epoch}"
            yield Link(place.at_ms, f"appended by broker {place.leader} {where}")
            for broker, at_ms in place.reached.items():
                if broker != place.leader:
                    yield Link(at_ms, f"broker {broker} has it {where}")
            if place.committed_ms >= 0:
                yield Link(place.committed_ms, f"committed {where}")
            for broker, (at_ms, how) in place.dropped.items():
                yield Link(at_ms, f"broker {broker} has it no longer {where}: {how}")
        if self.ended_ms >= 0:
            times = f" after {self.attempts} attempts" if self.attempts > 1 else ""
            yield Link(self.ended_ms, f"its producer called it {self.outcome}{times}")
        for consumer, offset, at_ms in self.reads:
            yield Link(at_ms, f"{consumer} read it at offset {offset}")


def fate_of(facts: Facts, partition: Partition, value: bytes | None) -> Fate:
    """The history of the record with this value."""
    send = facts.send(partition, value)
    places = tuple(
        _place(facts, observed, append, offset)
        for observed, append, offset in facts.places(partition, value)
    )
    reads = tuple(
        (read.consumer, read.offset, read.at_ms)
        for read in facts.ledger.reads
        if read.partition == partition and read.value == value
    )
    if send is None:
        return Fate(partition, value, "unknown", -1, -1, 0, places, reads)
    return Fate(
        partition,
        value,
        str(send.outcome),
        send.sent_ms,
        send.ended_ms,
        send.attempts,
        places,
        reads,
    )


def _place(facts: Facts, observed: ObservedPartition, append: Append, offset: int) -> RecordPlace:
    reached: dict[int, int] = {}
    dropped: dict[int, tuple[int, str]] = {}
    committed_ms = -1
    for move in observed.moves:
        if move.at_ms < append.at_ms:
            continue
        broker, has = move.broker, move.log_end_offset > offset
        if has and broker not in reached and broker not in dropped:
            reached[broker] = move.at_ms
        elif not has and broker in reached and broker not in dropped:
            dropped[broker] = (move.at_ms, kind(LogTruncated))
        if committed_ms < 0 and broker == append.broker and move.high_watermark > offset:
            committed_ms = move.at_ms
    for broker in reached:
        for note, down in facts.of_broker(broker, BrokerDown):
            gone = down.loses_records and note.at_ms >= reached[broker]
            known = dropped.get(broker)
            if gone and (
                note.at_ms <= known[0] if known is not None else down.how is DeathKind.WIPE
            ):
                dropped[broker] = (note.at_ms, f"{down.kind}: {down.how}")
    return RecordPlace(
        offset, append.epoch, append.broker, append.at_ms, reached, dropped, committed_ms
    )
