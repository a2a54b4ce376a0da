"""The words for the moment from which a verdict judges a running cluster.

Owns: these words.  Never: judges (checks/verdict.py).
Kafka: no counterpart.

    30s      that long ago
    17       the time of the event with this number
    @12345   that moment of the cluster's clock, in ms: the `at_ms` of its status and of events
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.numbers import whole_number
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import NoteEntry

MAX_NUMBER: Final = 10**18 - 1
"""The highest number of an event, and the last moment in ms; both fit into 64 bits."""

WANTED: Final = "a time back (30s), an event's number (17), or a moment of the clock (@12345)"


def since_ms_of(since: str | int, now_ms: int, entries: Sequence[NoteEntry]) -> int:
    """The moment in ms of the cluster's clock.  `entries`: the events that are kept.  Raises
    ClusterError for other words, and for a missing event."""
    text = str(since).strip()
    number = whole_number(text.removeprefix("@"))
    if number is not None and number <= MAX_NUMBER:
        return number if text.startswith("@") else _of_event(number, entries)
    try:
        return now_ms - milliseconds(text, WANTED)
    except ValueError as error:
        raise ClusterError(f"since: {error}") from None


def _of_event(sequence: int, entries: Sequence[NoteEntry]) -> int:
    for entry in entries:
        if entry.sequence == sequence:
            return entry.note.at_ms
    kept = f"{entries[0].sequence} to {entries[-1].sequence} are kept" if entries else "none is"
    raise ClusterError(f"since: there is no event {sequence}; {kept}")
