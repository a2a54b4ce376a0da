"""The functions that the programs of a world have registered with atexit.

Owns: these functions, and the order of their calls.  Never: decides when a program is over. Kafka:
no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from msgspec import Struct


class AtExit(Struct, frozen=True, eq=False):
    """A registered call.  `app`: the program that registered it, "" for a test."""

    app: str
    function: Callable[..., object]
    arguments: tuple[object, ...]
    keywords: dict[str, object]


@final
class AtExits:
    """The registered calls of one world."""

    def __init__(self) -> None:
        self._entries: list[AtExit] = []

    def register(self, entry: AtExit) -> None:
        """Register a call for the exit."""
        self._entries.append(entry)

    def unregister(self, function: Callable[..., object]) -> None:
        """Drop all calls of this function."""
        self._entries[:] = [entry for entry in self._entries if entry.function != function]

    def forget(self, app: str | None = None) -> None:
        """Drop the calls of a program that has been killed, by default those of all programs."""
        self._entries[:] = [entry for entry in self._entries if app not in (None, entry.app)]

    def run(self, app: str | None = None) -> None:
        """Make a program's calls, by default the calls of all programs, in reverse order."""
        while wanted := [entry for entry in self._entries if app in (None, entry.app)]:
            entry = wanted[-1]
            self._entries.remove(entry)
            entry.function(*entry.arguments, **entry.keywords)
