"""The stage on which actions are performed: one cluster, its clock, the words for its nodes.

Owns: Stage: its random sequence, the names that steps give, the reasons why actions could not be
performed; Performed.  Never: has a clock, knows an action, waits, starts a client
(scenario/play/stage.py does).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from kcluster.actions.overlays import Overlays
from kcluster.deaths import DeathKind, ProcessState
from kcluster.operations.conditions import Condition, ConditionFacts, no_workload
from kcluster.operations.errors import ClusterError
from kcluster.operations.moments import EXECUTION, NthMoment, when_reached
from kcluster.operations.states import StateVerb
from kcluster.operations.targets import Finder, Targets
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher

Undo = Callable[[], None]


class Performable(Protocol):
    """An action, as its stage sees it."""

    def affected(self, stage: Stage) -> tuple[int, ...]:
        """The nodes that the action names; finding them may take a random draw."""

    def do(self, stage: Stage) -> Undo | None:
        """Perform the action now; returns the function that undoes it."""


class StageClock(Protocol):
    """The clock of a cluster, in ms; used in the driver's thread."""

    @property
    def now_ms(self) -> int:
        """The time in the cluster."""

    def at(self, at_ms: int, callback: Callable[[], None]) -> None:
        """Call `callback` at this time."""

    def when(self, holds: Callable[[], bool], callback: Callable[[], None]) -> None:
        """Call `callback` as soon as `holds()`."""


class Performed(Struct):
    """An action that was performed.  `nodes`: the nodes that it names, if any;
    `left_alone`: the brokers among them on which it did not act, with their states;
    `can_be_undone`: whether it can be undone; `undo`: undoes it once, called in the driver's
    thread; `is_over`: whether all of it has been done or refused, also called there."""

    nodes: tuple[int, ...]
    left_alone: tuple[tuple[int, ProcessState], ...]
    can_be_undone: bool
    undo: Undo
    is_over: Callable[[], bool]
    is_undone: bool = False

    @property
    def chosen(self) -> tuple[int, ...]:
        """The nodes on which the action acted."""
        left_alone = [node for node, _ in self.left_alone]
        return tuple(node for node in self.nodes if node not in left_alone)


class Doing(Struct):
    """The progress of an action that is performed by hand.  `left_alone`: the named brokers on
    which it did not act, with their states; `awaited`: the conditions that hold when it is over."""

    left_alone: tuple[tuple[int, ProcessState], ...] = ()
    awaited: list[Callable[[], bool]] = field(default_factory=list)


class Stage:
    """One cluster, for the actions on it.  All of it is used in the driver's thread.

    `pace`: the ms of the cluster in one ms of the stage: 10 on a real Kafka, where the brokers'
    times under profile `fast` are ten times those of simulated brokers.  `problems`: the reasons
    why actions could not be performed, one line each.  `began_ms`: the time of the clock at which
    the stage was set up.
    """

    pace = 1

    def __init__(
        self, plan: Plan, dispatcher: Dispatcher, verbs: Verbs, clock: StageClock, seed: int
    ) -> None:
        self.plan = plan
        self.dispatcher = dispatcher
        self.verbs = verbs
        self._clock = clock
        self.began_ms = clock.now_ms
        self.rng = plan.chance.stream("scenario", seed)
        self.problems: list[str] = []
        self.doing: Doing | None = None
        """The action that is performed by hand now; None in a scenario's run."""
        self.clients: dict[str, int] = {}
        """The ids of clients in the fabric, by the names that targets use."""
        self.configs_set = Overlays[str]()
        self.quotas_set = Overlays[float]()
        self._finder = Finder(plan, dispatcher, verbs, self.rng)
        self._finder.clients = self.clients

    # ------------------------------------------------------------------------------ the clock

    @property
    def now_ms(self) -> int:
        """The time since the stage was set up."""
        return (self._clock.now_ms - self.began_ms) // self.pace

    def at(self, at_ms: int, callback: Callable[[], None]) -> None:
        """Call `callback` at this time, in the ms of `now_ms`."""
        self._clock.at(self.began_ms + at_ms * self.pace, callback)

    def when(self, holds: Callable[[], bool], callback: Callable[[], None]) -> None:
        """Call `callback` as soon as `holds()`."""
        self._clock.when(holds, callback)

    def holds(self, condition: Condition, since: int = 0) -> bool:
        """Whether a condition on the cluster holds.  ClusterError for one on a workload, which a
        scenario's stage alone has."""
        facts = ConditionFacts(self.dispatcher, self.verbs, [], no_workload)
        return condition.holds(facts, since)

    def when_reached(self, moment: NthMoment, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when this moment has come, counted from now: between two dispatches, or
        for a moment inside a broker before anything of the broker's step leaves the broker.
        Returns what ends the wait."""
        then = callback if moment.is_inside else lambda: self._soon(callback)
        if moment.kind == EXECUTION:
            return self.verbs.programs.when_line(moment.of, moment.number, then)
        return when_reached(self.dispatcher, self.verbs.settled, moment, then)

    def _soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` between two dispatches."""
        self._clock.at(self._clock.now_ms, callback)

    # ------------------------------------------------------------------------------ the nodes

    def nodes(self, targets: Targets, may_be_none: bool = False) -> tuple[int, ...]:
        """The ids of the nodes that the targets mean now.  Raises ClusterError if there are none,
        unless `may_be_none`."""
        return self._finder.find(targets, may_be_none)

    def client_ids(self) -> dict[str, int]:
        """The ids of the workload's clients in the fabric, by name."""
        return dict(self.clients)

    # ---------------------------------------------------------------------------- performing

    def perform(
        self, action: Performable, name: str = "", undone_after_ms: int | None = None
    ) -> Performed:
        """Perform an action by hand.  `name`: given to its nodes, for later targets;
        `undone_after_ms`: it is also undone after this time.  ClusterError if it cannot be
        performed."""
        problems = len(self.problems)
        doing = self.doing = Doing()
        try:
            nodes, undo = self.begin(action, name)
        finally:
            self.doing = None
        if len(self.problems) > problems:
            raise ClusterError(self.problems.pop())

        def is_over() -> bool:
            return bool(self.problems) or all(holds() for holds in doing.awaited)

        def undo_once() -> None:
            if undo is not None and not performed.is_undone:
                performed.is_undone = True
                undo()

        performed = Performed(nodes, doing.left_alone, undo is not None, undo_once, is_over)
        if undone_after_ms is not None:
            self.at(self.now_ms + undone_after_ms, undo_once)
        return performed

    def begin(self, action: Performable, name: str) -> tuple[tuple[int, ...], Undo | None]:
        """Perform an action, and give its nodes this name, if it is not empty; returns the nodes,
        and what undoes it."""
        nodes = self.about_to_affect(action)
        if name:
            self._finder.names[name] = nodes
        return nodes, action.do(self)

    def about_to_affect(self, action: Performable) -> tuple[int, ...]:
        """The nodes on which an action acts if it is performed next: it repeats the random draw
        made here."""
        state = self.rng.getstate()
        try:
            return action.affected(self)
        finally:
            self.rng.setstate(state)

    def on_each(
        self,
        verb: StateVerb,
        nodes: tuple[int, ...],
        operation: Callable[[int], None],
        death: DeathKind = DeathKind.KILL,
    ) -> tuple[int, ...]:
        """Call `operation(node)` for each node on which the verb acts now; returns these nodes.  By
        hand, a paused process is not asked to shut down: it could not answer, so the wait would end
        with a kill."""
        can_wait = self.doing is None or death is not DeathKind.CLEAN
        chosen = self.verbs.on_each(verb, nodes, operation, can_wait)
        if self.doing is not None:
            self.doing.left_alone = chosen.left_alone
        return chosen.nodes

    def is_over_when(self, holds: Callable[[], bool]) -> None:
        """Add a condition that must hold before the current action is over."""
        if self.doing is not None:
            self.doing.awaited.append(holds)

    def refuse(self, text: str) -> None:
        """Report that an action could not be performed: the run then proves nothing."""
        self.problems.append(text)

    def attempt(self, what: str, callback: Callable[[], None]) -> None:
        """Call `callback`; a refusal is a problem of the run."""
        try:
            callback()
        except ClusterError as error:
            self.refuse(f"{what}: {error}")
