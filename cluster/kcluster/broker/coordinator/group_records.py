"""The records of a batch of __consumer_offsets, for groups of any kind.

Owns: the readers of all kinds of records, in one table.  Never: knows a format (group_log.py and
modern/records.py do).  Kafka: GroupCoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct as Layout
from typing import Final

from kcluster.broker.coordinator import group_log
from kcluster.broker.coordinator.group_log import LogRecord, Reader
from kcluster.broker.coordinator.modern import records
from kcluster.broker.coordinator.records import decode_records
from kcluster.protocol.records.records import Batch

_INT16: Final = Layout(">h")

READERS: Final[Mapping[int, Reader]] = {**group_log.READERS, **records.READERS}
"""Kind of key -> the reader of such records."""


def decode_batch(batch: Batch) -> Iterator[LogRecord]:
    """The records of known kinds, in the order in which they were written."""
    found: Iterator[tuple[int, LogRecord]] = decode_records(batch, _decode)
    for _, record in found:
        yield record


def _decode(key: bytes, value: bytes | None) -> LogRecord | None:
    reader = READERS.get(_INT16.unpack_from(key)[0])
    return None if reader is None else reader(key, value)
