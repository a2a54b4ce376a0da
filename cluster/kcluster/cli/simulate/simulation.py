"""One simulation: a cluster, a scenario's steps, and programs, in one world.

Owns: the order of its phases, its result.  Never: runs a program (world/programs.py) or a step
(scenario/play), prints (printing.py).
Kafka: no counterpart.

The cluster serves before the programs begin.  When they have ended, faults are undone, everything
in flight completes, and the run is judged, as with a scenario's own clients.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from msgspec import Struct

from kcluster.chance import Anew
from kcluster.cli.simulate.noted_programs import NotedPrograms
from kcluster.cli.simulate.options import SimulationSetting
from kcluster.clients.ledger import Ledger
from kcluster.config.files.durations import in_seconds
from kcluster.contract import Note
from kcluster.handle.world_cluster import WorldCluster
from kcluster.runs.record import RunRecord
from kcluster.scenario.outcome import FailedCheck
from kcluster.scenario.play.phases import CALM_LIMIT_MS, RunResult, ScenarioRun
from kcluster.scenario.play.virtual import LEAVE_LIMIT_MS
from kcluster.scenario.play.world import WorldStage
from kcluster.world.environment import run_environment
from kcluster.world.errors import Deadlock, Livelock, NotInVirtualTime, TimeLimit, thread_line
from kcluster.world.programs import GRACE_S, ProgramEnd, ProgramKill, Programs
from kcluster.world.scheduler import LineWatch
from kcluster.world.trace import WireTrace
from kcluster.world.waits import StuckThread
from kcluster.world.world import START_MS, World

PROGRAMS: Final = "programs"
"""The name under which the output shows, like a check, whether all programs ended and none
failed."""
BOOTSTRAP_VARIABLE: Final = "KCLUSTER_BOOTSTRAP"
_SUPERVISOR: Final = threading.main_thread().name


class Simulated(Struct):
    """The result of one simulation.  `ends`: the ends of programs, in order; `kills`: the kills by
    steps of the scenario; `running`: programs that had not ended; `steps_left`: the scenario's
    remaining steps when the programs ended; `left`: threads that had not ended; `refused`: requests
    of programs that virtual time cannot serve, even if the programs went on without them."""

    run: RunResult
    ends: list[ProgramEnd]
    kills: list[ProgramKill]
    running: list[str]
    steps_left: int
    left: list[StuckThread]
    refused: list[str]
    trace: WireTrace
    began_us: int
    replay: str

    @property
    def exit_code(self) -> int:
        """The exit code of a program that failed; else 1 if the run is not as expected, 2 if it
        proves nothing."""
        for end in self.ends:
            if end.exit_code:
                return end.exit_code
        if self.run.has_problems:
            return 2
        if self.run.passed:
            return 0
        return 2 if self.run.verdict.outcome == "unknown" and not self.was_too_long else 1

    @property
    def was_too_long(self) -> bool:
        """Whether programs were still running at the time by which they had to have ended."""
        return any(failed.check == PROGRAMS for failed in self.run.failed)

    def record(self) -> RunRecord:
        """The record of the run, as written to a run directory."""
        record = self.run.record()
        record.info.replay = self.replay
        record.info.environment = run_environment()
        return record


class Simulation:
    """One simulation.  `began_us`: the cluster's time when the programs begin.  `replay`: the
    command that repeats it.  `keeps_trace`: whether `trace_lines` gets the trace."""

    def __init__(self, setting: SimulationSetting, replay: str, keeps_trace: bool = False) -> None:
        self._began_s = time.perf_counter()
        self.setting = setting
        self.cluster = WorldCluster(setting.scenario.topology, setting.seed, start_ms=START_MS)
        self.cluster.open()
        self.began_us = self.cluster.driver.now_us
        self.trace_lines: list[str] = []
        self.anew: Anew | None = None
        """The moment, since the programs began, from which on chance is drawn anew; None: never."""
        self.line_watches: list[LineWatch] = []
        """Who sees the lines of the programs' code, from their begin on."""
        sink = self.trace_lines.append if keeps_trace else None
        self.trace = WireTrace(self.began_us, sink)
        self._replay = replay
        self._stage = WorldStage(self.cluster, setting.seed, Ledger())
        self._run = ScenarioRun(setting.scenario, self._stage, self.cluster.recorder, setting.seed)
        self._failed: list[FailedCheck] = []
        self._steps_left = 0

    @property
    def now_ms(self) -> int:
        """The time since the programs began."""
        return (self.cluster.driver.now_us - self.began_us) // 1000

    def on_note(self, sink: Callable[[Note], None]) -> None:
        """Take an event of the cluster; to be called for each."""
        dispatcher = self.cluster.driver.dispatcher
        dispatcher.note_sinks = (*dispatcher.note_sinks, sink)

    def play(self, on_over: Callable[[], None] = lambda: None) -> Simulated:
        """Run the programs to their end, and judge the run.  `on_over`: called when the time is
        over, before programs that still run are ended by force."""
        setting, driver = self.setting, self.cluster.driver
        duration_s = setting.duration_s
        network = driver.network
        network.packet_sinks = (*network.packet_sinks, self.trace.on_packet)
        world = World(
            driver,
            seed=setting.seed,
            limit_s=setting.limit_s if duration_s is None else duration_s + 2 * GRACE_S,
            schedule=setting.schedule,
            compute=setting.compute,
        )
        for watch in self.line_watches:
            world.watch_lines(watch)
        programs = Programs(
            setting.programs,
            world,
            is_timed=duration_s is not None,
            may_restart=lambda: self._run.runner.may_act,
        )
        self.cluster.verbs.programs = NotedPrograms(programs, driver.dispatcher)
        with ExitStack() as undo:
            self._set_environment(undo)
            self._run.begin()
            if self.anew is not None:
                self._draw_anew(self.anew, world)
            if duration_s is not None:
                driver.at(self.began_us + round(duration_s * 1e6), programs.time_is_up)
            with world:
                try:
                    programs.run()
                except TimeLimit as limit:
                    self._on_limit(limit)
                except Deadlock as error:
                    self._stuck("deadlock: no thread can go on; what each waits for:", error)
                except Livelock as error:
                    self._stuck(f"{error.reason}; what each waits for:", error)
                except NotInVirtualTime as error:
                    self._failed.append(FailedCheck(PROGRAMS, str(error)))
                finally:
                    on_over()
        self._failed += [FailedCheck(PROGRAMS, _end_text(e)) for e in programs.ends if e.exit_code]
        self.trace.end(driver.now_us, world.scheduler.switches, f"{world.entropy.random():.9f}")
        return Simulated(
            run=self._judged(),
            ends=programs.ends,
            kills=programs.kills,
            running=programs.running,
            steps_left=self._steps_left,
            left=world.left,
            refused=world.refused,
            trace=self.trace,
            began_us=self.began_us,
            replay=self._replay,
        )

    def _draw_anew(self, anew: Anew, world: World) -> None:
        """Draw all chance anew from a moment on: the cluster's, and the world's."""

        def draw() -> None:
            self.cluster.plan.chance.draw_anew(anew.seed)
            world.chance.draw_anew(anew.seed)

        self.cluster.driver.at(self.began_us + anew.at_ms * 1000, draw)

    def _set_environment(self, undo: ExitStack) -> None:
        values = {BOOTSTRAP_VARIABLE: self.cluster.bootstrap, **self.setting.environment}
        for key, value in values.items():
            if key in os.environ:
                undo.callback(os.environ.__setitem__, key, os.environ[key])
            else:
                undo.callback(os.environ.pop, key, None)
            os.environ[key] = value

    def _on_limit(self, limit: TimeLimit) -> None:
        wanted = in_seconds(round(self.setting.limit_s * 1000))
        self._stuck(f"not all programs ended within {wanted} (--limit; --for ends them)", limit)

    def _stuck(self, text: str, error: TimeLimit | Deadlock | Livelock) -> None:
        threads = (thread for thread in error.threads if thread.name != _SUPERVISOR)
        text = "\n".join([text, *map(thread_line, threads)])
        self._failed.append(FailedCheck(PROGRAMS, text))

    def _judged(self) -> RunResult:
        run, driver = self._run, self.cluster.driver
        duration_ms = self.now_ms
        self._steps_left = run.runner.steps_left
        if self._steps_left and not run.runner.played:
            self._stage.refuse("the programs ended before the first step of the scenario")
        run.calm_down(steps_may_be_left=True)
        is_quiet = driver.advance(driver.now_us + CALM_LIMIT_MS * 1000, run.is_quiet)
        unfinished = () if is_quiet else tuple(run.clients.unfinished())
        run.clients.stop_consumers()
        driver.advance(driver.now_us + LEAVE_LIMIT_MS * 1000, run.clients.are_consumers_gone)
        wall_s = time.perf_counter() - self._began_s
        may_be_unknown = True  # programs need not use Kafka
        result = run.result("virtual", wall_s, unfinished, self.trace.hash, may_be_unknown)
        result.duration_ms = duration_ms
        result.failed[:0] = self._failed
        return result


def _end_text(end: ProgramEnd) -> str:
    reason = f": {end.reason}" if end.reason else ""
    return f"program {end.name} ended with exit code {end.exit_code}{reason}"


def _kill_text(kill: ProgramKill, began_us: int) -> str:
    text = f"killed after {(kill.at_us - began_us) / 1e6:.3f} s"
    if kill.restarted_us < 0:
        return f"{text}, and not started again"
    return f"{text}, started again {(kill.restarted_us - kill.at_us) / 1e6:.3f} s later"


def ends_lines(simulated: Simulated) -> Iterator[str]:
    """The end of each program and thread, in a line."""
    for end in simulated.ends:
        after_s = (end.at_us - simulated.began_us) / 1e6
        yield f"program {end.name}: ended after {after_s:.3f} s, exit code {end.exit_code}"
    for kill in simulated.kills:
        yield f"program {kill.name}: {_kill_text(kill, simulated.began_us)}"
    for name in simulated.running:
        yield f"program {name}: still ran at the end"
    for reason in simulated.refused:
        yield f"refused: {reason}"
    if simulated.steps_left:
        of = f"{simulated.steps_left} of the scenario's {len(simulated.run.scenario.steps)} steps"
        yield f"not performed, because the programs had ended: {of}"
    for thread in simulated.left:
        yield f"thread left:{thread_line(thread)[1:]}"
