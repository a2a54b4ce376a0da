"""Variations of a schedule: steps are added, dropped, moved, aimed at other nodes, made longer.

Owns: one variation of a schedule, its continuation from a moment on, moments near events.  Never:
knows why a schedule is worth a variation (loop.py), runs one.  Kafka: no counterpart; the mutations
of fuzzers such as AFL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from msgspec import structs

from kcluster.search.schedule import (
    FIXED,
    MAX_SEED,
    SWARMS,
    FaultSource,
    Planned,
    Schedule,
    Space,
    admitted,
    anchored,
    fault,
    faults_of,
    freed,
    moment,
    pick_kind,
    redrawn,
    triggered,
    with_nodes,
)

Moments = Mapping[str, Sequence[int]]
"""The moments of a run's events, in ms after its start, by the events' kind."""

NEAR_MS: Final = (-50, -10, -2, 0, 1, 2, 5, 10, 20, 50, 100, 200, 400, 800)
"""The distances from an event at which a fault is put."""
NEAR_SHARE: Final = 0.7
"""The probability that a new moment is near an event."""
SHIFTS_MS: Final = (1, 5, 20, 100, 400, 1_500)
LENGTHS: Final = (0.1, 0.3, 0.7, 1.5, 3.0)
MAX_CHANGES: Final = 4


def vary(space: Space, parent: Schedule, moments: Moments, rng: Random) -> Schedule:
    """A variation of a schedule by one to four changes.  `moments`: the events of its run."""
    seed, steps = parent.seed, list(parent.steps)
    for _ in range(_count(rng)):
        change = rng.choices(_CHANGES, _WEIGHTS)[0] if space.sources else _redraw
        change(space, steps, moments, rng)
    if rng.random() < RESEED_SHARE:
        seed = rng.randrange(MAX_SEED)
    return Schedule(seed, tuple(admitted(space, steps)), space=parent.space)


def go_on(space: Space, parent: Schedule, from_ms: int, rng: Random) -> Schedule:
    """The schedule up to a moment, and other faults from then on: the run comes to the same state,
    and meets something else there.  `from_ms`: since the start of the run."""
    steps = [one for one in parent.steps if one.kind == FIXED or one.at_ms <= from_ms]
    swarm = rng.randrange(len(SWARMS))
    for source in space.sources:
        begins_ms = max(source.from_ms, from_ms + rng.choice(SOON_MS))
        steps += faults_of(space, source, SWARMS[swarm], begins_ms, rng)
    return Schedule(parent.seed, tuple(admitted(space, steps)), swarm, parent.space)


SOON_MS: Final = (0, 0, 20, 100, 300, 1_000)
"""The times after which a schedule goes on with other faults."""
RESEED_SHARE: Final = 0.2
"""The probability that a variation also gets another seed."""


def _count(rng: Random) -> int:
    count = 1
    while count < MAX_CHANGES and rng.random() < 0.5:
        count += 1
    return count


def _new_moment(source: FaultSource, moments: Moments, rng: Random) -> int:
    """A moment near an event, or any moment.  Each kind of event is as probable as any other, so
    that the rare ones are not lost among the frequent ones."""
    if moments and rng.random() < NEAR_SHARE:
        kind = rng.choice(sorted(moments))
        at_ms = rng.choice(moments[kind]) + rng.choice(NEAR_MS)
        if source.from_ms <= at_ms < source.until_ms:
            return at_ms
    return source.from_ms + rng.randrange(max(1, source.until_ms - source.from_ms))


def _source_of(space: Space, planned: Planned) -> FaultSource:
    return next(source for source in space.sources if source.index == planned.source)


def _any_fault(steps: Sequence[Planned], rng: Random) -> int | None:
    """The index of a drawn fault; None if there is none."""
    found = [at for at, planned in enumerate(steps) if planned.kind != FIXED]
    return rng.choice(found) if found else None


def _add(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    source = rng.choice(space.sources)
    kind = pick_kind(source.profile, range(len(source.profile.kinds)), rng)
    steps.append(fault(space, source, kind, _new_moment(source, moments, rng), rng))


def _drop(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    at = _any_fault(steps, rng)
    if at is not None:
        del steps[at]


def _move(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    at = _any_fault(steps, rng)
    if at is None:
        return
    planned = steps[at]
    source = _source_of(space, planned)
    if rng.random() < 0.5:
        at_ms = _new_moment(source, moments, rng)
    else:
        at_ms = planned.at_ms + rng.choice(SHIFTS_MS) * rng.choice((-1, 1))
        at_ms = min(max(source.from_ms, at_ms), source.until_ms - 1)
    steps[at] = triggered(planned, at=moment(at_ms))


def _retarget(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    at = _any_fault(steps, rng)
    if at is None:
        return
    planned = steps[at]
    chosen = _source_of(space, planned).profile.kinds[planned.kind]
    action = with_nodes(space, chosen.action, rng)
    steps[at] = structs.replace(planned, step=structs.replace(planned.step, action=action))


def _exchange(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    """Put another kind of fault at the moment of one."""
    at = _any_fault(steps, rng)
    if at is None:
        return
    planned = steps[at]
    source = _source_of(space, planned)
    kind = pick_kind(source.profile, range(len(source.profile.kinds)), rng)
    steps[at] = fault(space, source, kind, planned.at_ms, rng)


def _lengthen(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    """Make a fault shorter or longer; or let it end near an event."""
    at = _any_fault(steps, rng)
    if at is None or not steps[at].lasts_ms:
        return
    planned = steps[at]
    lasts_ms = round(planned.lasts_ms * rng.choice(LENGTHS))
    if rng.random() < 0.5:
        lasts_ms = _new_moment(_source_of(space, planned), moments, rng) - planned.at_ms
    options = structs.replace(planned.step.options, for_=moment(max(1, lasts_ms)))
    steps[at] = structs.replace(planned, step=structs.replace(planned.step, options=options))


def _anchor(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    """Let a fault wait for a moment inside a broker, or for none any more."""
    at = _any_fault(steps, rng)
    if at is not None:
        planned = steps[at]
        steps[at] = freed(planned) if planned.waits_ms else anchored(space, planned, rng)


def _redraw(space: Space, steps: list[Planned], moments: Moments, rng: Random) -> None:
    """Draw a step of the scenario itself again."""
    found = [at for at, planned in enumerate(steps) if planned.kind == FIXED]
    if found:
        at = rng.choice(found)
        steps[at] = redrawn(space, steps[at], rng)


_Change = Callable[[Space, list[Planned], Moments, Random], None]
_CHANGES: Final[tuple[_Change, ...]] = (
    _add, _drop, _move, _retarget, _exchange, _lengthen, _anchor, _redraw,
)  # fmt: skip
_WEIGHTS: Final = (4, 2, 4, 2, 2, 2, 2, 1)
