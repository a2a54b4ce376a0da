"""A history judged partition by partition, and then as a whole.

Owns: the choice of the anomalies that clients alone can prove, their proofs, what a transaction or
a cycle needs of each partition.  Never: reads a file (files.py), words a judgement (words.py).
Kafka: no counterpart.

A partition needs nothing of the others, so that a long history can be judged by many processes
(pipeline/judge.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from kcluster.checks.anomalies import ANOMALIES, Anomaly
from kcluster.checks.anomalies.base import (
    PartitionAnomaly,
    PartitionHistory,
    TransactionalSend,
    anomaly_of,
    grouped,
)
from kcluster.checks.anomalies.facts import Acked, Finding
from kcluster.checks.anomalies.positions import followed
from kcluster.checks.anomalies.search import anomalies_of_partition, places_of
from kcluster.checks.anomalies.torn_transaction import TornTransaction, is_lacking
from kcluster.checks.settings import acks_setting
from kcluster.clients.ledger import Outcome, Partition, ReadRecord, SentRecord
from kcluster.judge.contradictions import contradicting_acks
from kcluster.judge.cycles import (
    CycleStep,
    TransactionKey,
    dependencies_of,
    overwrites_of,
    write_cycles,
    writers_of,
)
from kcluster.judge.history import (
    History,
    LogEnd,
    OperationPlace,
    PartitionFacts,
    Passed,
    ReadInTransaction,
)
from kcluster.judge.judgment import Judgment, Proof, Proven, Undecided
from kcluster.judge.observed import SeenPartition, seen_partition

LOST: Final = "lost-write"
UNSEEN: Final = "unseen"
TORN: Final = "torn-transaction"
PROVABLE: Final = (
    LOST,
    "duplicate",
    UNSEEN,
    "nonmonotonic-send",
    "inconsistent-offsets",
    "aborted-read",
    TORN,
    "poll-skip",
    "nonmonotonic-poll",
)
"""The anomalies that clients can prove, by their names in a verdict.  A record that no producer
sent is not among them: a history need not have all producers."""
MAX_PROOFS: Final = 8
"""The most operations that prove one anomaly."""

Order = tuple[int, int]
"""The place of an operation among all of the history: (file, line)."""


class PartitionOperations(Struct):
    """The sends and reads of one partition, each list in the order of the history.  `orders`,
    `send_origins`: of the sends; `read_origins`: of the reads."""

    partition: Partition
    sends: list[SentRecord] = []
    orders: list[Order] = []
    send_origins: list[OperationPlace] = []
    reads: list[ReadRecord] = []
    read_origins: list[OperationPlace] = []
    transaction_reads: list[ReadInTransaction] = []
    log_ends: list[LogEnd] = []
    passed: list[Passed] = []


class PlacedSend(Struct, frozen=True):
    """A record of a transaction: its place in the log, and the operations that show it."""

    order: Order
    placed: TransactionalSend
    proofs: tuple[Proof, ...]


class TransactionPart(Struct, frozen=True):
    """One transaction in one partition: its first record that can be read, and the first that is
    lacking; None for none."""

    key: TransactionKey
    there: PlacedSend | None
    lacking: PlacedSend | None


class PartJudgment(Struct):
    """The judgement of one partition.  `overwrites`, `dependencies`: the edges between its
    transactions.  `doubtful`: the sends that the history leaves undecided."""

    partition: Partition
    sent: int
    acked: int
    read: int
    proven: list[Proven]
    undecided: Undecided | None
    transactions: list[TransactionPart]
    overwrites: list[CycleStep]
    dependencies: list[CycleStep]
    doubtful: Sequence[SentRecord]


def judge_history(history: History) -> Judgment:
    """Judge a history from what clients saw alone."""
    return merged(judged_parts(history), history.missing).without_findings()


def judged_parts(history: History) -> list[PartJudgment]:
    """The judgement of each partition of a history."""
    return [judge_part(part, history.facts(part.partition[0])) for part in parts_of(history)]


def parts_of(history: History) -> list[PartitionOperations]:
    """A history by partition."""
    parts: dict[Partition, PartitionOperations] = {}

    def part_of(partition: Partition) -> PartitionOperations:
        return parts.get(partition) or parts.setdefault(partition, PartitionOperations(partition))

    ledger = history.ledger
    for number, (send, origin) in enumerate(zip(ledger.sends, history.send_origins, strict=True)):
        part = part_of(send.partition)
        part.sends.append(send)
        part.orders.append((0, number))
        part.send_origins.append(origin)
    for read, origin in zip(ledger.reads, history.read_origins, strict=True):
        part = part_of(read.partition)
        part.reads.append(read)
        part.read_origins.append(origin)
    for each in history.transaction_reads:
        part_of(each.partition).transaction_reads.append(each)
    for end in history.log_ends:
        part_of(end.partition).log_ends.append(end)
    for passed in history.passed:
        part_of(passed.partition).passed.append(passed)
    return [parts[partition] for partition in sorted(parts)]


def judge_part(part: PartitionOperations, facts: PartitionFacts) -> PartJudgment:
    """Judge one partition."""
    seen = seen_partition(part.sends, part.reads, facts, part.log_ends, part.passed)
    doubtful = {send.value for send in seen.undecided}
    history = PartitionHistory(
        partition=part.partition,
        sends=[send for send in part.sends if send.value not in doubtful],
        reads=part.reads,
        log=seen.log,
        places=places_of(seen.log),
        drained=facts.is_drained,
        read_committed=dict.fromkeys(facts.read_committed),
    )
    proofs = _Proofs(part, facts.is_read_from_start)
    found = [each for each in anomalies_of_partition(history) if each.name in PROVABLE]
    found += [*_replaced(seen), *_unseen(seen)]
    found += contradicting_acks(part.sends, history, found)
    writers = writers_of(part.sends)
    return PartJudgment(
        partition=part.partition,
        sent=len(part.sends),
        acked=sum(send.outcome is Outcome.ACKED for send in part.sends),
        read=len({(read.offset, read.value) for read in part.reads}),
        proven=[Proven(each, tuple(proofs.of(each))) for each in found],
        undecided=_undecided(part.partition, seen),
        transactions=[*_transactions(part, history, seen, proofs)] if writers else [],
        overwrites=[*overwrites_of(part.partition, seen.log, writers)] if writers else [],
        dependencies=[*dependencies_of(part.transaction_reads, writers, facts.read_committed)],
        doubtful=seen.undecided,
    )


def merged(parts: Sequence[PartJudgment], missing: Iterable[str] = ()) -> Judgment:
    """The judgement of a history, from those of its partitions, in order.  `missing`: why parts of
    the history are missing."""
    return Judgment(
        sent=sum(part.sent for part in parts),
        acked=sum(part.acked for part in parts),
        read=sum(part.read for part in parts),
        proven=(
            *chain.from_iterable(part.proven for part in parts),
            *torn_transactions(chain.from_iterable(part.transactions for part in parts)),
        ),
        cycles=tuple(
            write_cycles(
                chain.from_iterable(part.overwrites for part in parts),
                chain.from_iterable(part.dependencies for part in parts),
            )
        ),
        undecided=tuple(part.undecided for part in parts if part.undecided is not None),
        missing=tuple(missing),
    )


def torn_transactions(parts: Iterable[TransactionPart]) -> Iterator[Proven]:
    """The transactions of which a part can be read and the rest cannot, in the order of their first
    records."""
    whole: dict[TransactionKey, tuple[list[PlacedSend], list[PlacedSend]]] = {}
    for part in parts:
        there, lacking = whole.setdefault(part.key, ([], []))
        there += [part.there] if part.there is not None else []
        lacking += [part.lacking] if part.lacking is not None else []
    kind = ANOMALIES[TORN]
    assert isinstance(kind, TornTransaction)
    torn = [
        (min(there, key=_order), min(lacking, key=_order))
        for there, lacking in whole.values()
        if there and lacking
    ]
    for first, missing in sorted(torn, key=lambda each: each[0].order):
        transaction = first.placed.send.transaction
        assert transaction is not None
        finding = kind.torn(transaction, first.placed, missing.placed)
        shown = [first.proofs[0], *missing.proofs, *first.proofs[1:]]
        yield Proven(anomaly_of(finding), tuple(shown[:MAX_PROOFS]))


def _order(send: PlacedSend) -> Order:
    return send.order


def _transactions(
    part: PartitionOperations, history: PartitionHistory, seen: SeenPartition, proofs: _Proofs
) -> Iterator[TransactionPart]:
    """The transactions of a partition, each by its first records."""
    doubtful = {send.value for send in seen.undecided}
    there: dict[TransactionKey, PlacedSend] = {}
    lacking: dict[TransactionKey, PlacedSend] = {}
    for at, send in enumerate(part.sends):
        if send.transaction is None or send.value in doubtful:
            continue
        key = (send.producer, send.transaction.number)
        placed = _placed(send, history, seen)
        if placed.visible_at >= 0 and key not in there:
            reads = proofs.reads_of(send.value)
            there[key] = PlacedSend(part.orders[at], placed, (proofs.send_at(at), *reads))
        elif key not in lacking and is_lacking(placed, history.log):
            lacking[key] = PlacedSend(part.orders[at], placed, (proofs.send_at(at),))
    for key in dict.fromkeys((*there, *lacking)):
        yield TransactionPart(key, there.get(key), lacking.get(key))


def _placed(send: SentRecord, history: PartitionHistory, seen: SeenPartition) -> TransactionalSend:
    at = history.places.get(send.value, ())
    hidden = at if send.value in seen.withheld else seen.log.hidden
    visible_at = next((offset for offset in at if offset not in hidden), -1)
    hidden_at = next((offset for offset in at if offset in hidden), -1)
    return TransactionalSend(send, visible_at, hidden_at)


def _replaced(seen: SeenPartition) -> list[Anomaly]:
    """The records of a compacted topic whose offsets other records took."""
    kind = ANOMALIES[LOST]
    assert isinstance(kind, PartitionAnomaly)
    findings = [
        kind.about(send, send.offset, Acked(send.acks), allowed=acks_setting(send.acks))
        for send in seen.replaced
    ]
    return grouped(kind, sorted(findings, key=lambda found: found.offset))


def _unseen(seen: SeenPartition) -> list[Anomaly]:
    """The records that were acked beyond the last read, although consumers read to the end."""
    kind = ANOMALIES[UNSEEN]
    assert isinstance(kind, PartitionAnomaly)
    findings = [
        Finding(UNSEEN, send.partition, "", send.offset, send.value, at_ms=send.sent_ms)
        for send in seen.unseen
    ]
    return grouped(kind, sorted(findings, key=lambda found: found.offset))


def _undecided(partition: Partition, seen: SeenPartition) -> Undecided | None:
    left = [send for send in seen.undecided if send.is_promised]
    if not left:
        return None
    offsets = [send.offset for send in left if send.offset >= 0]
    first, last = min(offsets, default=-1), max(offsets, default=-1)
    return Undecided(partition, len(left), first, last, seen.read_to)


class _Proofs:
    """The operations of a partition that prove its anomalies."""

    def __init__(self, part: PartitionOperations, is_read_from_start: bool) -> None:
        self._part = part
        self._sends: dict[bytes | None, list[int]] = {}
        """The numbers of the sends of each value."""
        for number, send in enumerate(part.sends):
            self._sends.setdefault(send.value, []).append(number)
        self._reads: dict[bytes | None, list[int]] = {}
        self._gaps: list[tuple[int, int, int]] = []
        """(offset, number, next number) of two reads of a consumer that passed offsets in between;
        (-1, number, number) of a first read that passed those before it."""
        self._widest = 0
        """The most offsets between two such reads."""
        for number, before in enumerate(followed(part.reads)):
            read = part.reads[number]
            self._reads.setdefault(read.value, []).append(number)
            if before < 0 and not is_read_from_start:
                continue
            offset, begin = (part.reads[before].offset, before) if before >= 0 else (-1, number)
            if offset + 1 < read.offset:
                self._gaps.append((offset, begin, number))
                self._widest = max(self._widest, read.offset - offset)
        self._gaps.sort()

    def send_at(self, number: int) -> Proof:
        """The send with this number."""
        return Proof(self._part.sends[number], self._part.send_origins[number])

    def reads_of(self, value: bytes | None) -> list[Proof]:
        """The first reads of a value."""
        return [self._read_at(number) for number in self._reads.get(value, ())[:MAX_PROOFS]]

    def _read_at(self, number: int) -> Proof:
        return Proof(self._part.reads[number], self._part.read_origins[number])

    def of(self, anomaly: Anomaly) -> Iterator[Proof]:
        """The sends of the anomaly's records; their reads, and of each consumer the two reads
        between which it passed their offsets."""
        values = dict.fromkeys((*anomaly.values, anomaly.other_value))
        sends = sorted(number for value in values for number in self._sends.get(value, ()))
        reads: list[tuple[int, ...]] = [
            (number,)
            for value in values
            if value is not None
            for number in self._reads.get(value, ())
        ]
        known = {number for (number,) in reads}
        first = anomaly.first
        near = self._gaps[
            bisect_left(self._gaps, (first - self._widest,)) : bisect_left(self._gaps, (first,))
        ]
        reads += [
            (before, number) if before < number else (number,)
            for _, before, number in near
            if number not in known and first < self._part.reads[number].offset
        ]
        reads.sort(key=lambda numbers: numbers[-1])
        proofs = [self.send_at(number) for number in sends[:MAX_PROOFS]]
        proofs += [self._read_at(number) for numbers in reads for number in numbers][:MAX_PROOFS]
        proofs += [*self._passed(anomaly), *self._log_end(anomaly)]
        return iter(proofs[:MAX_PROOFS])

    def _passed(self, anomaly: Anomaly) -> Iterator[Proof]:
        """The positions by which consumers are known to have passed the records."""
        missing = anomaly.other if anomaly.name == TORN else anomaly.first
        for passed in self._part.passed:
            if passed.last_read < missing < passed.until:
                yield Proof(passed, passed.origin)

    def _log_end(self, anomaly: Anomaly) -> list[Proof]:
        """The last end of the log that a lost record was not below."""
        if anomaly.name != LOST:
            return []
        ends = [end for end in self._part.log_ends if end.offset <= anomaly.first]
        return [Proof(end, end.origin) for end in ends[-1:]]
