"""The clock of a live cluster: the machine's, slowed down or paused on demand.

Owns: the cluster's time at each time of the machine's monotonic clock, and the part of a delay of
the loop that counts as time.  Never: reads a clock, arms a timer (live.py does). Kafka:
System.nanoTime, which cannot be stopped.

For nodes, time never goes back and never jumps: after a pause it continues where it stood.  While
the process gets no CPU the clock stands still, because no heartbeat can be read
(docs/decisions/017).
"""

from __future__ import annotations

from typing import Final, final

SLOWEST: Final = 0.01
"""The lowest speed: a second of the cluster then takes a hundred seconds."""

GRACE_US: Final = 5_000
"""A delay of the loop that is normal on any machine, from the grain of timers or a thread that
holds the GIL.  It is small compared with the shortest timeout of a client, 450 ms for a session
under profile `fast`."""

MAX_COMPUTED_US: Final = 100_000
"""The longest computing time that passes for the cluster, too.  Otherwise clients would be charged
for more time than there was to read their requests."""


def counted_us(late_us: int, computed_us: int) -> int:
    """The time that has passed in the cluster since an event was due, if the loop is `late_us` late
    and has computed for `computed_us` since it last set the time."""
    return min(late_us, GRACE_US + min(computed_us, MAX_COMPUTED_US))


@final
class LiveClock:
    """Times in µs; `machine_us` is the monotonic clock.

    `is_steered`: whether the clock is paused or slow.  If not, the cluster's time is the machine's
    plus `offset_us`.  `speed`: 1.0 is the machine's; kept during a pause.
    """

    __slots__ = ("_pace", "is_paused", "is_steered", "offset_us", "speed")

    def __init__(self, offset_us: int) -> None:
        self.offset_us = offset_us
        self.is_steered = False
        self.is_paused = False
        self.speed = 1.0
        self._pace: tuple[int, int, float] = (0, offset_us, 1.0)
        """(machine_us, the cluster's time at that moment, the speed since then), as one value, so
        that other threads read it as a whole."""

    def at(self, machine_us: int) -> int:
        """The cluster's time; from any thread."""
        since_us, us, speed = self._pace
        if speed == 1.0:
            return us + machine_us - since_us
        return us + int((machine_us - since_us) * speed)

    def wait_us(self, duration_us: int) -> int:
        """The time that this duration of the cluster takes on the machine, at the current speed."""
        return duration_us if self.speed == 1.0 else int(duration_us / self.speed)

    def pause(self, machine_us: int, now_us: int) -> None:
        """Stop at `now_us`, the time that the nodes have seen."""
        self.is_paused = True
        self._set_pace(machine_us, now_us, 0.0)

    def resume(self, machine_us: int) -> None:
        """Continue from the time at which the clock stands, at `speed`."""
        self.is_paused = False
        self._set_pace(machine_us, self.at(machine_us), self.speed)

    def set_speed(self, machine_us: int, speed: float) -> None:
        """Run at this speed from now on, or from the end of the pause."""
        now_us = self.at(machine_us)
        self.speed = speed
        self._set_pace(machine_us, now_us, 0.0 if self.is_paused else speed)

    def fall_behind(self, by_us: int) -> None:
        """Stand still for a time in which the process got no CPU."""
        since_us, us, speed = self._pace
        self._pace = (since_us, us - by_us, speed)
        self.offset_us -= by_us

    def _set_pace(self, machine_us: int, us: int, speed: float) -> None:
        self._pace = (machine_us, us, speed)
        self.offset_us = us - machine_us
        self.is_steered = speed != 1.0
