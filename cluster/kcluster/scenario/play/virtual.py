"""The stage in virtual time, and a run on it.

Owns: the virtual driver of one run.  Never: reads a clock,
except to report how long a run took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from kcluster.checks.asked import EVERYTHING, Asked
from kcluster.clients.ledger import Ledger
from kcluster.clients.wire import ClientStateMachine, Wire
from kcluster.evidence.recorder import Recorder
from kcluster.handle.virtual import VirtualDriver
from kcluster.invariants.livelock import LEAST_STEPS, STEPS_EACH
from kcluster.runtime.livelock import LivelockError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.pace import Pace
from kcluster.scenario.play.phases import CALM_LIMIT_MS, Progress, RunResult, ScenarioRun
from kcluster.scenario.play.stage import ScenarioStage
from kcluster.scenario.play.unfinished import Loops
from kcluster.security.client_access import ClientAccess

PROGRESS_SLICES: Final = 20
LEAVE_LIMIT_MS: Final = 60_000
"""The longest time in which consumers must leave their groups."""


class VirtualStage(ScenarioStage):
    """A stage on a virtual driver."""

    may_await_locks = True

    def __init__(self, driver: VirtualDriver, seed: int, ledger: Ledger) -> None:
        self.driver = driver
        super().__init__(driver.plan, driver.dispatcher, driver.verbs, driver, ledger, seed)
        self.livelock: LivelockError | None = None
        """The reason why time can no longer advance."""

    def start(self) -> None:
        """Start the cluster.  The scenario's time begins when the cluster serves."""
        self.driver.open()
        self.driver.run_until_condition(self.verbs.settled.has_started, 120_000)
        self.began_ms = self.driver.now_ms

    def _add(self, client: ClientStateMachine, access: ClientAccess | None) -> Wire:
        return self.driver.add_client(client, access)

    def _at_driver(self) -> dict[int, ClientStateMachine]:
        return self.driver.time.clients

    def _called(self) -> None:
        """Do nothing: virtual time gives every client a turn in its next pass."""

    def run(self, is_over: Callable[[], bool], limit_ms: int) -> bool:
        """Advance time until `is_over()`, at most `limit_ms`; returns whether it holds.  After a
        livelock, it never holds."""
        return self.guarded(lambda: self.driver.run_until_condition(is_over, limit_ms))

    def guarded(self, callback: Callable[[], bool | None]) -> bool:
        """Call `callback` and return its result; False if time cannot advance, before or after the
        call."""
        if self.livelock is None:
            try:
                return bool(callback())
            except LivelockError as error:
                self.livelock = error
        return False

    def run_until(self, until_ms: int) -> None:
        """Advance time to this moment, in ms since the scenario began."""
        self.run(_never, (until_ms - self.now_ms) * self.pace)
        self.guarded(lambda: self.driver.run_until(self.began_ms + until_ms * self.pace))


def _never() -> bool:
    return False


def _nothing_to_watch(stage: ScenarioStage) -> None:
    pass


class VirtualRun:
    """A run of a scenario on its own cluster in virtual time, from its start: `advance`, then
    `finish`.  `pace`: None for that of its profile.  `watch` is called when the cluster serves,
    before the first client starts: it may schedule calls on the stage.  `asked`: what is read of
    the result."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        watch: Callable[[ScenarioStage], None] = _nothing_to_watch,
        pace: Pace | None = None,
        asked: Asked = EVERYTHING,
    ) -> None:
        self._began_s = time.perf_counter()
        self._scenario = scenario
        self.stage = VirtualStage(VirtualDriver(scenario.topology, seed), seed, Ledger())
        if pace is not None:
            pace.set_on(self.stage)
        recorder = Recorder(self.stage.dispatcher, self.stage.plan)
        self.run = ScenarioRun(scenario, self.stage, recorder, seed, asked)
        self.stage.start()
        watch(self.stage)
        self.run.begin()
        plan = self.stage.plan
        parties = len(plan.processes) + len(plan.fabric.clients)
        recorder.guard_time(max(LEAST_STEPS, STEPS_EACH * parties))

    def advance(self, until_ms: int, progress: Progress = lambda now_ms, all_ms: None) -> None:
        """Play from the start until this moment.  All runs of a scenario stop at equal moments on
        their way, so they are equal up to the moment."""
        duration_ms = self._scenario.duration_ms
        for at in range(1, PROGRESS_SLICES + 1):
            slice_ms = duration_ms * at // PROGRESS_SLICES
            if slice_ms <= self.stage.now_ms:
                continue
            if slice_ms > until_ms:
                break
            self.stage.run_until(slice_ms)
            progress(self.stage.now_ms, duration_ms)
        if self.stage.now_ms < until_ms:
            self.stage.run_until(until_ms)

    def draw_anew(self, seed: int) -> None:
        """From this moment on, draw all chance as with another seed."""
        self.stage.plan.chance.draw_anew(seed)

    def finish(self) -> RunResult:
        """Undo every fault, let everything in flight complete, and judge the run."""
        run, stage = self.run, self.stage
        stage.guarded(run.calm_down)
        is_quiet = stage.run(run.is_quiet, CALM_LIMIT_MS)
        unfinished = () if is_quiet else tuple(run.clients.unfinished())
        stage.guarded(run.clients.stop_consumers)
        stage.run(run.clients.are_consumers_gone, LEAVE_LIMIT_MS)
        if stage.livelock is not None:
            run.recorder.invariants.report_livelock(stage.livelock.at_ms, stage.livelock.text)
            unfinished = (Loops(what=str(stage.livelock)),)
        wall_s = time.perf_counter() - self._began_s
        trace_hash = stage.driver.trace_hash() if run.asked.trace else ""
        result = run.result("virtual", wall_s, unfinished, trace_hash)
        stage.dispatcher.forget_watchers()
        return result


def run_virtual(
    scenario: Scenario,
    seed: int,
    progress: Progress,
    watch: Callable[[ScenarioStage], None] = _nothing_to_watch,
    pace: Pace | None = None,
    asked: Asked = EVERYTHING,
) -> RunResult:
    """Run a scenario on its own cluster in virtual time; `watch`, `pace`, `asked`: see
    VirtualRun."""
    played = VirtualRun(scenario, seed, watch, pace, asked)
    played.advance(scenario.duration_ms, progress)
    return played.finish()
