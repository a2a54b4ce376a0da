"""The functions that the programs of a world have registered with atexit.

Owns: these functions, and the order of their calls.  Never: decides when a program is over. Kafka:
no counterpart.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import final

from msgspec import Struct

from kcluster.operations.errors import ClusterError


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
            with _Reported(entry):
                entry.function(*entry.arguments, **entry.keywords)


class _Reported:
    """Writes an exception of a call to stderr and goes on, as an interpreter does at its exit.  A
    time limit or deadlock of the world ends everything."""

    def __init__(self, entry: AtExit) -> None:
        self._entry = entry

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, ClusterError):
            return False
        sys.stderr.write(f"Exception ignored in atexit callback: {self._entry.function!r}\n")
        traceback.print_exception(error, file=sys.stderr)
        return True
