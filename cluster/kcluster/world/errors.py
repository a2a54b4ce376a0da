"""What ends a world early, in words.

Owns: these exceptions.  Never: decides when they are raised (scheduler.py, refusals.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from kcluster.operations.errors import ClusterError
from kcluster.world.waits import StuckThread


class WorldEnded(SystemExit):
    """Unwinds a thread that is left when its world ends.  threading reports no SystemExit."""


class Deadlock(ClusterError):
    """No thread can ever go on."""

    def __init__(self, threads: list[StuckThread]) -> None:
        super().__init__(_with_threads("deadlock: no thread can go on", threads))
        self.threads = threads


class TimeLimit(ClusterError):
    """The world's time is over, and its first thread still waits."""

    def __init__(self, threads: list[StuckThread]) -> None:
        super().__init__(_with_threads("the limit of virtual time is reached", threads))
        self.threads = threads


class NotInVirtualTime(ClusterError):
    """Something that cannot live in virtual time."""


class UnknownHost(NotInVirtualTime, socket.gaierror):
    """A name that no broker has.  Clients take it for the resolver's answer, and go on."""

    def __init__(self, host: str) -> None:
        self.reason = f"{host} is no broker of this cluster; no other hosts are reached"
        super().__init__(socket.EAI_NONAME, f"{self.reason} in virtual time")


def _with_threads(first: str, threads: Iterable[StuckThread]) -> str:
    return "\n".join([f"{first}; what each waits for:", *map(thread_line, threads)])


def thread_line(thread: StuckThread) -> str:
    """One thread, as a line: its name, what it waits for, where."""
    what = f" ({thread.wait.what})" if thread.wait.what else ""
    place = thread.place
    where = "" if place is None else f", {os.path.relpath(place.file)}:{place.line}"
    function = "" if place is None else f" in {place.function}"
    of = f" of {thread.app}" if thread.app not in ("", thread.name) else ""
    return f"  {thread.name}{of} waits for {thread.wait.kind.value}{what}{where}{function}"
