"""The final logs of a run, as values.

Owns: FinalLog, a record's value as text.  Never: looks into a node (finals.py does), finds an
anomaly or its causes (checks/anomalies/ does).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kcluster.clients.ledger import Partition
from kcluster.metadata.records import PartitionRegistration
from kcluster.structs import Frozen

PADDING: Final = "...."
"""The character that pads values to a size; it is not shown."""


class OpenTransaction(Frozen, frozen=True):
    """A transaction that is open in a log.  `is_owned`: whether its coordinator knows that it is
    open. `overdue_ms`: the known time for which its marker could already have been written."""

    producer_id: int
    first_offset: int
    is_owned: bool
    overdue_ms: int = 0


class OfflinePartition(NamedTuple):
    """A partition without a leader, and its state at the controller."""

    partition: Partition
    registration: PartitionRegistration


class FinalLog(Frozen, frozen=True):
    """A partition read from beginning to end after the run: (offset, value) in order.

    `start_offset`: records below it were deleted on purpose, or are not judged one by one;
    `clean_offset`: records below it may have been compacted away.  `names`: by offset, the name of
    a record that its value does not identify.  `epochs`: (leader epoch, first offset), oldest
    first.
    """

    start_offset: int
    records: Sequence[tuple[int, bytes | None]]
    clean_offset: int = 0
    names: Mapping[int, bytes] = {}
    end_offset: int = 0
    epochs: Sequence[tuple[int, int]] = ()
    deleted_before: int = 0
    """Whether records below an offset were deleted on purpose."""
    hidden: Mapping[int, None] = {}
    """The offsets in aborted and open transactions, hidden from read_committed consumers."""
    open_transactions: Sequence[OpenTransaction] = ()

    def may_have_removed(self, offset: int) -> bool:
        """Whether the record at an offset may have been deleted on purpose or compacted away; -1:
        whether any may."""
        return offset < max(self.deleted_before, self.clean_offset)


def shown(value: bytes | None) -> str:
    """A record's value as text for people, shortened."""
    if value is None:
        return "null"
    text = value.decode("utf-8", "backslashreplace")
    if text.endswith(PADDING):
        text = text.rstrip(PADDING[0])
    return text if len(text) <= 40 else f"{text[:37]}..."
