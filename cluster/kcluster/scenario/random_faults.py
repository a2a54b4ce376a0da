"""Random faults by a profile, as a step.

Owns: the action.  Never: chooses faults (nemesis.py).
"""

from __future__ import annotations

from typing import Annotated

from kcluster.actions.base import Action, action
from kcluster.actions.stage import Stage, Undo
from kcluster.scenario.language.profiles import ProfileKind
from kcluster.scenario.play.nemesis import Nemesis, Profile


@action("faults", short="profile", example="faults: one_failure_at_a_time")
class RandomFaults(Action, frozen=True):
    """Inject random faults from now on, within the bounds of a profile.  Undone by stopping, and by
    undoing the faults that are active."""

    profile: Annotated[
        Profile, ProfileKind(), "A profile that ships with kcluster, a file, or its keys."
    ]

    def do(self, stage: Stage) -> Undo:
        nemesis = Nemesis(stage, self.profile)
        nemesis.start()
        return nemesis.stop
