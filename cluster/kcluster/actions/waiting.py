"""A step that only waits for its trigger.

Owns: `wait`.  Never: changes the cluster.
"""

from __future__ import annotations

from kcluster.actions.base import Action, action
from kcluster.actions.stage import Stage


@action("wait", example="{when: isr(orders-0) = 3, wait: }")
class Wait(Action, frozen=True):
    """Do nothing: the following steps wait until this step's trigger has fired."""

    def do(self, stage: Stage) -> None:
        """Do nothing: the step is only its trigger."""
