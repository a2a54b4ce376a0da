"""The fetched records of a partition, without records that are hidden from the application.

Owns: decoding batches into records, skipping control batches and aborted transactions, advancing
the position past the records returned.  Never: sends, handles errors (fetcher.py does).
Kafka: CompletedFetch; KIP-98.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from struct import Struct as Layout
from typing import Any, Final

from kcluster.clients.consumer.positions import Position
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import (
    CONTROL_BIT,
    NO_PRODUCER_ID,
    Batch,
    InvalidRecords,
    check_crc,
    parse_batches,
)
from kcluster.protocol.records.records import Record, read_records

_CONTROL_KEY: Final = Layout(">hh")
"""Version and type of a control record."""
_ABORT: Final = 0

Segment = tuple[list[Record], int, int]
"""(records of a batch, the batch's leader epoch, the offset after the batch); no records if they
are hidden."""


class CompletedFetch:
    """Buffered records of one partition, and the number of them that were returned."""

    __slots__ = ("_at", "_next_offset", "_segments", "node", "position")

    def __init__(self, position: Position, node: int, segments: Iterable[Segment]) -> None:
        self.position = position
        self.node = node
        """The broker that sent the records."""
        self._segments = deque(segments)
        self._at = 0
        """The number of records of the first segment that were already returned."""
        self._next_offset = position.offset

    @property
    def is_next(self) -> bool:
        """Whether these records continue at the position; if not, they must be dropped."""
        return self._next_offset == self.position.offset

    def take(self, limit: int) -> list[Record]:
        """Return up to `limit` records, and advance the position past them.  Returns fewer only if
        none are left.  Kafka: fetchRecords."""
        segments = self._segments
        returned: list[Record] = []
        while segments:
            records, epoch, end_offset = segments[0]
            room = limit - len(returned)
            if len(records) - self._at > room:
                if room:
                    part = records[self._at : self._at + room]
                    self._at += room
                    returned += part
                    end_offset = part[-1].offset + 1
                    self._advance(end_offset, epoch)
                return returned
            returned = records if not returned and not self._at else returned + records[self._at :]
            self._at = 0
            segments.popleft()
            self._advance(end_offset, epoch)
        return returned

    def _advance(self, offset: int, epoch: int) -> None:
        self._next_offset = offset
        self.position.advance(offset, epoch)

    @property
    def is_empty(self) -> bool:
        """Whether all records were returned."""
        return not self._segments


def open_records(data: Any, offset: int, read_committed: bool, check_crcs: bool) -> list[Segment]:
    """The records of `FetchResponse.PartitionData` from `offset` on, by batch.

    Raises InvalidRecords for invalid bytes.  In virtual time records arrive as batches, which were
    never bytes on a wire: their CRC is not checked.
    """
    records = data.records
    batches: list[Batch] = records if isinstance(records, list) else _parsed(records, check_crcs)
    aborted = AbortedTransactions(data.aborted_transactions) if read_committed else None
    segments: list[Segment] = []
    for batch in batches:
        if batch.last_offset < offset:
            continue
        end_offset = batch.last_offset + 1
        if batch.attributes & CONTROL_BIT or (aborted is not None and aborted.hides(batch)):
            if aborted is not None and batch.attributes & CONTROL_BIT:
                aborted.pass_marker(batch)
            segments.append(([], batch.leader_epoch, end_offset))
            continue
        opened = read_records(batch)
        if batch.base_offset < offset:
            opened = [record for record in opened if record.offset >= offset]
        segments.append((opened, batch.leader_epoch, end_offset))
    return segments


def _parsed(records: Any, check_crcs: bool) -> list[Batch]:
    batches = parse_batches(records)
    if check_crcs:
        for batch in batches:
            if not check_crc(batch):
                raise InvalidRecords(
                    ErrorCode.CORRUPT_MESSAGE, f"batch at offset {batch.base_offset}: wrong CRC"
                )
    return batches


class AbortedTransactions:
    """The producers with an aborted transaction, from batch to batch."""

    def __init__(self, transactions: list[Any] | None) -> None:
        entries = [(x.first_offset, x.producer_id) for x in transactions or ()]
        self._pending = deque(sorted(entries))
        self._producers: dict[int, None] = {}

    def hides(self, batch: Batch) -> bool:
        if batch.producer_id == NO_PRODUCER_ID:
            return False
        while self._pending and self._pending[0][0] <= batch.last_offset:
            self._producers[self._pending.popleft()[1]] = None
        return batch.is_transactional and batch.producer_id in self._producers

    def pass_marker(self, batch: Batch) -> None:
        """Apply a control batch: an abort marker ends its producer's transaction."""
        self.hides(batch)
        opened = read_records(batch)
        key = (opened[0].key if opened else None) or b""
        is_marker = len(key) >= _CONTROL_KEY.size
        if is_marker and _CONTROL_KEY.unpack_from(key)[1] == _ABORT:
            self._producers.pop(batch.producer_id, None)
