"""From which moment on a finding was sure: chance is drawn anew from one moment after the other.

Owns: Odds, Certainty, and which moments are tried.  Never: plays a run (trial.py does), words
anything (words.py does).  Kafka: no counterpart.

The steps of the scenario stay as they are: that each of them is needed was seen by leaving it out.
What is drawn anew is the rest: the delays and losses of links, the clients' and brokers' own
chance, the requests that a rule meets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from kcluster.contract import Event

STEP_MS: Final = 500
"""The longest time between two moments, unless there are too many."""
MAX_MOMENTS: Final = 128
"""The most moments that are looked through, with odds at eight of them."""
PROGRAM_MOMENTS: Final = 16
PROGRAM_SEEDS: Final = 4


class Odds(Struct, frozen=True):
    """How many of `runs` runs show the finding if chance is drawn anew from `at_ms` on, in ms since
    the start of the scenario."""

    at_ms: int
    shown: int
    runs: int

    @property
    def are_sure(self) -> bool:
        """Whether all do."""
        return self.shown == self.runs


class Certainty(Struct, frozen=True):
    """How sure a finding was over time.  `others`: how many of `seeds` other seeds show it; `odds`:
    at the moments that were tried, oldest first, none if all other seeds show it; `sure_from_ms`:
    the earliest moment at which it was sure, None if it never was; `event`: one of that moment."""

    others: int
    seeds: int
    odds: tuple[Odds, ...] = ()
    sure_from_ms: int | None = None
    event: Event | None = None


def certainty_of(
    moments: Sequence[int],
    odds_at: Callable[[int], Odds],
    event_at: Callable[[int], Event | None],
    others: int,
    seeds: int,
) -> Certainty:
    """Look for the moment from which on a finding was sure.  `moments`: the moments that may have
    decided it, in their order, at least one; `others`, `seeds`: see Certainty."""
    if others == seeds:
        return Certainty(others, seeds, (), 0)
    last = odds_at(moments[-1])
    if not last.are_sure:
        return Certainty(others, seeds, (last,))
    tried = [last]
    low, high = 0, len(moments) - 1
    while low < high:
        middle = (low + high) // 2
        odds = odds_at(moments[middle])
        tried.append(odds)
        if odds.are_sure:
            high = middle
        else:
            low = middle + 1
    tried.sort(key=lambda odds: odds.at_ms)
    return Certainty(others, seeds, tuple(tried), moments[high], event_at(moments[high]))


def certainty_of_programs(count: Callable[[int | None], int], lasts_ms: int) -> Certainty:
    """From which moment on a run of users' programs, which takes long, was sure to fail.  `count`:
    how many of PROGRAM_SEEDS runs fail in the same way if chance is drawn anew from a moment on,
    or, without one, with other seeds; `lasts_ms`: how long the run lasts."""

    def odds_at(at_ms: int) -> Odds:
        return Odds(at_ms, count(at_ms), PROGRAM_SEEDS)

    moments = moments_of((), lasts_ms, PROGRAM_MOMENTS)
    return certainty_of(moments, odds_at, lambda at_ms: None, count(None), PROGRAM_SEEDS)


def moments_of(times: Iterable[int], until_ms: int, most: int = MAX_MOMENTS) -> list[int]:
    """The moments to be tried, in their order: the start, these times, and enough between them, up
    to the end; at most so many of them, the last one among them."""
    between = range(0, until_ms, STEP_MS)
    moments = sorted({*between, *(at_ms for at_ms in times if 0 < at_ms < until_ms), until_ms})
    count = len(moments)
    if count <= most:
        return moments
    return [moments[(at + 1) * count // most - 1] for at in range(most)]
