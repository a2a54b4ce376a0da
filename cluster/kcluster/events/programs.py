"""Events of users' programs beside a cluster in virtual time.

Owns: their facts.  Never: words for them (words/).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.events.base import TaggedEvent


class ProgramEvent(TaggedEvent, frozen=True):
    """An event of a program, by its name."""

    program: str

    @property
    def subject(self) -> str:
        return f"app {self.program}"


class ProgramKilled(ProgramEvent, frozen=True):
    """A program was killed, as by SIGKILL."""


class ProgramPaused(ProgramEvent, frozen=True):
    """A program was paused, as by SIGSTOP."""


class ProgramResumed(ProgramEvent, frozen=True):
    """A paused program went on."""


class ProgramStarted(ProgramEvent, frozen=True):
    """A program was started again.  `life`: the number of its starts, 2 for the first restart."""

    life: int
