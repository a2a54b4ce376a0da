"""The ways for a broker's process to end or stand still, with their words.

Owns: DeathKind, what each kind means in one phrase, WAYS_TO_FAIL.  Never: carries one out
(dispatch.py does), imports anything heavy: the command line shows these words.  Kafka: SIGTERM,
SIGKILL, a power cut, a replaced disk, SIGSTOP.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class DeathKind(StrEnum):
    """How a process ends."""

    KILL = "kill"
    CLEAN = "clean"
    POWER = "power"
    WIPE = "wipe"


PAUSE: Final = "pause"
"""A pause is no death: the process keeps its state and may be resumed."""

WAYS_TO_FAIL: Final = (*(str(kind) for kind in DeathKind), PAUSE)
"""Every way in which a broker may fail."""

MEANINGS: Final[dict[str, str]] = {
    DeathKind.KILL: "SIGKILL, written records stay in the page cache",
    DeathKind.CLEAN: "SIGTERM, controlled shutdown",
    DeathKind.POWER: "the machine loses power, unflushed records are lost",
    DeathKind.WIPE: "SIGKILL, and the broker returns with an empty disk",
    PAUSE: "SIGSTOP, nothing runs and sockets stay open",
}

DEATHS: Final = {
    DeathKind.CLEAN: "process ended after a controlled shutdown",
    DeathKind.KILL: "process killed; its disk keeps what was written",
    DeathKind.POWER: "power lost; what was not flushed is gone",
    DeathKind.WIPE: "process killed and its disk wiped",
}
"""What is noted when a process has ended."""


def meanings(*ways: str) -> str:
    """`kill: SIGKILL, ….  clean: …`: the meaning of each of these ways."""
    return " ".join(f"{way}: {MEANINGS[way]}." for way in ways)
