"""Random faults by a profile, as a step.

Owns: the words.  Never: chooses faults (nemesis.py).
"""

from __future__ import annotations

from typing import Annotated

from cluster.scenario.actions.base import Action, Stage, Undo, action
from cluster.scenario.nemesis import Nemesis, Profile
from cluster.scenario.profiles import ProfileKind


@action("faults", short="profile")
class Faults(Action, frozen=True):
    """Random faults within bounds, by a profile, from now on.  Undone by stopping them and
    repairing what is under way."""

    profile: Annotated[Profile, ProfileKind()]

    def do(self, stage: Stage) -> Undo:
        nemesis = Nemesis(stage, self.profile)
        nemesis.start()
        return nemesis.stop
