"""A world: real client code, in real threads, in the virtual time of a simulated cluster.

Owns: entering and leaving it: what is replaced, the first thread, the threads left at the end.
Never: the cluster (it is given its network), who runs (scheduler.py), what is replaced (replaced/).
Kafka: no counterpart; FoundationDB's simulation, for code that does not know of it.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from random import Random
from types import TracebackType
from typing import Final, Protocol, Self

from kcluster.drivers.memory.stream import StreamEnd
from kcluster.timers import NEVER_US
from kcluster.world import libraries
from kcluster.world.active import set_world
from kcluster.world.compute import ComputeCost
from kcluster.world.errors import UnknownHost
from kcluster.world.exits import AtExits
from kcluster.world.replaced import clocks, network, randomness, threads
from kcluster.world.replacing import Pair, Replacing
from kcluster.world.scheduler import Scheduler, WorldClock
from kcluster.world.sockets import CLIENT_HOST, WorldSockets
from kcluster.world.waits import StuckThread

START_MS: Final = clocks.EPOCH_S * 1000
"""The time of a cluster when its world begins."""
LIMIT_S: Final = 3600.0


class WorldNetwork(WorldClock, Protocol):
    """What a world needs from the driver of a cluster."""

    def connect(self, host: str, port: int, local: tuple[str, int]) -> StreamEnd:
        """A connection that is being made to a broker, from this address."""

    @property
    def hosts(self) -> dict[str, str]:
        """The brokers' addresses by name."""


def _pairs() -> list[Pair]:
    found = [*clocks.PAIRS, *threads.PAIRS, *randomness.PAIRS, *network.PAIRS]
    return found + libraries.pairs()


_REPLACING: Final = Replacing(_pairs)


class World:
    """`with World(driver, seed=1): …` in the thread that enters, whose threads belong to it.

    `limit_s`: of virtual time.  `schedule`: "fifo", or "random" for interleavings from the seed.
    `compute`: how slow the machine is, 1.0 being usual; None to draw it from the seed.
    """

    def __init__(
        self,
        cluster: WorldNetwork,
        *,
        seed: int = 1,
        limit_s: float = LIMIT_S,
        schedule: str = "fifo",
        compute: float | None = 1.0,
    ) -> None:
        self.seed = seed
        self.entropy = Random(f"{seed}/entropy")
        """What the system's random numbers are drawn from."""
        self.at_exit = AtExits()
        self.sockets = WorldSockets(self)
        self.left: list[StuckThread] = []
        """Threads that had not ended at the end."""
        rng = Random(f"{seed}/compute")
        self.scheduler = Scheduler(
            cluster,
            limit_us=cluster.now_us + round(limit_s * 1e6) if limit_s else NEVER_US,
            cost=ComputeCost.drawn(rng) if compute is None else ComputeCost(compute),
            rng=Random(f"{seed}/schedule") if schedule == "random" else None,
        )
        self._cluster = cluster
        self._undo = ExitStack()

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
        """Make the calling thread the first of this world."""
        undo = self._undo
        try:
            # A finalizer must not run at a moment that differs from run to run.
            gc.collect()
            if gc.isenabled():
                gc.disable()
                undo.callback(gc.enable)
            _REPLACING.put_in(undo)
            libraries.adapt(undo)
            clocks.replace_calendar(undo)
            network.replace_classes(undo)
            threads.report_no_forced_ends(undo)
            randomness.replace_generators(undo, f"{self.seed}/random")
            set_world(self)
            undo.callback(set_world, None)
            self.scheduler.enter()
        except BaseException:
            undo.close()
            raise

    def leave(self) -> None:
        """Run what was registered for the exit, end the threads that are left, and put everything
        back."""
        try:
            self.at_exit.run()
        finally:
            try:
                self.left = self.scheduler.leave()
            finally:
                self._undo.close()

    def connect(self, host: str, port: int, local: tuple[str, int]) -> StreamEnd:
        """A connection that is being made to a broker, from this address."""
        return self._cluster.connect(host, port, local)

    def resolve(self, host: str) -> str:
        """The address of a name; UnknownHost for hosts of the real world."""
        if host in ("localhost", "127.0.0.1", "0.0.0.0", "::1", CLIENT_HOST):
            return host if host != "localhost" else "127.0.0.1"
        hosts = self._cluster.hosts
        if host in hosts:
            return hosts[host]
        if host in hosts.values():
            return host
        raise UnknownHost(host)
