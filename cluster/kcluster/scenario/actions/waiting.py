"""Nothing to do: a step that only waits for its trigger.

Owns: `wait`.  Never: does anything.
"""

from __future__ import annotations

from kcluster.scenario.actions.base import Action, action
from kcluster.scenario.play.stage import Stage


@action("wait")
class Wait(Action, frozen=True):
    """Do nothing: the steps below begin when this one's trigger has come."""

    def do(self, stage: Stage) -> None:
        """Nothing."""
