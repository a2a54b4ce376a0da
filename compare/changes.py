"""What changed in the answers of Apache Kafka from one release to the next, in words.

Owns: the table.  Never: has a change that no recorded answer shows (what_changed.py finds them).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Change(Struct, frozen=True):
    """Explains the changed answers of some cases (`family: case`) at some paths; both are globs.
    Without a text, a table of the page shows it."""

    area: str
    text: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)


CHANGES: Final[tuple[Change, ...]] = ()
