"""The stage on the live driver, and a run on it: real sockets, wall-clock time.

Owns: the steps' timers, the workload's clients over TCP.  Never: blocks the driver's thread, in
which everything here runs, except `run`, which waits in the caller's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Final

import gevent

from kcluster.clients.ledger import Ledger
from kcluster.drivers.live import LiveDriver
from kcluster.drivers.wires.tcp import LiveClients
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster import Cluster
from kcluster.scenario.language.client_configs import FAST_FACTOR
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import CALM_LIMIT_MS, Progress, RunResult, ScenarioRun
from kcluster.scenario.play.running_stage import RunningStage

LATE_MS: Final = 10_000
"""Extra time, for a busy machine."""
LOOK_S: Final = 0.002
"""The interval at which conditions are tested; some changes, such as counts of acks, are announced
by no event."""
LOOK_FOR_END_S: Final = 0.01
"""The interval at which the end of a stage is tested; nothing depends on its exact time."""


class LiveStage(RunningStage):
    """A stage on an open Cluster; created and used in the driver's thread, except for `run`."""

    def __init__(self, cluster: Cluster, seed: int, ledger: Ledger) -> None:
        driver = cluster.driver
        self._own_clients = LiveClients(driver, seed)
        super().__init__(cluster, driver, self._own_clients, seed, ledger)
        self.driver: LiveDriver = driver
        self._waiting: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self._looker: gevent.Greenlet | None = None
        """The greenlet that tests conditions, while there are any."""
        self._ender: gevent.Greenlet | None = None
        """The greenlet that tests for the end of a stage, while that is waited for."""
        self._over = Event()

    def when(self, holds: Callable[[], bool], callback: Callable[[], None]) -> None:
        self._waiting.append((holds, callback))
        self._look_out()

    def _do(self, callback: Callable[[], None]) -> None:
        self.driver.wake()
        callback()
        self.driver.settle()

    def _look_out(self) -> None:
        if self._looker is None:
            self._looker = gevent.spawn(self._look)

    def _look(self) -> None:
        while self._waiting:
            gevent.sleep(LOOK_S)
            if self.driver.is_clock_paused:
                continue
            self.driver.wake()
            for entry in tuple(self._waiting):
                holds, callback = entry
                if holds():
                    self._waiting.remove(entry)
                    self._do(callback)
        self._looker = None

    def _look_for_end(self, is_over: Callable[[], bool]) -> None:
        if self._ender is not None:
            self._ender.kill(block=False)
        self._ender = gevent.spawn(self._run_to_end, is_over)

    def _run_to_end(self, is_over: Callable[[], bool]) -> None:
        while True:
            gevent.sleep(LOOK_FOR_END_S)
            if not self.driver.is_clock_paused:
                self.driver.wake()
                if is_over():
                    self._over.set()
                    return

    # --------------------------------------------------------------- in the caller's thread

    def run(
        self,
        is_over: Callable[[], bool],
        limit_ms: int,
        progress: Callable[[int], object] = lambda now_ms: None,
    ) -> bool:
        """Wait until `is_over()` holds, at most `limit_ms` on the cluster's clock; returns whether
        it holds.  `progress(now_ms)` is called a few times per second."""
        self._over.clear()
        self.driver.call(lambda: self._look_for_end(is_over))
        until_ms = self.driver.clock_ms() + limit_ms
        while not self._over.wait(0.05):
            progress(self.now_ms)
            if not self.driver.is_running or self.driver.clock_ms() > until_ms:
                return False
        return True

    def close(self) -> None:
        """Close the clients; called in the driver's thread."""
        for greenlet in (self._looker, self._ender):
            if greenlet is not None:
                greenlet.kill(block=False)
        self._own_clients.close()


def run_live(scenario: Scenario, seed: int, progress: Progress) -> RunResult:
    """Run a scenario on its own live cluster."""
    cluster = Cluster(scenario.topology, seed=seed, record=False)
    recorder = Recorder(cluster.driver.dispatcher, cluster.plan)
    return run_on(cluster, recorder, scenario, seed, progress)


def run_on(
    cluster: Cluster,
    recorder: Recorder,
    scenario: Scenario,
    seed: int,
    progress: Progress,
    make_stage: Callable[[Cluster, int, Ledger], LiveStage] = LiveStage,
    least_calm_ms: int = LATE_MS,
) -> RunResult:
    """Run a scenario on a cluster that is not open yet.  `least_calm_ms`: the least time in which
    everything may come to rest."""
    began_s = time.monotonic()
    ledger = Ledger()
    duration_ms = scenario.duration_ms
    with cluster:
        run = cluster.call(
            lambda: ScenarioRun(scenario, make_stage(cluster, seed, ledger), recorder, seed)
        )
        stage = run.stage
        assert isinstance(stage, LiveStage)
        cluster.call(run.begin)
        stage.run(
            lambda: stage.now_ms >= duration_ms,
            2 * duration_ms * stage.pace + LATE_MS,
            lambda now_ms: progress(now_ms, duration_ms),
        )
        cluster.call(run.calm_down)
        calm_ms = CALM_LIMIT_MS // (FAST_FACTOR if scenario.topology.profile == "fast" else 1)
        is_quiet = stage.run(run.is_quiet, max(calm_ms, least_calm_ms))
        unfinished = () if is_quiet else cluster.call(lambda: tuple(run.clients.unfinished()))
        cluster.call(run.clients.stop_consumers)
        stage.run(run.clients.are_consumers_gone, LATE_MS)
        wall_s = time.monotonic() - began_s
        result = cluster.call(lambda: run.result(cluster.clock_name, wall_s, unfinished, ""))
        cluster.call(stage.close)
    return result
