"""Stalls of programs' threads, as on a busy machine or at a slow disk.

Owns: this action.  Never: stops a thread itself (world/scheduler.py does).  Kafka: no counterpart;
the operating system's scheduler, a long garbage collection of a client.
"""

from __future__ import annotations

from typing import Annotated, Final

from kcluster.actions.base import Action, action
from kcluster.actions.brokers import OnBrokers
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import duration, fraction, text
from kcluster.operations.targets import split_apps

ALL_APPS: Final = "all"


@action("stall", short="app", example="stall: {app: billing, share: 10%, longest: 20ms}")
class StallProgram(Action, frozen=True):
    """Let the threads of a program stand still at lines of its own code.  For programs in virtual
    time.  Undone by letting them run."""

    app: Annotated[str, text(), "The program; all for every program."]
    share: Annotated[float, fraction(), "The share of lines at which a thread stands still."] = 0.1
    longest_ms: Annotated[int, duration(1, 60_000), "The longest time; each is drawn."] = 20
    line: Annotated[
        str | None, text(), "Such as billing.py:31: at this line alone; without it, at any."
    ] = None

    def do(self, stage: Stage) -> Undo:
        programs, app = stage.verbs.programs, "" if self.app == ALL_APPS else self.app
        programs.stall(app, self.share, self.longest_ms, self.line or "")
        return lambda: programs.stall(app, 0, self.longest_ms)


def apps_of(action: Action) -> tuple[str, ...]:
    """The programs that an action names."""
    if isinstance(action, StallProgram):
        return () if action.app == ALL_APPS else (action.app,)
    return split_apps(action.brokers)[0] if isinstance(action, OnBrokers) else ()
