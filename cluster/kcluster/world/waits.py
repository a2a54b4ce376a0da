"""The waits of a world's threads: their kinds, and their places in the user's code.

Owns: `Waiting`, `StuckThread`, the search for the user's line.  Never: puts them into words
(errors.py). Kafka: no counterpart; a thread dump.
"""

from __future__ import annotations

import enum
import os
import threading
from types import FrameType
from typing import Final

from msgspec import Struct

from kcluster.packaged import is_packaged

_LIBRARY: Final = os.path.dirname(threading.__file__) + os.sep


class WaitFor(enum.Enum):
    """The kinds of waits.  The value completes the words "waits for"."""

    NOTHING = "nothing: it runs"
    TURN = "its turn"
    LOCK = "a lock"
    QUEUE = "an item in a queue"
    TIME = "a time to pass"
    SOCKETS = "sockets to be ready"
    CONNECTION = "a connection to be made"
    BYTES = "bytes to arrive"
    ROOM = "room to send"
    CLIENT = "somebody to connect"
    CLUSTER = "the cluster"


class Waiting(Struct, frozen=True):
    """One wait.  `what`: the lock, socket or time, in a few words."""

    kind: WaitFor
    what: str = ""

    @property
    def is_for_cluster(self) -> bool:
        """Whether an event of the cluster can end the wait."""
        return self.kind not in (WaitFor.NOTHING, WaitFor.LOCK, WaitFor.QUEUE, WaitFor.TURN)


FOREVER: Final = Waiting(WaitFor.TURN)
NO_WAIT: Final = Waiting(WaitFor.NOTHING)


class CodeLine(Struct, frozen=True):
    """A line of a program."""

    file: str
    line: int
    function: str


class StuckThread(Struct, frozen=True):
    """A thread, its wait, and the line of the user's code that waits; None if there is none.
    `app`: the thread's program, "" for a test."""

    name: str
    wait: Waiting
    place: CodeLine | None
    app: str = ""


def place_of(frame: FrameType | None) -> CodeLine | None:
    """The innermost line outside of this package and the standard library, or else the innermost
    line outside of this package."""
    found = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not (is_packaged(file) or file.startswith("<")):
            place = CodeLine(file, frame.f_lineno, frame.f_code.co_name)
            if not _is_library(file):
                return place
            found = found or place
        frame = frame.f_back
    return found


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARY) and "site-packages" not in file
