"""The values of records, decoded once per batch for all replicas that share it.

Owns: the decoded values.  Never: decodes a batch while the cluster runs.
Kafka: no counterpart; DefaultRecordBatch.iterator, for values alone.
"""

from __future__ import annotations

from kcluster.protocol.records import compression as codecs
from kcluster.protocol.records.batches import HEADER_BYTES, Batch
from kcluster.protocol.records.records import read_records, read_varint

Value = tuple[int, bytes | None]
"""(offset, value)."""


class Contents:
    """Values by batch object: replicas share batches, so a batch is looked up by identity."""

    def __init__(self) -> None:
        self._decoded: dict[Batch, list[Value]] = {}

    def of(self, batch: Batch) -> list[Value]:
        """(offset, value) of each record; none of control batches."""
        values = self._decoded.get(batch)
        if values is None:
            if batch.is_control:
                values = []
            elif batch.codec == codecs.NONE:
                values = _values(batch)
            else:
                values = [(record.offset, record.value) for record in read_records(batch)]
            self._decoded[batch] = values
        return values


def _values(batch: Batch) -> list[Value]:
    """Decodes values alone: the log has validated the records.  Most varints have one byte."""
    data = bytes(memoryview(batch.buffer)[HEADER_BYTES:])
    base, position = batch.base_offset, 0
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
            _, position = read_varint(data, position)
        delta = data[position]
        if delta < 0x80:
            delta >>= 1
            position += 1
        else:
            delta, position = read_varint(data, position)
        size, position = read_varint(data, position)
        if size > 0:
            position += size
        size, position = read_varint(data, position)
        values.append((base + delta, None if size < 0 else data[position : position + size]))
        position = end
    return values
