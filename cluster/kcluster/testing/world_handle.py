"""The cluster of a test in virtual time whose clients are real client code.

Owns: this handle, and the beginning and end of the world around the test.  Never: knows pytest's
hooks, replaces anything itself (world/ does).  Kafka: ClusterInstance of ClusterTestExtensions.

The thread that opens it belongs to the world until it closes it: the test, its fixtures in between,
and every thread that they start.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from kcluster.evidence.recorder import Recorder
from kcluster.handle.world_cluster import WorldCluster
from kcluster.testing.callers import notes_its_callers
from kcluster.testing.marks import MarkArguments
from kcluster.testing.verbs import TestVerbs
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
        self._undo = ExitStack()

    def trace_into(self, lines: list[str]) -> None:
        """Write a line for each frame between the test's clients and the brokers."""
        self._trace = WireTrace(self.driver.now_us, lines.append)
        network = self.driver.network
        network.packet_sinks = (*network.packet_sinks, self._trace.on_packet)

    def open(self) -> None:
        """Start the cluster; from now on, the calling thread belongs to its world."""
        super().open()
        self._world.enter()
        self.deaths.attach()
        self._signals.replace(self._undo)

    def close(self) -> None:
        """End the threads that are left, and the cluster."""
        self._give_grace()
        self.deaths.detach()
        try:
            self._world.leave()
        finally:
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
        idents = {thread.ident for thread in self._world.scheduler.threads}
        return [
            thread.name
            for thread in threading.enumerate()
            if thread.ident in idents
            and not thread.daemon
            and thread is not threading.current_thread()
        ]

    def _threads(self) -> Iterator[str]:
        scheduler = self._world.scheduler
        others = scheduler.describe(others_than=scheduler.current)
        if others:
            yield "threads:"
            yield from map(thread_line, others)
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
