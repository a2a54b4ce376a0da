"""Moves of replicas made few and short enough for a page.

Owns: which moves may go where there are too many, and differences instead of values.
Never: drops a fall: a log end or a high watermark that goes back is what one looks for.
Kafka: no counterpart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct, field


class Series(Struct):
    """Moves of one replica: times in ms, log ends and high watermarks, side by side."""

    times: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)
    fell: bool = False
    """The last one was a fall."""

    def add(self, at_ms: int, end: int, watermark: int) -> None:
        """One more move; of those of one ms only the last is kept, but for falls."""
        falls = bool(self.times) and (end < self.ends[-1] or watermark < self.watermarks[-1])
        if self.times and self.times[-1] == at_ms and not falls and not self.fell:
            self.ends[-1], self.watermarks[-1] = end, watermark
            return
        self.fell = falls
        self.times.append(at_ms)
        self.ends.append(end)
        self.watermarks.append(watermark)


def steps(values: list[int]) -> list[int]:
    """The first, then how much each differs from the one before: short, as JSON."""
    return [*values[:1], *(after - before for before, after in pairwise(values))]


def thin(one: Series, cell_ms: int) -> None:
    """Keep the last move of each cell of time, and both sides of each fall."""
    kept = list(_kept(one, cell_ms))
    one.times = [one.times[at] for at in kept]
    one.ends = [one.ends[at] for at in kept]
    one.watermarks = [one.watermarks[at] for at in kept]


def _kept(one: Series, cell_ms: int) -> Iterator[int]:
    ends, watermarks = one.ends, one.watermarks
    last = len(one.times) - 1
    at = 0
    while at <= last:
        until = bisect_left(one.times, (one.times[at] // cell_ms + 1) * cell_ms, at) - 1
        fell = False
        for here in range(at, until):
            falls = ends[here + 1] < ends[here] or watermarks[here + 1] < watermarks[here]
            if falls or fell:
                yield here
            fell = falls
        yield until
        at = until + 1
