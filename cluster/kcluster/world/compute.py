"""The cost of computing: a clock that goes on while code reads it.

Owns: the time that passes when a thread reads the clock without waiting.  Never: moves time (the
scheduler does).  Kafka: no counterpart; in reality, the speed of a machine.

In virtual time computing is free, and code that spins until a time has passed would never end.  So
each reading of the clock is a nanosecond later than the previous reading.  After `READINGS`
readings without a wait, each one costs time: a first step, doubled for each further reading up to a
maximum, until all threads wait again.

A thread may also spin with waits in between: it polls a socket or a queue, finds nothing, and asks
a server the next moment.  In each second `POLLS` polls without a result are free; further ones cost
more and more.  A wait of a millisecond that ends without a result counts as a poll.
"""

from __future__ import annotations

from random import Random
from typing import Final, final

READINGS: Final = 50
FIRST_STEP_US: Final = 200
LONGEST_STEP_US: Final = 10_000
POLLS: Final = 300
FIRST_POLL_US: Final = 2_000
LONGEST_POLL_US: Final = 16_000


@final
class Polls:
    """A thread's polls without a result in the current second, and their cost."""

    __slots__ = ("cost_us", "count", "second")

    def __init__(self) -> None:
        self.count = 0
        self.second = -1
        self.cost_us = FIRST_POLL_US


@final
class ComputeCost:
    """The cost of computing in one world.  `factor`: the slowness of the machine; 0 makes computing
    free."""

    __slots__ = ("_factor", "_in_a_row", "_step_us", "readings")

    def __init__(self, factor: float = 1.0) -> None:
        self._factor = factor
        self._in_a_row = 0
        self._step_us = 0
        self.readings = 0
        """The number of readings of the clock since a thread last waited."""

    @classmethod
    def drawn(cls, rng: Random) -> ComputeCost:
        """Draw the speed of a machine: from ten times as slow as usual to ten times as fast."""
        return cls(10 ** rng.uniform(-1, 1))

    def of_reading(self) -> int:
        """Count a reading of the clock, or a poll; returns its cost in µs."""
        self.readings += 1
        self._in_a_row += 1
        if self._in_a_row < READINGS:
            return 0
        self._in_a_row = 0
        self._step_us = min(self._step_us * 2, LONGEST_STEP_US) if self._step_us else FIRST_STEP_US
        return round(self._step_us * self._factor)

    def of_poll(self, polls: Polls, now_us: int) -> int:
        """Count a poll of a thread that found nothing and does not wait; returns its cost in µs."""
        second = now_us // 1_000_000
        if second != polls.second:
            is_busy = polls.count > POLLS and second == polls.second + 1
            polls.cost_us = min(polls.cost_us * 2, LONGEST_POLL_US) if is_busy else FIRST_POLL_US
            polls.second, polls.count = second, 0
        polls.count += 1
        return 0 if polls.count <= POLLS else round(polls.cost_us * self._factor)

    def idle(self) -> None:
        """Forget the readings, because all threads wait."""
        self._in_a_row = self._step_us = 0
