"""What the programs of a world have registered with atexit.

Owns: their entries, the order in which they are called.  Never: decides when a program is over.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from msgspec import Struct


class AtExit(Struct, frozen=True, eq=False):
    """What is to be called.  `app`: the program that registered it, "" for a test."""

    app: str
    function: Callable[..., object]
    arguments: tuple[object, ...]
    keywords: dict[str, object]


@final
class AtExits:
    """The entries of one world."""

    def __init__(self) -> None:
        self._entries: list[AtExit] = []

    def register(self, entry: AtExit) -> None:
        """Call this at the exit."""
        self._entries.append(entry)

    def unregister(self, function: Callable[..., object]) -> None:
        """Do not call this function."""
        self._entries[:] = [entry for entry in self._entries if entry.function != function]

    def forget(self) -> None:
        """Call none of them: the programs that registered them have been killed."""
        self._entries.clear()

    def run(self, app: str | None = None) -> None:
        """Call the entries of a program, by default all; the last one first."""
        while wanted := [entry for entry in self._entries if app in (None, entry.app)]:
            entry = wanted[-1]
            self._entries.remove(entry)
            entry.function(*entry.arguments, **entry.keywords)
