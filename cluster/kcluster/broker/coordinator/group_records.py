"""The records of a batch of __consumer_offsets, whatever kinds of groups they are of.

Owns: the readers of all kinds of records, in one table.  Never: knows a format (group_log.py and
<kind>/records.py do).  Kafka: GroupCoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct as Layout
from typing import Final

from kcluster.broker.coordinator import group_log
from kcluster.broker.coordinator.consumer import records as consumer_records
from kcluster.broker.coordinator.group_log import LogRecord, Reader
from kcluster.broker.coordinator.share import records as share_records
from kcluster.broker.coordinator.streams import records as streams_records
from kcluster.protocol.records.records import Batch, read_records

_INT16: Final = Layout(">h")

READERS: Final[Mapping[int, Reader]] = {
    **group_log.READERS,
    **consumer_records.READERS,
    **streams_records.READERS,
    **share_records.READERS,
}
"""Kind of key -> the reader of such records."""


def decode_batch(batch: Batch) -> Iterator[LogRecord]:
    """The records of known kinds, in the order in which they were written.  Records of kinds
    without a reader are skipped, never lost: the log keeps them."""
    if batch.is_control:
        return
    for record in read_records(batch):
        if record.key is None:
            continue
        (kind,) = _INT16.unpack_from(record.key)
        reader = READERS.get(kind)
        if reader is not None:
            yield reader(record.key, record.value)
