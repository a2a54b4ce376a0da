"""The cluster for the parts of its handle: the driver's thread, the time, the events.

Owns: VerbPort, and ClusterPort: the way of a call to the driver, the stage for actions, the events
that are kept for users.  Never: knows a verb, or which clock runs.  Kafka: no counterpart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from kcluster.clients.ledger import Ledger
from kcluster.contract import Note
from kcluster.handle.driver import HandleDriver
from kcluster.operations.errors import ClusterError, NotInTime
from kcluster.operations.status import NoteEntry
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher

if TYPE_CHECKING:
    from kcluster.actions.base import Action
    from kcluster.actions.stage import Performed, Stage
    from kcluster.operations.targets import Nodes

C = TypeVar("C")
Q = TypeVar("Q")
T = TypeVar("T")
P = ParamSpec("P")

MAX_EVENTS_KEPT: Final = 100_000
CLOCK_POLL_S: Final = 0.05
"""The time between two checks, by a verb that waits, of a clock that was paused or slowed down
meanwhile."""


def forwarded(
    part: Callable[[C], Q], method: Callable[Concatenate[Q, P], T]
) -> Callable[Concatenate[C, P], T]:
    """A method of a cluster that calls a method of one of its parts, maybe under another name."""

    @wraps(method)
    def forward(cluster: C, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(part(cluster), *args, **kwargs)

    return forward


class Parts:
    """The state that other rooms keep for a cluster, at most one object of each type."""

    def __init__(self) -> None:
        self._all: dict[type[object], object] = {}

    def of(self, kind: type[T], make: Callable[[], T]) -> T:
        """The object of this type; made at its first use."""
        found = self._all.get(kind)
        if not isinstance(found, kind):
            found = self._all[kind] = make()
        return found

    def drop(self, kind: type[T]) -> T | None:
        """Remove the object of this type, if there is one."""
        found = self._all.pop(kind, None)
        return found if isinstance(found, kind) else None


class VerbPort(ABC):
    """A cluster's interface to verbs.  `waits`: whether verbs wait for their consequences by
    default; if not, time passes only when the caller lets it pass."""

    plan: Plan
    verbs: Verbs
    """The operations without waiting, for use in the driver's thread."""
    waits = True

    @property
    @abstractmethod
    def stage(self) -> Stage:
        """The stage on which actions are performed."""

    @abstractmethod
    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the driver's thread, between two dispatches."""

    @abstractmethod
    def wait_until(
        self, condition: Callable[[], bool], timeout_s: float, failure: str | None
    ) -> bool:
        """Wait for a condition, by the cluster's clock; it does not wait while the clock is paused.
        Returns whether it held; it may have held for a moment only, and no longer hold when this
        thread runs again.  With `failure` None, a timeout is not an error."""

    def perform(self, verb: str, **values: Any) -> Performed:
        """Perform an action with these values of its fields, by their names; ClusterError if it
        cannot be performed."""
        from kcluster.actions import made

        return self.perform_action(made(verb, values))

    def perform_action(
        self, action: Action, name: str = "", undone_after_ms: int | None = None
    ) -> Performed:
        """Perform an action; see `Stage.perform`.  Its nodes are found, checked and changed in one
        call."""
        return self.call(lambda: self.stage.perform(action, name, undone_after_ms))

    def find(self, nodes: Nodes, may_be_none: bool = False) -> tuple[int, ...]:
        """The ids of the nodes that the words mean now.  `nodes`: ids, words (`"leader(orders-0)"`,
        `"rack a"`, `"all but 1"`), or a list of both.  ClusterError if there are none, unless
        `may_be_none`."""
        from kcluster.operations.targets import targets_of

        return self.call(lambda: self.stage.nodes(targets_of(nodes), may_be_none))


class ClusterPort(VerbPort):
    """A running cluster whose driver has a thread, or a clock, of its own.

    `seed`: the seed of all randomness in the cluster; `name`: the name of its run directories;
    `ledger`: the sends and reads of the project's own clients; `clock_name`: "live" or "virtual".
    """

    driver: HandleDriver
    clock_name = "live"

    def __init__(self, plan: Plan, driver: HandleDriver, seed: int) -> None:
        self.plan = plan
        self.driver = driver
        self.seed = seed
        self.name = plan.topology.name
        self.ledger = Ledger()
        self.verbs = self._make_verbs()
        self.parts = Parts()
        self._stage: Stage | None = None
        self.last_sequence = 0
        """The number of the newest event; 0 before the first."""
        self.began_ms = driver.now_ms()
        """The time of the first event; lines of events count from it."""
        self.kept: deque[NoteEntry] = deque(maxlen=MAX_EVENTS_KEPT)
        """The newest events, for use in the driver's thread."""
        self._subscribers: tuple[Callable[[NoteEntry], None], ...] = ()
        driver.dispatcher.note_sinks = (self._keep,)

    def _make_verbs(self) -> Verbs:
        return Verbs(self.plan, self.driver.dispatcher)

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher, for use in the driver's thread."""
        return self.driver.dispatcher

    # ------------------------------------------------------------------------------- actions

    @property
    def stage(self) -> Stage:
        """The stage on which actions are performed.  It is made at its first use, so that a start
        does not load actions."""
        if self._stage is None:
            from kcluster.handle.stage import ClusterStage

            self._stage = ClusterStage(self.plan, self.driver, self.verbs, self.seed)
        return self._stage

    # -------------------------------------------------------------------------------- events

    def subscribe(self, callback: Callable[[NoteEntry], None]) -> Callable[[], None]:
        """Call `callback(entry)` for every event from now on, in the driver's thread: it must be
        quick and must not call the cluster.  Returns a function that ends the subscription."""
        self._subscribers = (*self._subscribers, callback)

        def end() -> None:
            self._subscribers = tuple(x for x in self._subscribers if x is not callback)

        return end

    def _keep(self, note: Note) -> None:
        if not self.last_sequence:
            self.began_ms = note.at_ms
        self.last_sequence += 1
        entry = NoteEntry(self.last_sequence, note)
        self.kept.append(entry)
        for subscriber in self._subscribers:
            subscriber(entry)

    # ---------------------------------------------------------------- the driver's thread

    def call(self, function: Callable[[], T]) -> T:
        return self.result(self.driver.call(function), None, "")

    def wait_until(
        self, condition: Callable[[], bool], timeout_s: float, failure: str | None
    ) -> bool:
        if self.driver.is_clock_paused:
            return False
        driver = self.driver
        future: Future[None] = Future()
        until_ms = driver.clock_ms() + timeout_s * 1000
        left_s = timeout_s
        try:
            self.call(lambda: driver.when(condition, future))
            while True:
                try:
                    self.result(future, left_s / driver.clock_speed, failure or "")
                    return True
                except ClusterError:
                    if future.done():
                        raise
                left_s = (until_ms - driver.clock_ms()) / 1000
                if left_s <= 0:
                    break
                left_s = max(left_s, CLOCK_POLL_S)
        finally:
            # Also if the waiting thread is interrupted, because a client has left, or by Ctrl-C.
            if not future.done():
                with suppress(ClusterError):
                    driver.call(lambda: driver.forget_condition(future))
        if failure is not None:
            raise NotInTime(f"{failure} within {timeout_s:g} s")
        return False

    def require(self, condition: Callable[[], bool], timeout_s: float, failure: str) -> None:
        """Wait as `wait_until` does; ClusterError if the clock is paused and the condition does not
        hold."""
        if not self.wait_until(condition, timeout_s, failure) and not self.call(condition):
            raise ClusterError(f"{failure}, and the clock is paused")

    def result(self, future: Future[T], timeout_s: float | None, failure: str) -> T:
        """The result of a future of the driver; NotInTime if there is none within `timeout_s`."""
        try:
            return future.result(timeout_s)
        except FutureTimeoutError:
            raise NotInTime(f"{failure} within {timeout_s:g} s") from None
