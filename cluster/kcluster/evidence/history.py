"""The final logs of a run, and the links of the chains that explain it, as values.

Owns: FinalLog, Link, how a record's value is shown.  Never: looks into a node (finals.py does),
finds an anomaly or its causes (checks/anomalies/ does).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.contract import NoteId
from kcluster.evidence.causes import Cause

PADDING: Final = "...."
"""Values that are padded to a size end with this; it is not shown."""


class Link(Struct, frozen=True):
    """One event of the chain that led to an anomaly.  `note_id`: of the note it was made from;
    `causes`: what it stands for; `error`: the error that a client got, by Kafka's name."""

    at_ms: int
    text: str
    note_id: NoteId | None = None
    causes: tuple[Cause, ...] = ()
    error: str = ""


class OpenTransaction(Struct, frozen=True):
    """A transaction that is open in a log.  `is_owned`: its coordinator knows that it is.
    `overdue_ms`: for how long its marker could have been written, as far as is known."""

    producer_id: int
    first_offset: int
    is_owned: bool
    overdue_ms: int = 0


class FinalLog(Struct, frozen=True):
    """A partition read from beginning to end after the run: (offset, value) in order.

    `start_offset`: records below were deleted on purpose, or are not judged one by one;
    `clean_offset`: records below may have been compacted away.  `names`: by offset, what identifies
    a record if its value does not.  `epochs`: (leader epoch, first offset), oldest first.
    """

    start_offset: int
    records: Sequence[tuple[int, bytes | None]]
    clean_offset: int = 0
    names: Mapping[int, bytes] = {}
    end_offset: int = 0
    epochs: Sequence[tuple[int, int]] = ()
    deleted_before: int = 0
    """Records below were deleted on purpose."""
    hidden: Mapping[int, None] = {}
    """The offsets in aborted and open transactions, which read_committed consumers do not get."""
    open_transactions: Sequence[OpenTransaction] = ()


def shown(value: bytes | None) -> str:
    """A record's value as text for people, shortened."""
    if value is None:
        return "null"
    text = value.decode("utf-8", "backslashreplace")
    if text.endswith(PADDING):
        text = text.rstrip(PADDING[0])
    return text if len(text) <= 40 else f"{text[:37]}..."
