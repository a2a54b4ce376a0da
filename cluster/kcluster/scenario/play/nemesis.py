"""Random faults within bounds: the seed draws the faults, their times and their durations.

Owns: Profile, playing one on a stage.  Never: performs a fault itself (actions/), reads files
(profiles.py).
Kafka: no counterpart; Jepsen's nemesis, TigerBeetle's and FoundationDB's fault models.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from kcluster.actions.base import Action
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import Flag, StoryText, Whole
from kcluster.operations.conditions import Condition
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.words import MOMENT, MomentRange


class FaultKind(Struct, frozen=True):
    """One kind of fault of a profile.  `weight`: its probability, relative to the others';
    `only_if`: the fault is left out at moments at which this does not hold."""

    verb: str
    action: Action
    weight: int = 1
    repair: MomentRange | None = None
    """The time until the fault is undone; None: the profile's."""
    only_if: Condition | None = None


class Profile(Struct, frozen=True):
    """Random faults: their rate, their durations, and their bounds."""

    kinds: tuple[FaultKind, ...]
    story: Annotated[str, StoryText(), "What the profile is for."] = ""
    every: Annotated[MomentRange, MOMENT, "The time between the starts of two faults."] = (
        MomentRange(2_000, 6_000)
    )
    repair: Annotated[MomentRange, MOMENT, "The time until a fault is undone."] = MomentRange(
        1_000, 8_000
    )
    at_once: Annotated[int, Whole(1, 100), "How many faults may be active at the same time."] = 1
    waits_for_sync: Annotated[
        bool, Flag(), "The next fault waits until all brokers serve and every replica is in sync."
    ] = True


class Nemesis:
    """A profile at work, until `stop`, which undoes the active faults."""

    def __init__(self, stage: Stage, profile: Profile) -> None:
        self.begun = 0
        self._stage = stage
        self._profile = profile
        self._active: dict[int, Undo] = {}
        self._is_stopped = False

    def start(self) -> None:
        """Schedule the first fault, `every` after the start."""
        self._stage.at(self._stage.now_ms + self._draw(self._profile.every), self._turn)

    def stop(self) -> None:
        """Inject no more faults; undo the active ones."""
        self._is_stopped = True
        for number in tuple(self._active):
            self._repair(number)

    def _turn(self) -> None:
        if self._is_stopped:
            return
        if self._may_begin():
            self._begin(self._chosen())
        self._stage.at(self._stage.now_ms + max(1, self._draw(self._profile.every)), self._turn)

    def _may_begin(self) -> bool:
        if len(self._active) >= self._profile.at_once:
            return False
        return not self._profile.waits_for_sync or self._stage.verbs.settled.all_in_sync()

    def _chosen(self) -> FaultKind:
        kinds = self._profile.kinds
        at = self._stage.rng.randrange(sum(kind.weight for kind in kinds))
        for kind in kinds:
            at -= kind.weight
            if at < 0:
                return kind
        raise AssertionError("weights are positive")

    def _begin(self, fault: FaultKind) -> None:
        try:
            if fault.only_if is not None and not self._stage.holds(fault.only_if):
                return
            undo = fault.action.do(self._stage)
        except ClusterError:
            return  # the fault has no target now
        self.begun += 1
        if undo is None:
            return
        number = self.begun
        self._active[number] = undo
        after_ms = self._draw(fault.repair or self._profile.repair)
        self._stage.at(self._stage.now_ms + after_ms, lambda: self._repair(number))

    def _repair(self, number: int) -> None:
        undo = self._active.pop(number, None)
        if undo is None:
            return
        try:
            undo()
        except ClusterError as error:
            self._stage.refuse(f"repairing a random fault: {error}")

    def _draw(self, moment: MomentRange) -> int:
        return moment.low_ms + self._stage.rng.randrange(moment.high_ms - moment.low_ms + 1)
