"""The errors that end a world early, and their messages.

Owns: these exceptions.  Never: decides when to raise one (scheduler.py, refusals.py). Kafka: no
counterpart.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from kcluster.operations.errors import ClusterError
from kcluster.world.waits import CodeLine, StuckThread


class WorldEnded(SystemExit):
    """The exception that ends a remaining thread when its world ends.  It is a SystemExit, which
    threading does not report."""


class Deadlock(ClusterError):
    """The error for a world in which every thread waits, and nothing can wake one."""

    def __init__(self, threads: list[StuckThread]) -> None:
        super().__init__(_with_threads("deadlock: no thread can go on", threads))
        self.threads = threads


class Livelock(ClusterError):
    """Threads wake each other for ever, at one moment of virtual time."""

    def __init__(self, threads: list[StuckThread], handovers: int) -> None:
        self.reason = (
            f"livelock: time stands still while threads wake each other ({handovers:,} times)"
        )
        super().__init__(_with_threads(self.reason, threads))
        self.threads = threads


class TimeLimit(ClusterError):
    """The error for a world whose time is up while its first thread still waits."""

    def __init__(self, threads: list[StuckThread]) -> None:
        super().__init__(_with_threads("the limit of virtual time is reached", threads))
        self.threads = threads


class StandStill(ClusterError):
    """The error for a thread that neither waits in virtual time nor ends, so that the others cannot
    go on."""

    def __init__(self, name: str, place: CodeLine | None, for_s: float, is_computing: bool) -> None:
        what = "has computed" if is_computing else "has been blocked in C"
        clock = "CPU time" if is_computing else "real time"
        why = (
            "without a wait (a loop that looks again and again must sleep: nothing else runs)"
            if is_computing
            else "where virtual time does not reach"
        )
        super().__init__(f"{name} {what} for {for_s:.0f} s of {clock}, {why}{_where(place)}")
        self.name = name
        self.place = place


class NotInVirtualTime(ClusterError):
    """The error for a call that cannot work in virtual time."""


class UnknownHost(NotInVirtualTime, socket.gaierror):
    """The error for the name of an unknown host.  Clients treat it like a resolver's answer, and go
    on."""

    def __init__(self, host: str) -> None:
        self.reason = f"{host} is no broker of this cluster; no other hosts are reached"
        super().__init__(socket.EAI_NONAME, f"{self.reason} in virtual time")


def _with_threads(first: str, threads: Iterable[StuckThread]) -> str:
    return "\n".join([f"{first}; what each waits for:", *map(thread_line, threads)])


def thread_line(thread: StuckThread) -> str:
    """A thread as a line: its name, the kind of its wait, the place of the wait."""
    what = f" ({thread.wait.what})" if thread.wait.what else ""
    of = f" of {thread.app}" if thread.app not in ("", thread.name) else ""
    place = _where(thread.place)
    return f"  {thread.name}{of} waits for {thread.wait.kind.value}{what}{place}"


def _where(place: CodeLine | None) -> str:
    if place is None:
        return ""
    return f", {os.path.relpath(place.file)}:{place.line} in {place.function}"
