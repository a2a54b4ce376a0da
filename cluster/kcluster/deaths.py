"""The ways for a broker's process to end or to pause, with their meanings, and the state of a
process.

Owns: DeathKind, WAYS_TO_FAIL, the phrase for each; ProcessState.  Never: carries one out
(runtime/dispatch.py), words an event (events/words/); imports anything of ours, or msgspec:
`kcluster kill` and `kcluster --help` load it at their start.
Kafka: SIGTERM, SIGKILL, a power cut, a replaced disk, SIGSTOP.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class DeathKind(StrEnum):
    """How a process ends.  `clean`: SIGTERM, controlled shutdown; `kill`: SIGKILL, its writes stay
    in the page cache; `power`: the machine stops, unflushed writes are lost; `wipe`: it comes back
    with an empty disk."""

    KILL = "kill"
    CLEAN = "clean"
    POWER = "power"
    WIPE = "wipe"


class ProcessState(StrEnum):
    """The state of a broker's process.  `paused`: stopped as by SIGSTOP or a long garbage
    collection; nothing runs, and sockets stay open."""

    UP = "up"
    PAUSED = "paused"
    DOWN = "down"


PAUSE: Final = "pause"
"""The way to fail that is not a death: the process keeps its state and may be resumed."""

WAYS_TO_FAIL: Final[tuple[str, ...]] = (*(str(kind) for kind in DeathKind), PAUSE)
"""Every way in which a broker may fail."""

MEANINGS: Final[dict[str, str]] = {
    DeathKind.KILL: "SIGKILL, written records stay in the page cache",
    DeathKind.CLEAN: "SIGTERM, controlled shutdown",
    DeathKind.POWER: "the machine loses power, unflushed records are lost",
    DeathKind.WIPE: "SIGKILL, and the broker returns with an empty disk",
    PAUSE: "SIGSTOP, nothing runs and sockets stay open",
}


def meanings(*ways: str) -> str:
    """The meaning of each of these ways: `kill: SIGKILL, …. clean: …`."""
    return " ".join(f"{way}: {MEANINGS[way]}." for way in ways)
