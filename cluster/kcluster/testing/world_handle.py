"""The cluster of a test in virtual time whose clients are real client code.

Owns: this handle, and the beginning and end of the world around the test.  Never: knows pytest's
hooks, replaces anything itself (world/ does).  Kafka: ClusterInstance of ClusterTestExtensions.

The thread that opens it belongs to the world until it closes it: the test, its fixtures in between,
and every thread that they start.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final

from kcluster.actions.base import Action
from kcluster.actions.stage import Stage
from kcluster.chance import Anew
from kcluster.events.render import event_line
from kcluster.evidence.recorder import Recorder
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.conditions import limit_ms_of
from kcluster.operations.errors import ClusterError
from kcluster.operations.moments import MomentWatch, NthMoment, moment_in
from kcluster.operations.targets import Nodes
from kcluster.protocol.names import has_internal_prefix
from kcluster.scenario.language.loader import action_of
from kcluster.search.near import LifeCount, ProgramLife
from kcluster.testing.apps import App, Apps
from kcluster.testing.callers import notes_its_callers
from kcluster.testing.client_errors import ClientErrors, client_error_lines
from kcluster.testing.marks import MarkArguments
from kcluster.testing.verbs import TestVerbs
from kcluster.testing.waiting_tasks import task_lines
from kcluster.world.active import is_dying
from kcluster.world.environment import HASH_SEED, UNKNOWN, run_environment
from kcluster.world.errors import thread_line
from kcluster.world.signals import ProgramSignals
from kcluster.world.trace import WireTrace
from kcluster.world.world import START_MS, World

GRACE_US: Final = 600_000_000
"""The virtual time that a failed test has to end its fixtures."""

for _name in [name for name in sys.modules if name.startswith("kcluster.world.")]:
    # pytest's word for a module whose frames no traceback shows, so that the traceback of a waiting
    # thread ends at the line that waits.
    vars(sys.modules[_name])["__tracebackhide__"] = True


def _nothing() -> None:
    pass


def _perform(stage: Stage, planned: Action, lasts_ms: int | None) -> None:
    _, undo = stage.begin(planned, "")
    if undo is not None and lasts_ms is not None:
        stage.at(stage.now_ms + lasts_ms, undo)


@notes_its_callers
class TestedWorldCluster(TestVerbs, WorldCluster):
    """`TestedCluster` in virtual time."""

    def __init__(self, arguments: MarkArguments, test: str) -> None:
        self._begin_report()
        super().__init__(
            arguments.topology,
            arguments.seed,
            log=self._on_connection_line,
            record=False,
            start_ms=START_MS,
        )
        self.test = test
        self.record.record_with(Recorder(self.dispatcher, self.plan))
        self.has_failed = False
        self._trace: WireTrace | None = None
        self._world = World(
            self.driver,
            seed=arguments.seed,
            limit_s=arguments.limit_s,
            schedule=arguments.schedule,
            compute=arguments.compute,
        )
        self._signals = ProgramSignals(self._world, of_test=True)
        self.apps = Apps(self, self._world)
        self.verbs.programs = self.apps
        self.awaited: list[NthMoment] = []
        """The moments of `at_moment` that have not come."""
        self.client_errors = ClientErrors(self.clock_ms)
        """The exceptions that left the calls of the test's clients."""
        self.is_calm = False
        """Whether the test has asked for no more faults."""
        self._undo_life: Callable[[], None] = _nothing
        self._moments = self._world.chance.stream("moments")
        self._undo = ExitStack()

    def run(
        self,
        function: Callable[..., object],
        *arguments: object,
        name: str = "",
        restart_after: str | float | None = None,
        **keywords: object,
    ) -> App:
        """Start a function as a program of its own, which can be killed and started again:
        `app = kafka_cluster.run(billing, bank)`.  A coroutine runs in an event loop of its own.
        `name`: for `"app NAME"` in targets, by default the function's.  An exception that ends it
        fails the test; with `restart_after` (`1s`, or seconds) it is started again after this time
        instead, as by a supervisor."""
        after_ms = None if restart_after is None else limit_ms_of(restart_after)
        return self.apps.run(function, name, arguments, keywords, after_ms)

    def kill(
        self,
        brokers: Nodes,
        how: str = "kill",
        *,
        wait: bool | None = None,
        timeout_s: float | None = None,
        after: str | None = None,
        within: str | float = 0,
    ) -> tuple[int, ...]:
        """As on every cluster; also programs: `"app billing"`.  `after`: not now, but when this
        moment has come, counted from now, such as "3rd commit of billing"; `within`: at a time
        after it that the seed draws, at most this long (`50ms`, or seconds).  It then returns ()
        at once."""
        if after is not None:
            self.at_moment(after, "kill", {"brokers": brokers, "how": how}, within)
            return ()
        chosen = super().kill(brokers, how, wait=wait, timeout_s=timeout_s)
        self.apps.await_killed()
        return chosen

    def at_moment(
        self,
        after: str,
        verb: str,
        keys: Mapping[str, object],
        within: str | float = 0,
        lasts: str | float | None = None,
    ) -> None:
        """Perform an action of scenario files, with its keys, after a moment: see `kill`.  `lasts`:
        it is undone after this time.  If it is impossible then, the test fails."""
        moment, limit_ms = moment_in(after), limit_ms_of(within)
        planned = action_of(verb, None, keys, None).action
        lasts_ms = None if lasts is None else limit_ms_of(lasts)
        stage = self.stage
        delay_ms = self._moments.randrange(limit_ms + 1)

        def act() -> None:
            if self.is_calm:
                return
            stage.attempt(f"{verb} after the {moment}", lambda: _perform(stage, planned, lasts_ms))

        def reached() -> None:
            self.awaited.remove(moment)
            if moment.is_inside and not delay_ms:
                act()
            else:
                stage.at(stage.now_ms + delay_ms, act)

        self.awaited.append(moment)
        self.call(lambda: stage.when_reached(moment, reached))

    def calm(self) -> None:
        """End all faults, also those that are still to come: of scenarios beside the test, of
        `at_moment`, of a search.  Brokers and apps that died are started again, paused ones go on.
        Returns when all replicas are in sync; to be called before a test waits for its outcome."""
        self.is_calm = True
        for steps in self.playing:
            steps.stop()
        self.repair()
        for name, app in self.apps.all.items():
            self.call(partial(self.apps.resume, name))
            if app.was_killed:
                self.call(partial(self.apps.start, name))

    def draw_anew(self, anew: Anew) -> None:
        """Draw all chance anew from a moment on, in ms since now: the cluster's and the world's."""

        def draw() -> None:
            self.plan.chance.draw_anew(anew.seed)
            self._world.chance.draw_anew(anew.seed)

        self.call(lambda: self.stage.at(self.stage.now_ms + anew.at_ms, draw))

    def count_life(self, found: list[ProgramLife]) -> None:
        """Count the moments of this test from now on; `found` gets them when it ends."""
        count = LifeCount(self.clock_ms)
        watch = MomentWatch(self.dispatcher, self.verbs.settled, count.add)
        self._world.watch_lines(count.add_line)

        def end() -> None:
            watch.end()
            found.append(count.life(self.apps.names, tuple(self._partitions())))

        self._undo_life = end

    def _partitions(self) -> Iterator[str]:
        for name, topic in self.verbs.settled.image.topics.items():
            if not has_internal_prefix(name):
                yield from (f"{name}-{each.partition}" for each in topic.partitions)

    def check_steps(self) -> None:
        super().check_steps()
        found, self.stage.problems[:] = self.stage.problems[:], []
        if found:
            raise ClusterError("; ".join(found))

    def is_caller_dying(self) -> bool:
        return is_dying()

    def trace_into(self, lines: list[str]) -> None:
        """Write a line for each frame between the test's clients and the brokers."""
        self._trace = WireTrace(self.driver.now_us, lines.append)
        network = self.driver.network
        network.packet_sinks = (*network.packet_sinks, self._trace.on_packet)

    def open(self) -> None:
        """Start the cluster; from now on, the calling thread belongs to its world."""
        super().open()
        self.deaths.attach()  # before the world, which hides the threads that it ends itself
        self._world.enter()
        self.client_errors.attach(self._undo)
        self._signals.replace(self._undo)

    def close(self) -> None:
        """End the threads that are left, and the cluster."""
        self._give_grace()
        self._undo_life()
        try:
            self._world.leave()
        finally:
            self.deaths.detach()
            self._undo.close()
            if self._trace is not None:
                drawn = self._world.entropy.random()
                switches = self._world.scheduler.switches
                self._trace.end(self.driver.now_us, switches, f"{drawn:.9f}")
            super().close()

    def after_failure(self) -> None:
        """Let fixtures end, if the limit is near or over."""
        self.has_failed = True
        self._give_grace()

    def _give_grace(self) -> None:
        scheduler = self._world.scheduler
        scheduler.limit_us = max(scheduler.limit_us, scheduler.now_us + GRACE_US)

    def threads_left(self) -> list[str]:
        """The names of the test's threads for which a live program would wait at its end."""
        idents = {thread.ident for thread in self._world.scheduler.threads if not thread.app}
        return [
            thread.name
            for thread in threading.enumerate()
            if thread.ident in idents
            and not thread.daemon
            and thread is not threading.current_thread()
        ]

    def _clients_story(self) -> Iterator[tuple[int, str]]:
        began_ms = self.origin_ms
        yield from client_error_lines(self.client_errors.found, began_ms)
        for death in self.deaths.found:
            where = f" at {death.place}" if death.place else ""
            text = f"ended with {death.error}{where}"
            yield death.at_ms, event_line(death.at_ms, began_ms, "thread", death.thread, text)

    def _threads(self) -> Iterator[str]:
        for moment in self.awaited:
            yield f"not reached: the {moment}"
        scheduler = self._world.scheduler
        others = scheduler.describe(others_than=scheduler.current)
        if others:
            yield "threads:"
            yield from map(thread_line, others)
        tasks = list(task_lines())
        if tasks:
            yield "tasks:"
            yield from tasks
        for reason in self._world.refused:  # a library may have caught the error
            yield f"refused: {reason}"

    def _environment(self) -> dict[str, str]:
        return run_environment()

    def _seed_lines(self) -> Iterator[str]:
        yield f"seed: {self.seed}"
        found = self._environment()
        yield ", ".join(f"{name} {value}" for name, value in found.items())
        if found[HASH_SEED] == UNKNOWN:
            yield f"another process may order sets of strings differently; set {HASH_SEED}=0"
