"""Transaction markers: the control batches that end a producer's transaction in one partition.

Owns: their one record, its key and value.  Never: decides when a marker is due or valid
(partition/producers.py does).  Kafka: EndTransactionMarker, ControlRecordType; KIP-98.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from kcluster.protocol.records.records import Batch, Record, build_batch, read_records
from kcluster.structs import Frozen

_KEY: Final = Layout(">hh")
"""The layout of a marker's key: version, type."""
_VALUE: Final = Layout(">hi")
"""The layout of a marker's value: version, coordinator epoch."""
_VERSION: Final = 0
_ABORT: Final = 0
_COMMIT: Final = 1


class Marker(Frozen, frozen=True):
    """The value of a marker: how the transaction ended, and the epoch of the coordinator that ended
    it."""

    is_commit: bool
    coordinator_epoch: int


def build_marker(producer_id: int, producer_epoch: int, marker: Marker, now_ms: int) -> bytearray:
    """The control batch that ends the transaction of a producer."""
    key = _KEY.pack(_VERSION, _COMMIT if marker.is_commit else _ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return build_batch(
        [Record(0, now_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(batch: Batch) -> Marker | None:
    """The marker in a control batch; None if it is a control batch of another kind."""
    for record in read_records(batch):
        key, value = record.key, record.value
        if key is None or value is None or len(key) < _KEY.size or len(value) < _VALUE.size:
            return None
        _, kind = _KEY.unpack_from(key)
        _, coordinator_epoch = _VALUE.unpack_from(value)
        return Marker(kind == _COMMIT, coordinator_epoch) if kind in (_ABORT, _COMMIT) else None
    return None
