"""The common part of the records of all coordinators: they encode themselves, and share a batch.

Owns: this interface, and the batch.  Never: knows a kind of record (group_log.py,
transactions/transaction_log.py).  Kafka: CoordinatorRecord, CoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import error as StructError
from typing import Final, Protocol, TypeVar

from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.records.batches import Batch, InvalidRecords
from kcluster.protocol.records.records import Record, build_batch, read_records

Encoded = tuple[bytes, bytes | None]
"""Key and value of a record; no value for a tombstone."""

R = TypeVar("R")
_MALFORMED: Final = (ProtocolError, KeyError, ValueError, StructError)
"""The errors of decoding wrong bytes."""


class CoordinatorRecord(Protocol):
    """A record of a coordinator's log, of any kind."""

    def encode(self) -> Encoded: ...


def decode_records(
    batch: Batch, decode: Callable[[bytes, bytes | None], R | None]
) -> Iterator[tuple[int, R]]:
    """(offset, record) of a batch, in the order in which they were written.  Records that `decode`
    does not know are skipped, never lost: the log keeps them.

    DIFFERS: records that cannot be decoded are skipped, too.  Kafka's coordinator then fails for
    good, and any client can cause that: a client called __admin_client may write to internal
    topics.
    """
    if batch.is_control:
        return
    try:
        records = read_records(batch)
    except InvalidRecords:
        return
    for record in records:
        if record.key is None:
            continue
        try:
            decoded = decode(record.key, record.value)
        except _MALFORMED:
            continue
        if decoded is not None:
            yield record.offset, decoded


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
