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


REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "quorum",
        "one controller that no broker is, and that has no listener: brokers are observers",
        ("quorum: quorum*",),
        ("*current_voters*", "*observers*", "*nodes*"),
    ),
)
