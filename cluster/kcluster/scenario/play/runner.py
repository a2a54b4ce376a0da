"""Plays a scenario's steps on a stage: triggers, actions, undoing, repetition, the final repair.

Owns: the order of steps, the list of performed actions.  Never: waits, knows its clock, knows what
an action does (actions/), judges the result (outcome.py).  Kafka: Trogdor's coordinator;
TigerBeetle's and FoundationDB's workload runners are the model.

Steps are played in order: a step begins to wait for its trigger when the step before it is done.
A step with `every` counts as done after its first time.  `for` and `until` undo an action later,
while other steps run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.actions.base import repair_all
from kcluster.actions.stage import Undo
from kcluster.config.files.problems import Place
from kcluster.events.steps import StepSkipped
from kcluster.operations.conditions import Condition, MomentCondition
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.words import MomentRange
from kcluster.scenario.play.stage import ScenarioStage

NOWHERE: Final = Place(0, 0)
"""The place of an action that is in no file."""


class Played(Struct, frozen=True):
    """An action that was performed.  `index`: the index of its step, from 0; -1 if it is not a step
    of the scenario.  `nodes`: the nodes that it named."""

    at_ms: int
    index: int
    text: str
    nodes: tuple[int, ...]


class Runner:
    """The play of a scenario's steps, from `start` until `is_done`."""

    def __init__(self, scenario: Scenario, stage: ScenarioStage) -> None:
        self.scenario = scenario
        self.stage = stage
        self.played: list[Played] = []
        self.is_ended = False
        self._has_branched = False
        self._next = 0
        self._waits_for: Step | None = None
        self._awaits: Step | None = None
        """The step whose condition has not held yet."""
        self._end_wait: Callable[[], None] = _nothing
        """What ends the wait for that condition."""
        self._undos: dict[int, Undo] = {}
        """The functions that undo the active actions, by a running number."""
        self._undo_count = 0
        self._due: set[int] = set()
        """The undos that `for` or `until` brings."""

    @property
    def is_done(self) -> bool:
        """Whether all steps have been played."""
        return self._next >= len(self.scenario.steps) and self._waits_for is None

    @property
    def may_act(self) -> bool:
        """Whether a step, or the end of its `for`, is still to come."""
        return not self.is_ended and not (self.is_done and not self._due)

    def start(self) -> None:
        """Start with the first step."""
        self._advance()

    def branch_off(self, steps: Sequence[Step]) -> None:
        """Perform these actions now, whatever their triggers, in place of the scenario's remaining
        steps."""
        self._has_branched = True
        self._awaits = self._waits_for = None
        for step in steps:
            self._do(-1, replace(step, place=NOWHERE))

    @property
    def steps_left(self) -> int:
        """The number of steps that have not been played."""
        if self._has_branched:
            return 0
        return len(self.scenario.steps) - self._next + (self._waits_for is not None)

    def end(self, may_be_left: bool = False) -> None:
        """Play no more steps; undo everything if `heal` is set.  Remaining steps, including a
        waiting one, are a problem, unless `may_be_left`."""
        self.is_ended = True
        waiting = self._waits_for
        if may_be_left:
            pass
        elif waiting is not None and waiting.trigger.when is not None:
            condition = waiting.trigger.when
            value = self.stage.value_text(condition)
            self.stage.refuse(
                f"{self._name(waiting)} waited for {condition}, which did not hold{value}"
            )
        elif self.steps_left:
            text = f"the scenario ended with {self.steps_left} steps left; increase its duration"
            self.stage.refuse(text)
        if self.scenario.heal:
            self.heal()

    def heal(self) -> None:
        """Undo every fault: active actions, links, rules, disks, brokers that are not up."""
        undos, self._undos = self._undos, {}
        for undo in undos.values():
            self.stage.attempt("healing", undo)
        stage = self.stage
        for problem in repair_all(stage.verbs):
            stage.refuse(problem)

    # ------------------------------------------------------------------------- step by step

    def _advance(self) -> None:
        if self._next >= len(self.scenario.steps) or self.is_ended or self._has_branched:
            self._waits_for = None
            return
        index, step = self._next, self.scenario.steps[self._next]
        self._next += 1
        self._waits_for = step
        now_ms = self.stage.now_ms
        at_ms = now_ms
        if step.trigger.at is not None:
            at_ms = max(now_ms, self._drawn(step.trigger.at))
        if step.trigger.after is not None:
            at_ms += self._drawn(step.trigger.after)
        if at_ms > now_ms:
            self.stage.at(at_ms, lambda: self._wait_for_condition(index, step))
        else:
            self._wait_for_condition(index, step)

    def _wait_for_condition(self, index: int, step: Step) -> None:
        condition = step.trigger.when
        if condition is None or self.is_ended or self._has_branched:
            self._take(index, step)
            return
        self._awaits = step
        if step.trigger.within_ms is not None:
            limit_ms = self.stage.now_ms + step.trigger.within_ms
            self.stage.at(limit_ms, lambda: self._too_late(step))
        self._end_wait = self._when(condition, lambda: self._delay(index, step))

    def _when(self, condition: Condition, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once the condition holds; events and moments count from now on.  Returns what
        ends the wait."""
        if isinstance(condition, MomentCondition):
            return self.stage.when_reached(condition.moment, callback)
        since, has_ended = len(self.stage.notes()), False

        def may_call() -> bool:
            return has_ended or self.is_ended or self.stage.holds(condition, since)

        def call() -> None:
            if not has_ended:
                callback()

        def end() -> None:
            nonlocal has_ended
            has_ended = True

        self.stage.when(may_call, call)
        return end

    def _delay(self, index: int, step: Step) -> None:
        if self._awaits is not step:
            return  # it was too late
        self._awaits = None
        delay_ms = 0 if step.trigger.delay is None else self._drawn(step.trigger.delay)
        if delay_ms and not self.is_ended:
            self.stage.at(self.stage.now_ms + delay_ms, lambda: self._take(index, step))
        else:
            self._take(index, step)

    def _too_late(self, step: Step) -> None:
        if self._awaits is not step or self.is_ended:
            return
        reason = f"{step.trigger.when} did not hold within {step.trigger.within_ms} ms"
        self._end_wait()
        if step.options.if_possible:
            self._skip(step, reason)
            self._awaits = self._waits_for = None
            self._advance()
        else:
            self.stage.refuse(f"{self._name(step)}: {reason}")

    def _take(self, index: int, step: Step) -> None:
        if self.is_ended or self._has_branched:
            return
        self._do(index, step)
        if step.trigger.every is not None:
            self._again(index, step, step.trigger.times)
        self._waits_for = None
        self._advance()

    def _again(self, index: int, step: Step, times: int | None) -> None:
        """Schedule the next time of a step that repeats."""
        if times is not None and times <= 1:
            return
        assert step.trigger.every is not None

        def play_again() -> None:
            if not self.is_ended and not self._has_branched:
                self._do(index, step)
                self._again(index, step, None if times is None else times - 1)

        delay_ms = max(1, self._drawn(step.trigger.every))
        self.stage.at(self.stage.now_ms + delay_ms, play_again)

    # ------------------------------------------------------------------------------ an action

    def _do(self, index: int, step: Step) -> None:
        stage, condition = self.stage, step.options.only_if
        if condition is not None and not stage.holds(condition):
            self._skip(step, f"{condition} does not hold")
            return
        try:
            at_ms = stage.now_ms
            nodes, undo = stage.begin(step.action, step.options.as_)
            self.played.append(Played(at_ms, index, self._name(step), nodes))
        except ClusterError as error:
            self._not_done(step, error)
            return
        options = step.options
        if undo is None or not (step.action.IS_FAULT or options.for_ or options.until):
            return
        self._undo_count += 1
        number = self._undo_count
        self._undos[number] = undo
        if options.for_ is not None:
            after_ms = self._drawn(options.for_)
            self._due.add(number)
            stage.at(stage.now_ms + after_ms, lambda: self._undo(step, number))
        if options.until is not None:
            self._due.add(number)
            self._when(options.until, lambda: self._undo(step, number))

    def _undo(self, step: Step, number: int) -> None:
        self._due.discard(number)
        undo = self._undos.pop(number, None)
        if undo is None or self.is_ended:
            return
        try:
            undo()
        except ClusterError as error:
            self._not_done(step, error, is_undoing=True)

    def _not_done(self, step: Step, error: ClusterError, *, is_undoing: bool = False) -> None:
        """Report that a step could not be performed.  That is no problem if the step may meet the
        effects of another one, such as a dead broker.  Otherwise the file is wrong."""
        if step.may_be_skipped:
            self._skip(step, str(error), is_undoing=is_undoing)
        else:
            undoing = "undoing " if is_undoing else ""
            self.stage.refuse(f"{undoing}{self._name(step)}: {error}")

    def _skip(self, step: Step, reason: str, *, is_undoing: bool = False) -> None:
        """Report that a step is skipped, which is no problem."""
        skipped = StepSkipped(step.verb, step.place.line, reason, is_undoing)
        self.stage.dispatcher.note(skipped)

    def _name(self, step: Step) -> str:
        line = f" (line {step.place.line})" if step.place.line else ""
        return f"{step.verb}{line}"

    def _drawn(self, moment: MomentRange) -> int:
        if moment.high_ms <= moment.low_ms:
            return moment.low_ms
        return moment.low_ms + self.stage.rng.randrange(moment.high_ms - moment.low_ms + 1)


def _nothing() -> None:
    """The end of no wait."""
