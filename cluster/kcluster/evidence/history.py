"""What a run left behind as values: the final logs, and the links of the stories told of them.

Owns: FinalLog, Link, how a record's value is shown.  Never: looks into a node (finals.py does),
finds an anomaly or its causes (checks/anomalies/ does).  Kafka: no counterpart.

The ledger of clients is in clients/ledger.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Ledger, Outcome, Partition, Read, Send, Told
from kcluster.contract import NoteId

__all__ = ["FinalLog", "Ledger", "Link", "Outcome", "Partition", "Read", "Send", "Told", "shown"]

PADDING: Final = "...."
"""Values that are filled up to a size end so; it is not shown."""


class Link(Struct, frozen=True):
    """One event of the chain that led to an anomaly.  `note_id`: of the note that tells it."""

    at_ms: int
    text: str
    note_id: NoteId | None = None


class FinalLog(Struct, frozen=True):
    """A partition as read from beginning to end when all is over: (offset, value) in order.

    `start_offset`: what lies below was deleted on purpose; `clean_offset`: what lies below may
    have been compacted away.  `names`: by offset, what the send of a record is known by, where
    that is not its value.  `epochs`: (leader epoch, first offset), oldest first.
    """

    start_offset: int
    records: Sequence[tuple[int, bytes | None]]
    clean_offset: int = 0
    names: Mapping[int, bytes] = {}
    end_offset: int = 0
    epochs: Sequence[tuple[int, int]] = ()


def shown(value: bytes | None) -> str:
    """A record's value for people, shortened."""
    if value is None:
        return "null"
    text = value.decode("utf-8", "backslashreplace")
    if text.endswith(PADDING):
        text = text.rstrip(PADDING[0])
    return text if len(text) <= 40 else f"{text[:37]}..."
