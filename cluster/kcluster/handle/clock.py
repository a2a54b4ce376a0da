"""The clock of a cluster: `cluster.clock.pause()`, or `cluster.pause_clock()`.

Owns: pausing, stepping and slowing it down, ClockStatus.  Never: stops anything itself
(drivers/live.py does).
Kafka: no counterpart.

While the clock is paused the whole cluster is: no broker steps, no timer runs, and the clients'
bytes stay in their sockets, so they see a stall.  Their own clocks go on: a pause that is longer
than a client's request.timeout.ms makes it try again.  Operations act at the moment of the pause,
in the order in which they are called.  Consequences that need no time happen at once; no operation
waits for the others.  In the cluster's own time a pause has no duration, so a verdict shows no gap.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from msgspec import Struct

from kcluster.contract import Note
from kcluster.drivers.live_clock import SLOWEST
from kcluster.events import KINDS
from kcluster.handle.driver import SteeredDriver
from kcluster.handle.port import ClusterPort
from kcluster.operations.errors import ClusterError
from kcluster.operations.python_values import number_in, seconds_in, text_in
from kcluster.operations.status import NoteEntry

ANY: Final = "any"
"""The word for a step to the next event, whatever its kind."""


_NO_STEERING: Final = (
    "the clock of virtual time cannot be paused, stepped or slowed down: it stands still by itself"
    " while nothing is due"
)


class ClockStatus(Struct, frozen=True):
    """The state of a cluster's clock.  `now_ms`: its time.  `speed`: 1.0 is the machine's; a pause
    does not change it.  `steppable`: the kinds of events to which the clock can be stepped."""

    now_ms: int
    paused: bool
    speed: float
    steppable: tuple[str, ...]


class ClusterClock:
    """The clock of a cluster; a call returns its state."""

    def __init__(self, port: ClusterPort) -> None:
        self._port = port

    @property
    def is_steered(self) -> bool:
        """Whether this cluster's clock can be paused, stepped and slowed down."""
        return isinstance(self._port.driver, SteeredDriver)

    @property
    def _steered(self) -> SteeredDriver:
        driver = self._port.driver
        if not isinstance(driver, SteeredDriver):
            raise ClusterError(_NO_STEERING)
        return driver

    def __call__(self) -> ClockStatus:
        """The time in the cluster, and how its clock runs."""
        driver = self._port.driver
        kinds = (ANY, *KINDS)
        return ClockStatus(driver.clock_ms(), driver.is_clock_paused, driver.clock_speed, kinds)

    def pause(self) -> ClockStatus:
        """Stop the cluster at this moment; does nothing if it is paused."""
        return self._steer(self._steered.pause_clock)

    def resume(self) -> ClockStatus:
        """Let the cluster continue from where it stands; does nothing unless it is paused."""
        return self._steer(self._steered.resume_clock) if self.is_steered else self()

    def set_speed(self, speed: float) -> ClockStatus:
        """Run the cluster's clock at this speed, from 0.01 to 1: timers, the latency of links and
        timestamps of brokers follow it.  A paused clock stays paused, and has the speed later."""
        number_in("speed", speed, SLOWEST, 1)
        if speed == 1 and not self.is_steered:
            return self()
        driver = self._steered
        return self._steer(lambda: driver.set_speed(speed))

    def step(self, kind: str = ANY, *, within_s: float = 60.0) -> NoteEntry:
        """Let the cluster run until the next event of this kind (`leader_elected`, `leader_elected
        of orders-0`, or `any`) and stop it at that moment; returns the event.  If there is none
        within this time of the machine, the clock is stopped nevertheless, and ClusterError is
        raised."""
        is_wanted, driver, port = wanted_event(kind), self._steered, self._port
        seconds_in("within_s", within_s)
        found: list[NoteEntry] = []

        def watch(entry: NoteEntry) -> None:
            if not found and is_wanted(entry.note):
                found.append(entry)

        def begin() -> tuple[Future[Note], Callable[[], None]]:
            return driver.pause_at(is_wanted), port.subscribe(watch)

        future, end = port.call(begin)
        try:
            port.result(future, within_s, f"no event {kind}")
        except ClusterError as error:
            if future.done():
                raise
            self.pause()
            raise ClusterError(f"{error}; the clock is paused") from None
        finally:
            end()
        port.call(driver.forget_step)
        return found[0]

    def _steer(self, change: Callable[[], None]) -> ClockStatus:
        driver = self._steered

        def steer() -> None:
            driver.forget_step()
            change()

        self._port.call(steer)
        return self()


def wanted_event(kind: str) -> Callable[[Note], bool]:
    """A test for notes of one kind, such as `leader_elected of orders-0`.  Events of Kafka's own
    topics count only if the topic is named.  Raises ClusterError with the nearest word for an
    unknown kind."""
    from kcluster.operations.conditions import EventCondition, condition_in

    if text_in("kind", kind) == ANY:
        return lambda note: not note.event.is_internal
    wanted = condition_in(f"event {kind}")
    assert isinstance(wanted, EventCondition), wanted
    if wanted.subject:
        return wanted.matches
    return lambda note: wanted.matches(note) and not note.event.is_internal
