"""A world: real client code, in real threads, in the virtual time of a simulated cluster.

Owns: entering and leaving it: the replacements, the first thread, the threads left at the end.
Never: makes the cluster (its network is passed in), chooses who runs (scheduler.py), defines a
replacement (replaced/). Kafka: no counterpart; FoundationDB's simulation, for code that was not
written for it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from kcluster.chance import Chance
from kcluster.timers import NEVER_US
from kcluster.world import heap, libraries, refusals
from kcluster.world.active import ActiveWorld, WorldNetwork, set_world
from kcluster.world.compute import ComputeCost
from kcluster.world.holders import Replacement
from kcluster.world.interleaving import interrupt_lines
from kcluster.world.replaced import clocks, locks, network, randomness, threads
from kcluster.world.replacing import Replacing
from kcluster.world.scheduler import LineWatch, Scheduler
from kcluster.world.waits import StuckThread
from kcluster.world.watchdog import PATIENCE_S, Watchdog

START_MS: Final = clocks.EPOCH_S * 1000
"""The cluster's time when its world begins."""
LIMIT_S: Final = 3600.0


def _replacements() -> list[Replacement]:
    found = [*clocks.PAIRS, *threads.PAIRS, *randomness.PAIRS, *network.PAIRS, *refusals.PAIRS]
    return found + clocks.methods_taken() + libraries.pairs()


_REPLACING: Final = Replacing(_replacements)
_ALL: Final = 2
_YOUNGER: Final = 1
"""The generations that a collection includes."""
_is_first = True
"""Whether no world of this process has begun yet."""


class World(ActiveWorld):
    """A world: `with World(driver, seed=1): …`.  The thread that enters, and every thread that it
    starts, belong to it.

    `limit_s`: the limit of virtual time.  `schedule`: "fifo", or "random" for interleavings from
    the seed.  `compute`: the slowness of the machine, 1.0 being usual; None to draw it from the
    seed.  `patience_s`: the real time for which a thread may block in C.
    """

    def __init__(
        self,
        cluster: WorldNetwork,
        *,
        seed: int = 1,
        limit_s: float = LIMIT_S,
        schedule: str = "fifo",
        compute: float | None = 1.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.chance = Chance(seed)
        rng = self.chance.stream("compute")
        scheduler = Scheduler(
            cluster,
            limit_us=cluster.now_us + round(limit_s * 1e6) if limit_s else NEVER_US,
            cost=ComputeCost.drawn(rng) if compute is None else ComputeCost(compute),
            chance=self.chance,
            is_random=schedule == "random",
        )
        super().__init__(cluster, scheduler, self.chance.stream("entropy"))
        self.seed = seed
        self._patience_s = patience_s
        self.left: list[StuckThread] = []
        """Threads that had not ended at the end."""
        self._undo = ExitStack()
        self._interrupts_lines = False
        self.is_over = False
        """Whether its programs have ended, and start no more."""

    def __enter__(self) -> Self:
        self.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def enter(self) -> None:
        """Make the calling thread the first thread of this world."""
        with ExitStack() as undo:
            _REPLACING.put_in(undo)
            libraries.adapt(undo)
            _collect(undo)
            clocks.replace_calendar(undo)
            network.replace_classes(undo)
            locks.replace_locks(undo)
            threads.report_no_forced_ends(undo)
            randomness.replace_generators(undo, f"{self.seed}/random")
            _forget_event_loop(undo)
            set_world(self)
            undo.callback(set_world, None)
            self._network.is_inhabited = True
            undo.callback(self._depart)
            self.scheduler.enter()
            Watchdog(self.scheduler, self._patience_s).start(undo)
            self._undo = undo.pop_all()
            if self.scheduler.is_random or self.scheduler.stalls or self.scheduler.line_watches:
                self._interrupt_lines()

    def _interrupt_lines(self) -> None:
        if not self._interrupts_lines:
            self._interrupts_lines = True
            interrupt_lines(self.scheduler, self._undo)

    def stall(self, app: str, share: float, longest_us: int, line: str = "") -> None:
        """From now on, let threads of a program ("": of all) stand still at this share of the lines
        of users' code; 0: no more.  `line`: at this one alone (`billing.py:31`).  In Python 3.11
        this concerns threads that start later, and functions that are called later."""
        self.scheduler.stalls.pop(app, None)
        if share:
            self.scheduler.stalls[app] = (share, longest_us, line)
            if self.scheduler.threads:
                self._interrupt_lines()

    def watch_lines(self, watch: LineWatch) -> None:
        """From now on, let `watch` see the lines of users' code that programs are about to
        execute; see `stall`."""
        self.scheduler.line_watches.append(watch)
        if self.scheduler.threads:
            self._interrupt_lines()

    def when_line(self, line: str, number: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once, when a program is about to execute this line for the `number`-th time.
        Returns what ends the wait."""
        left, watches = number, self.scheduler.line_watches

        def watch(app: str, here: str) -> bool:
            nonlocal left
            if here != line or not app:
                return False
            left -= 1
            if left:
                return False
            end()
            callback()
            return True

        def end() -> None:
            if watch in watches:
                watches.remove(watch)

        self.watch_lines(watch)
        return end

    def _depart(self) -> None:
        self._network.is_inhabited = False

    def leave(self) -> None:
        """Make the calls registered for the exit, end the threads that are left, and put everything
        back."""
        self.is_over = True
        try:
            self.at_exit.run()
        finally:
            try:
                self.left = self.scheduler.leave()
            finally:
                self._undo.close()


def _forget_event_loop(undo: ExitStack) -> None:
    """Hide a running event loop from the calling thread until the end: a loop that already runs
    (Playwright's) is outside of the world."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        undo.callback(asyncio._set_running_loop, asyncio._get_running_loop())
        asyncio._set_running_loop(None)


def _collect(undo: ExitStack) -> None:
    """Collect garbage now, and then only on request until the end, because finalizers would
    otherwise run at moments that differ from run to run.  A collection that the program requests
    looks at its own objects only; all others are frozen.  The first world collects the whole heap,
    later ones only younger objects, which earlier worlds have left."""
    global _is_first
    gc.collect(_ALL if _is_first else _YOUNGER)
    _is_first = False
    if gc.isenabled():
        gc.disable()
        undo.callback(gc.enable)
    heap.freeze(undo)
