"""The ways for a broker's process to end or stand still, with their words.

Owns: what each way means in one phrase, WAYS_TO_FAIL.  Never: carries one out (dispatch.py does),
says what happened (events/words.py does).  Kafka: SIGTERM,
SIGKILL, a power cut, a replaced disk, SIGSTOP.
"""

from __future__ import annotations

from typing import Final

from kcluster.events.brokers import DeathKind as DeathKind

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


def meanings(*ways: str) -> str:
    """`kill: SIGKILL, ….  clean: …`: the meaning of each of these ways."""
    return " ".join(f"{way}: {MEANINGS[way]}." for way in ways)
