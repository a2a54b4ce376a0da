"""What the records of all coordinators have in common: they encode themselves, and share a batch.

Owns: that interface, and the batch.  Never: knows a kind of record (group_log.py,
transactions/transaction_log.py).  Kafka: CoordinatorRecord, CoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kcluster.protocol.records.records import Record, build_batch

Encoded = tuple[bytes, bytes | None]
"""Key and value of a record; no value for a tombstone."""


class CoordinatorRecord(Protocol):
    """A record of a coordinator's log, of any kind."""

    def encode(self) -> Encoded: ...


def encode_records(
    records: Iterable[CoordinatorRecord],
    now_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    compression: int = 0,
) -> bytearray:
    """One batch with `records`, ready to be appended; transactional if it names a producer.
    `compression`: the codec's id."""
    return build_batch(
        [Record(0, now_ms, *record.encode()) for record in records],
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=producer_id >= 0,
    )
