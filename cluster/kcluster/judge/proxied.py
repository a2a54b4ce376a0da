"""The record of a proxy as operations: what clients sent and received, by the headers of batches.

Owns: the names of records that nobody has read, the sends of which several requests are attempts.
Never: reads a record of a batch.  Kafka: no counterpart.

A record is named after its producer id, epoch and sequence, or after the CRC of its batch and its
place in it.  A consumer's next fetch that does not follow its last one counts as a new position:
a proxy cannot see whether it was a seek.  Its last answer with records shows its position, and the
first ones of all consumers whether somebody received what lies below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kcluster.clients.ledger import Outcome, TransactionOutcome
from kcluster.judge.history import (
    AnyOperation,
    AssignOperation,
    Isolation,
    OperationPlace,
    PollOperation,
    PositionOperation,
    ReadFromStartOperation,
    Received,
    SendOperation,
    TransactionOperation,
)
from kcluster.runs.proxied_rows import BatchHead, FetchedRow, ProducedRow, TransactionRequestRow

CONTROL_BIT = 0x20
"""The bit in a batch's attributes that marks the end of a transaction (KIP-98)."""

Located = tuple[OperationPlace, AnyOperation]


class EndedTransactions:
    """The ends of transactions, as their producers requested them."""

    def __init__(self, rows: Iterable[TransactionRequestRow]) -> None:
        self._ends: dict[str, list[TransactionRequestRow]] = {}
        for row in rows:
            if row.committed is not None and row.transactional_id is not None:
                self._ends.setdefault(row.transactional_id, []).append(row)

    def number_at(self, row: ProducedRow) -> int:
        """The number of the transaction to which a request belongs, 0 for none."""
        if row.transactional_id is None:
            return 0
        ends = self._ends.get(row.transactional_id, ())
        return 1 + sum(not end.error and end.at_ms <= row.asked_ms for end in ends)

    def operations(self, source: str) -> Iterator[Located]:
        """The ends; a refused request leaves its transaction open, and an unanswered one in
        doubt."""
        for client, ends in self._ends.items():
            number = 1
            for end in ends:
                outcome = TransactionOutcome.UNKNOWN
                if end.answered_ms >= 0 and not end.error:
                    is_commit = end.committed
                    outcome = TransactionOutcome.ABORTED
                    outcome = TransactionOutcome.COMMITTED if is_commit else outcome
                ended = TransactionOperation(client, number, outcome, -1, end.at_ms)
                yield OperationPlace(source, 0), ended
                number += not end.error


class AppendedBatches:
    """The acked batches that have no producer id, by their places.

    A broker rewrites a batch, and with it the CRC, if the topic's timestamps are LogAppendTime, or
    its compression.type differs from the producer's.  Offset, number of records and base timestamp
    stay.  Kafka: LogValidator.
    """

    def __init__(self, rows: Iterable[ProducedRow]) -> None:
        self._crcs: dict[tuple[str, int, int, int, int], int] = {}
        for row in rows:
            for batch in row.batches:
                if row.base_offset >= 0 and not row.error and _is_named_by_crc(batch):
                    place = (row.topic, row.partition, row.base_offset)
                    self._crcs[(*place, batch.count, batch.base_timestamp_ms)] = batch.crc

    def crc_as_sent(self, topic: str, partition: int, batch: BatchHead) -> int:
        """The CRC with which a fetched batch was sent; its own if no acked batch fits."""
        if batch.base_timestamp_ms < 0:
            return batch.crc
        key = (topic, partition, batch.first, batch.count, batch.base_timestamp_ms)
        return self._crcs.get(key, batch.crc)


def _is_named_by_crc(batch: BatchHead) -> bool:
    return batch.producer_id < 0 or batch.sequence < 0


def names_of(batch: BatchHead, crc: int) -> list[str]:
    """The name of each record of a batch.  `crc`: the batch's, as it was sent."""
    if _is_named_by_crc(batch):
        return [f"{crc:08x}+{at}" for at in range(batch.count)]
    who = f"{batch.producer_id}.{batch.producer_epoch}"
    return [f"{who}.{batch.sequence + at}" for at in range(batch.count)]


def sent(source: str, rows: Iterable[ProducedRow], ends: EndedTransactions) -> Iterator[Located]:
    """The sends, in the order of their first attempts.  A record has one send for each offset with
    which it was acked, else a single one: of certain failure only if each attempt was refused."""
    attempts: dict[tuple[str, int, str], list[tuple[int, ProducedRow, int]]] = {}
    for line, row in enumerate(rows, 1):
        at = 0
        for batch in row.batches:
            for name in names_of(batch, batch.crc):
                key = (row.topic, row.partition, name)
                attempts.setdefault(key, []).append((line, row, at))
                at += 1
    for (topic, partition, name), tried in attempts.items():
        acked = {
            row.base_offset + at: (line, row)
            for line, row, at in tried
            if row.answered_ms >= 0 and not row.error and row.base_offset >= 0
        }
        line, last, _ = tried[-1]
        found = acked or {-1: (line, last)}
        for offset, (line, row) in found.items():
            is_promised = offset >= 0 or (row.answered_ms >= 0 and not row.error)
            yield (
                OperationPlace(source, line),
                SendOperation(
                    client=row.transactional_id or row.client_id,
                    topic=topic,
                    partition=partition,
                    value=name,
                    outcome=Outcome.ACKED if is_promised else Outcome.UNKNOWN,
                    offset=offset,
                    acks=row.acks,
                    idempotent=not name.count("+"),
                    transaction=ends.number_at(row),
                    sent_ms=tried[0][1].asked_ms,
                    ended_ms=row.at_ms,
                    error=row.error,
                ),
            )


def received(
    source: str, rows: Iterable[FetchedRow], appended: AppendedBatches
) -> Iterator[Located]:
    """The records that consumers got, without those of aborted transactions if they read
    committed ones only; then their positions, and whether all of them began at the beginning."""
    next_offset: dict[tuple[str, str, int], int] = {}
    reached: dict[tuple[str, str, int], Located] = {}
    received_to: dict[tuple[str, int], int] = {}
    """The offset below which consumers have received all, by partition."""
    is_from_start = True
    for line, row in enumerate(rows, 1):
        if row.error or row.answered_ms < 0:
            continue
        place = OperationPlace(source, line)
        key = (row.client_id, row.topic, row.partition)
        if next_offset.get(key) != row.fetch_offset:
            moved = ((row.topic, row.partition),)
            yield place, AssignOperation(row.client_id, moved, row.at_ms)
        records = tuple(
            Received(row.topic, row.partition, offset, name)
            for offset, name in _visible(row, appended)
            if offset >= row.fetch_offset
        )
        isolation = Isolation.READ_COMMITTED if row.read_committed else Isolation.READ_UNCOMMITTED
        if records:
            yield place, PollOperation(row.client_id, records, isolation, row.at_ms)
        after = max((batch.last + 1 for batch in row.batches), default=row.fetch_offset)
        next_offset[key] = after
        reached[key] = place, PositionOperation(*key, after, row.at_ms)
        known = received_to.get(key[1:], 0)
        is_from_start &= row.fetch_offset <= known
        received_to[key[1:]] = max(after, known)
    yield from reached.values()
    if reached and is_from_start:
        yield OperationPlace(source, 0), ReadFromStartOperation()


def _visible(row: FetchedRow, appended: AppendedBatches) -> Iterator[tuple[int, str]]:
    """The offset and the name of each record that the consumer's application gets.  The places of
    records in a batch that compaction has thinned are not known: it gives none."""
    aborted = dict(row.aborted) if row.read_committed else {}
    for batch in row.batches:
        is_whole = batch.count == batch.last - batch.first + 1
        if batch.attributes & CONTROL_BIT:
            aborted.pop(batch.producer_id, None)
        elif is_whole and aborted.get(batch.producer_id, batch.last + 1) > batch.first:
            crc = appended.crc_as_sent(row.topic, row.partition, batch)
            yield from enumerate(names_of(batch, crc), batch.first)
