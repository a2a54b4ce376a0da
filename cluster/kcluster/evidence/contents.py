"""The values of records, decoded once per batch for all replicas that share it.

Owns: the decoded values, and the list of batches that cannot be decoded.  Never: decodes a batch
while the cluster runs; raises for any bytes.  Kafka: no counterpart; DefaultRecordBatch.iterator,
for values alone.

A tombstone that a workload sent has its name for a value (clients/record_names.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kcluster.clients.ledger import Partition
from kcluster.clients.record_names import record_name
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records import compression as codecs
from kcluster.protocol.records.batches import HEADER_BYTES, Batch, InvalidRecords
from kcluster.protocol.records.records import read_records, read_varint, read_varlong
from kcluster.protocol.records.walk import RECORD_MIN_BYTES, invalid
from kcluster.structs import Frozen

Value = tuple[int, bytes | None]
"""(offset, value)."""


class Unreadable(Frozen, frozen=True):
    """Records that cannot be read, or whose offset is uncertain.  `error`: a reader's error, NONE
    if a reader reads on; `detail`: the fault in their bytes."""

    partition: Partition
    first: int
    last: int
    error: str
    detail: str


class Contents:
    """Values by batch object: replicas share batches, so a batch is looked up by identity.

    `unreadable`: why the records of these batches cannot be read.  Kafka appends batches of some
    kinds that cannot be read (partition/log/validation.py), and disks decay.
    """

    def __init__(self) -> None:
        self._decoded: dict[Batch, list[Value]] = {}
        self.unreadable: dict[Batch, InvalidRecords] = {}

    def of(self, batch: Batch) -> list[Value]:
        """(offset, value) of each record; empty for control batches and unreadable ones."""
        values = self._decoded.get(batch)
        if values is None:
            try:
                values = _decode(batch)
            except InvalidRecords as problem:
                # Another object: the traceback of this one holds the decompressed records.
                self.unreadable[batch] = InvalidRecords(problem.error, problem.text)
                values = []
            self._decoded[batch] = values
        return values

    def unreadable_in(self, partition: Partition, batches: Iterable[Batch]) -> Iterator[Unreadable]:
        """The batches among `batches` that were found to be unreadable."""
        for batch in batches if self.unreadable else ():
            problem = self.unreadable.get(batch)
            if problem is not None:
                first, last = batch.base_offset, batch.last_offset
                yield Unreadable(partition, first, last, problem.error.name, problem.text)


def _decode(batch: Batch) -> list[Value]:
    if batch.is_control:
        return []
    if batch.codec == codecs.NONE:
        try:
            values = _values(batch)
            if not any(value is None for _, value in values):
                return values
        except IndexError:
            raise invalid("the bytes end inside a record") from None
    values = [(record.offset, record_name(record)) for record in read_records(batch)]
    least = batch.base_offset
    for offset, _ in values:
        if offset < least:
            raise _misplaced(offset)
        least = offset + 1
    return values


def _misplaced(offset: int) -> InvalidRecords:
    """The error of a batch with wrong offset deltas, which Kafka appends if it is uncompressed."""
    return InvalidRecords(ErrorCode.NONE, f"a record claims offset {offset}, out of order")


def _values(batch: Batch) -> list[Value]:
    """Decode values alone.  Most varints have one byte."""
    data = bytes(memoryview(batch.buffer)[HEADER_BYTES:])
    if not 0 <= batch.record_count <= len(data) // RECORD_MIN_BYTES:
        raise invalid(f"{batch.record_count} records are not in {len(data)} bytes")
    base, position = batch.base_offset, 0
    least = 0
    values: list[Value] = []
    for _ in range(batch.record_count):
        size = data[position]
        if size < 0x80:
            size >>= 1
            position += 1
        else:
            size, position = read_varint(data, position)
        end = position + size
        position += 1
        if data[position] < 0x80:
            position += 1
        else:
            _, position = read_varlong(data, position)
        delta = data[position]
        if delta < 0x80:
            delta = (delta >> 1) ^ -(delta & 1)
            position += 1
        else:
            delta, position = read_varint(data, position)
        if delta < least:
            raise _misplaced(base + delta)
        least = delta + 1
        size, position = read_varint(data, position)
        if size > 0:
            position += size
        size, position = read_varint(data, position)
        stop = position + size
        if stop >= end:
            raise invalid(f"a value of {size} bytes does not fit into its record")
        values.append((base + delta, None if size < 0 else data[position:stop]))
        position = end
    if base + least > batch.last_offset + 1:
        raise _misplaced(base + least - 1)
    if position != len(data):
        raise invalid(f"{len(data) - position} bytes are behind the {batch.record_count} records")
    return values
