"""Words for events of users' programs.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from kcluster.events.programs import ProgramKilled, ProgramPaused, ProgramResumed, ProgramStarted
from kcluster.events.words.base import text_of


@text_of.register
def _(_event: ProgramKilled) -> str:
    return "killed: its connections are closed, its threads have ended"


@text_of.register
def _(_event: ProgramPaused) -> str:
    return "paused: its threads stand still, its connections stay open"


@text_of.register
def _(_event: ProgramResumed) -> str:
    return "resumed"


@text_of.register
def _(event: ProgramStarted) -> str:
    return f"started again, life {event.life}"
