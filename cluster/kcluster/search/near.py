"""Faults near moments in the life of users' programs, drawn by a seed.

Owns: ProgramLife, what a run without faults showed; the faults that are drawn from it.  Never: runs
a program (testing/, cli/simulate/ do), shrinks (shrink.py).  Kafka: no counterpart.

A bug of a program shows itself when it dies, or loses its broker, within a few milliseconds: after
it has committed and before it has worked.  Moments that are drawn uniformly miss this nearly
always, so each fault follows a moment that the run without faults had (operations/moments.py).
Rates and lengths are drawn once for a run, as a swarm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from msgspec import Struct, structs

from kcluster.actions.base import Action
from kcluster.actions.brokers import KillBrokers, PauseBrokers
from kcluster.actions.groups import Evict, Rebalance
from kcluster.actions.network import Isolate
from kcluster.actions.stalls import StallProgram, apps_of
from kcluster.operations.conditions import condition
from kcluster.operations.moments import (
    ACK,
    CLIENTS_MOMENTS,
    COMMIT,
    DELIVERY,
    EXECUTION,
    PRODUCE,
    REBALANCE,
    TRANSACTION,
    NthMoment,
    SeenMoment,
)
from kcluster.operations.targets import Targets, targets
from kcluster.scenario.language.model import Step, StepOptions, Trigger
from kcluster.scenario.language.words import MomentRange

EVENTS_NEAR: Final = ("leader_elected", "group_member_joined")
"""The events near which faults are put, besides the moments of clients."""
SECOND_FAULT_SHARE: Final = 0.3
STALLS_SHARE: Final = 0.5
DELAYS_MS: Final = (0, 5, 50, 500, 3_000)
"""The longest times after a moment; one is drawn for each fault."""
LINES_SHARE: Final = 0.4
"""The share of other faults that come when an app is about to execute a line of its own code.  Each
line is as probable as any other one, however long the app waits there."""
DELAYS_AT_LINES_MS: Final = (0, 0, 5, 50)
DOWN_MS: Final = (200, 1_000, 5_000)
"""The times after which a killed program is started again."""
FAULT_MS: Final = (2_000, 12_000, 20_000)
"""The times after which another fault ends: shorter and longer than Kafka's time-outs."""
AWAY_MS: Final = 20_000
"""How long some killed programs are away: for longer than the sessions that most programs have."""
AWAY_SHARE: Final = 0.25
PAUSES_SHARE: Final = 0.25
"""The share of the deaths of apps near moments that become pauses."""
STALLED_LINES: Final = (0.02, 0.1, 0.3)
STALLS_MS: Final = (5, 20, 200)


_WEIGHTS: Final = {COMMIT: 4, DELIVERY: 3, ACK: 2, PRODUCE: 2, REBALANCE: 2, TRANSACTION: 4}
"""How probable a kind of moment is; 1 for others."""


class ProgramLife(Struct, frozen=True):
    """The run of programs without faults.  `apps`: the programs that may be killed; `moments`: the
    number of moments by (kind, subject), sorted; `partitions`: of the user's topics; `groups`:
    consumer groups; `lasts_ms`: how long it took; `lines`: how often an app executed a line of its
    own code, by (app, line); `tests_lines`: those that threads of the test executed."""

    apps: tuple[str, ...]
    moments: tuple[tuple[str, str, int], ...]
    partitions: tuple[str, ...]
    groups: tuple[str, ...]
    lasts_ms: int
    lines: tuple[tuple[str, str, int], ...] = ()
    tests_lines: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The lines at which threads can stand still, with their apps; "" for the test."""
        of_apps = [(app, line) for app, line, _ in self.lines]
        return (*of_apps, *(("", line) for line in self.tests_lines))


class LifeCount:
    """Counts the moments of a run, from now on.  `now_ms`: its clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._now_ms = now_ms
        self._began_ms = now_ms()

    def add(self, seen: SeenMoment) -> None:
        """Count a moment."""
        if seen.kind in CLIENTS_MOMENTS or seen.kind in EVENTS_NEAR:
            key = seen.kind, seen.names[0]
            self._counts[key] = self._counts.get(key, 0) + 1

    def add_line(self, app: str, line: str) -> bool:
        """Count a line of its code that an app is about to execute; nothing is to be done there."""
        self._lines[app, line] = self._lines.get((app, line), 0) + 1
        return False

    def life(self, apps: Sequence[str], partitions: Sequence[str]) -> ProgramLife:
        """What was counted; of lines, those of `apps`, which may be killed."""
        moments = tuple(sorted((*key, count) for key, count in self._counts.items()))
        groups = tuple(sorted({of for kind, of in self._counts if kind in (COMMIT, REBALANCE)}))
        lasts_ms = self._now_ms() - self._began_ms
        lines = tuple(sorted((*key, n) for key, n in self._lines.items() if key[0] in apps))
        of_test = tuple(sorted(line for app, line in self._lines if not app))
        parts = tuple(partitions)
        return ProgramLife(tuple(apps), moments, parts, groups, lasts_ms, lines, of_test)


def draw_near(life: ProgramLife, seed: int) -> tuple[Step, ...]:
    """The faults of one run.  With every second seed, an app dies when it is about to execute a
    line of its own code, at one line after the other; else there are one or two faults near
    moments, and perhaps stalls of threads from the beginning."""
    if life.lines and seed % 2:
        return (_death_at_line(life, seed),)
    return _draw(life, seed, _near)


def draw_plain(life: ProgramLife, seed: int) -> tuple[Step, ...]:
    """Like draw_near, but the faults are at times, each as probable as any other: what chance
    finds, for a comparison."""
    return tuple(sorted(_draw(life, seed, _anywhen), key=_begins_ms))


def _draw(
    life: ProgramLife, seed: int, trigger: Callable[[ProgramLife, Action, Random], Trigger]
) -> tuple[Step, ...]:
    rng = Random(f"{seed}/near")
    steps: list[Step] = []
    if rng.random() < STALLS_SHARE:
        app = rng.choice(life.apps) if life.apps else "all"
        stall = StallProgram(app, rng.choice(STALLED_LINES), rng.choice(STALLS_MS))
        steps.append(Step("stall", stall, options=StepOptions(if_possible=True)))
    kinds = [kind for kind in _KINDS if kind.is_possible(life)]
    if not life.moments or not kinds:
        return tuple(steps)
    for _ in range(1 + (rng.random() < SECOND_FAULT_SHARE)):
        kind = rng.choices(kinds, [each.weight for each in kinds])[0]
        lasts_ms = rng.choice(kind.lasts_ms) if kind.lasts_ms else None
        action = kind.make(life, rng)
        lasts = None if lasts_ms is None else MomentRange(lasts_ms, lasts_ms)
        options = StepOptions(for_=lasts, if_possible=True)
        steps.append(Step(action.VERB, action, trigger(life, action, rng), options))
    away = Random(f"{seed}/away")
    return tuple(_longer(_paused(step, away), away) for step in steps)


def _paused(step: Step, rng: Random) -> Step:
    """The step, or one by which the app that it kills stands still instead.  All other draws stay
    as they are."""
    if not _is_death_of_app(step) or rng.random() >= PAUSES_SHARE:
        return step
    lasts_ms = rng.choice(FAULT_MS)
    action = PauseBrokers(targets(f"app {apps_of(step.action)[0]}"))
    options = structs.replace(step.options, for_=MomentRange(lasts_ms, lasts_ms))
    return Step(action.VERB, action, step.trigger, options)


def _longer(step: Step, rng: Random) -> Step:
    """The step, or one by which the app that it kills is dead for longer than its session."""
    if not _is_death_of_app(step) or rng.random() >= AWAY_SHARE:
        return step
    options = structs.replace(step.options, for_=MomentRange(AWAY_MS, AWAY_MS))
    return structs.replace(step, options=options)


def _is_death_of_app(step: Step) -> bool:
    return isinstance(step.action, KillBrokers) and bool(apps_of(step.action))


def _death_at_line(life: ProgramLife, seed: int) -> Step:
    rng = Random(f"{seed}/lines")
    app, line, count = life.lines[seed // 2 % len(life.lines)]
    moment = NthMoment(1 + rng.randrange(count), EXECUTION, line)
    down_ms = rng.choice(DOWN_MS)
    options = StepOptions(for_=MomentRange(down_ms, down_ms), if_possible=True)
    action = KillBrokers(targets(f"app {app}"))
    step = Step(action.VERB, action, Trigger(when=condition(str(moment))), options)
    return _longer(step, Random(f"{seed}/away"))


def _near(life: ProgramLife, action: Action, rng: Random) -> Trigger:
    apps = apps_of(action)
    lines = [each for each in life.lines if not apps or each[0] in apps]
    if lines and rng.random() < LINES_SHARE:
        _, line, count = rng.choice(lines)
        moment = NthMoment(1 + rng.randrange(count), EXECUTION, line)
        delay_ms = rng.randrange(rng.choice(DELAYS_AT_LINES_MS) + 1)
    else:
        moment = _moment(life, rng)
        delay_ms = rng.randrange(rng.choice(DELAYS_MS) + 1)
    delay = MomentRange(delay_ms, delay_ms) if delay_ms else None
    return Trigger(when=condition(str(moment)), delay=delay)


def _anywhen(life: ProgramLife, action: Action, rng: Random) -> Trigger:
    at_ms = rng.randrange(life.lasts_ms + 1)
    return Trigger(at=MomentRange(at_ms, at_ms))


def _begins_ms(step: Step) -> int:
    return 0 if step.trigger.at is None else step.trigger.at.low_ms


def _moment(life: ProgramLife, rng: Random) -> NthMoment:
    """The weights are those of kinds, so rare moments are not lost among frequent ones."""
    kinds = sorted({kind for kind, _, _ in life.moments})
    kind = rng.choices(kinds, [_WEIGHTS.get(each, 1) for each in kinds])[0]
    of, count = rng.choice([(of, count) for each, of, count in life.moments if each == kind])
    return NthMoment(1 + rng.randrange(count), kind, of)


class _FaultNear(Struct, frozen=True):
    """A kind of faults: its weight, how long it lasts, what it needs, how it is made."""

    weight: int
    lasts_ms: tuple[int, ...]
    is_possible: Callable[[ProgramLife], bool]
    make: Callable[[ProgramLife, Random], Action]


def _leader(life: ProgramLife, rng: Random) -> Targets:
    return targets(f"leader({rng.choice(life.partitions)})")


def _has_apps(life: ProgramLife) -> bool:
    return bool(life.apps)


def _has_groups(life: ProgramLife) -> bool:
    return bool(life.groups)


def _has_partitions(life: ProgramLife) -> bool:
    return bool(life.partitions)


_KINDS: Final = (
    _FaultNear(
        6,
        DOWN_MS,
        _has_apps,
        lambda life, rng: KillBrokers(targets(f"app {rng.choice(life.apps)}")),
    ),
    _FaultNear(2, FAULT_MS, _has_partitions, lambda life, rng: KillBrokers(_leader(life, rng))),
    _FaultNear(1, FAULT_MS, _has_partitions, lambda life, rng: PauseBrokers(_leader(life, rng))),
    _FaultNear(1, FAULT_MS, _has_partitions, lambda life, rng: Isolate(_leader(life, rng))),
    _FaultNear(2, (), _has_groups, lambda life, rng: Rebalance(rng.choice(life.groups))),
    _FaultNear(2, (), _has_groups, lambda life, rng: Evict(rng.choice(life.groups), "all")),
)
