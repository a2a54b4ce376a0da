"""Why an answer differs on purpose.

Owns: the table.  Never: hides a bug: what has no good reason is fixed.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Reason(Struct, frozen=True):
    """Explains differences of some cases (`family: case`) at some paths; both are globs."""

    area: str
    text: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)


REASONS: Final[tuple[Reason, ...]] = ()
