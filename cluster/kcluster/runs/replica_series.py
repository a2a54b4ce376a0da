"""Log end and high watermark of replicas over time, thinned for the page.

Owns: which points are dropped if there are too many, and the delta encoding of the rest.
Never: drops a decrease: a log end or high watermark that goes back is what a reader looks for.
Kafka: no counterpart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct, field


class Series(Struct):
    """The points of one replica: times in ms, log ends and high watermarks, in parallel lists."""

    times: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)
    fell: bool = False
    """Whether the last point was a decrease."""

    def add(self, at_ms: int, end: int, watermark: int) -> None:
        """Add a point.  Of the points of one ms only the last is kept, except for decreases."""
        falls = bool(self.times) and (end < self.ends[-1] or watermark < self.watermarks[-1])
        if self.times and self.times[-1] == at_ms and not falls and not self.fell:
            self.ends[-1], self.watermarks[-1] = end, watermark
            return
        self.fell = falls
        self.times.append(at_ms)
        self.ends.append(end)
        self.watermarks.append(watermark)


def steps(values: list[int]) -> list[int]:
    """The first value, then the difference of each from the one before, which is shorter JSON."""
    return [*values[:1], *(after - before for before, after in pairwise(values))]


def thin(one: Series, cell_ms: int) -> None:
    """Keep the last point of each interval of `cell_ms`, and both ends of each decrease."""
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
