"""Schedules: the steps of a run as values, drawn by a seed from what a scenario leaves open.

Owns: Space, what may be drawn for a scenario; Schedule, one choice of it; the scenario that plays
it.  Never: varies a schedule (vary.py), runs one (trial.py).  Kafka: no counterpart; Jepsen's
generators, and the swarm testing of Groce and others.

Every step of a schedule has its moment and its nodes, so the scenario of a schedule can be written
to a file that repeats the run.  A fault whose target exists only in the run, such as
`leader(orders-0)`, keeps its word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final, TypeVar

from msgspec import Struct, structs

from kcluster.actions.base import Action
from kcluster.config.files.problems import Place
from kcluster.contract import CONTROLLER_ID
from kcluster.operations.conditions import SETTLED, MomentCondition
from kcluster.operations.targets import (
    AnyTarget,
    BrokerTarget,
    ClientsTarget,
    ClientTarget,
    Target,
    Targets,
)
from kcluster.scenario.language.model import Step, StepOptions, Trigger
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.words import MomentRange
from kcluster.scenario.play.nemesis import Profile
from kcluster.scenario.play.workload import client_names
from kcluster.scenario.random_faults import RandomFaults
from kcluster.search.widened import moments_inside, with_clients, with_node_rules

FIXED: Final = -1
"""The kind of a step that the scenario itself has."""
PACES: Final = (0.5, 1.0, 1.0, 2.0)
"""The factors by which a swarm changes the times between faults."""
LENGTHS: Final = (0.3, 1.0, 1.0, 2.0)
"""The factors by which a swarm changes the durations of faults."""
PACES_OF_SWARMS: Final = (0.2, 0.4, 0.7, 1.0, 1.6)
LENGTHS_OF_SWARMS: Final = (0.15, 0.4, 1.0, 2.0)
"""The factors of the swarms among which a guided search learns to choose."""
ANCHORED_SHARE: Final = 0.15
"""The probability that a drawn fault waits for a moment inside a broker."""
ANCHOR_WAIT_MS: Final = 500
SWARM_SHARE: Final = 0.5
"""The probability that a swarm leaves kinds of faults out."""
MAX_SEED: Final = 2**31


class Swarm(Struct, frozen=True):
    """How faults are drawn: the factors of the times between them, and of their durations."""

    pace: float
    length: float


SWARMS: Final = tuple(
    Swarm(pace, length) for pace in PACES_OF_SWARMS for length in LENGTHS_OF_SWARMS
)
NO_SWARM: Final = -1
_Node = TypeVar("_Node", int, str)


class FaultSource(Struct, frozen=True):
    """Random faults of a scenario: their profile, the time in which they begin, and the index of
    their step in the scenario."""

    profile: Profile
    from_ms: int
    until_ms: int
    index: int


class Space(Struct, frozen=True):
    """A scenario, and what may be drawn for it.  `brokers`, `clients`: the ids and names from which
    `any broker` and `any client` are drawn; `moments`: those inside brokers for which a fault may
    wait."""

    scenario: Scenario
    sources: tuple[FaultSource, ...]
    brokers: tuple[int, ...]
    clients: tuple[str, ...] = ()
    moments: tuple[MomentCondition, ...] = ()


class Planned(Struct, frozen=True):
    """A step of a schedule.  `source`: the index of the scenario's step from which it was drawn;
    `kind`: the index of its kind in that profile, or FIXED."""

    step: Step
    source: int
    kind: int = FIXED

    @property
    def at_ms(self) -> int:
        """Its moment; 0 for a step of the scenario that only waits for a condition."""
        at = self.step.trigger.at
        return 0 if at is None else at.low_ms

    @property
    def lasts_ms(self) -> int:
        """The time until it is undone; 0 for never."""
        return self.step.options.undone_after_ms or 0

    @property
    def waits_ms(self) -> int:
        """The longest time for which it waits after its moment, and holds up the steps after it."""
        return self.step.trigger.within_ms or 0


class Schedule(Struct, frozen=True):
    """The steps of one run, in the order of the file.  `seed`: draws what is not a step, such as
    the jitter of links.  `swarm`: the index in SWARMS with which it was drawn, or NO_SWARM.
    `space`: the index of its space among those of the search."""

    seed: int
    steps: tuple[Planned, ...]
    swarm: int = NO_SWARM
    space: int = 0


def space_of(scenario: Scenario, profile: Profile) -> Space:
    """What may be drawn for a scenario.  `profile`: the faults of a scenario that leaves nothing
    open by itself."""
    sources = [
        _source(scenario, index, step)
        for index, step in enumerate(scenario.steps)
        if isinstance(step.action, RandomFaults)
    ]
    if not sources and not any(step.is_drawn for step in scenario.steps):
        sources = [FaultSource(profile, 0, scenario.duration_ms, len(scenario.steps))]
    workload = scenario.workload
    clients = tuple(client_names(workload))
    if clients:
        sources = [structs.replace(one, profile=with_clients(one.profile)) for one in sources]
    sources = [
        structs.replace(one, profile=with_node_rules(one.profile, workload)) for one in sources
    ]
    brokers = tuple(spec.id for spec in scenario.topology.brokers)
    space = Space(scenario, (), brokers, clients, moments_inside(workload))
    possible = (structs.replace(one, profile=_possible(space, one.profile)) for one in sources)
    return structs.replace(space, sources=tuple(one for one in possible if one.profile.kinds))


def _possible(space: Space, profile: Profile) -> Profile:
    """A profile without the faults for which there are too few nodes: a lone broker cannot be cut
    off from another one."""
    kinds = tuple(kind for kind in profile.kinds if _has_nodes(space, kind.action))
    return structs.replace(profile, kinds=kinds)


def _has_nodes(space: Space, action: Action) -> bool:
    drawn = with_nodes(space, action, Random(0))
    names = action.__struct_fields__
    return all(getattr(drawn, name) or not getattr(action, name) for name in names)


def _source(scenario: Scenario, index: int, step: Step) -> FaultSource:
    assert isinstance(step.action, RandomFaults)
    at, lasts = step.trigger.at, step.options.undone_after_ms
    from_ms = 0 if at is None else at.low_ms
    until_ms = scenario.duration_ms if lasts is None else from_ms + lasts
    return FaultSource(step.action.profile, from_ms, until_ms, index)


# ------------------------------------------------------------------------------------- drawing


def draw(space: Space, seed: int, swarm: int = NO_SWARM) -> Schedule:
    """The schedule of a seed.  A swarm: rates, durations and kinds are drawn once, then faults.
    `swarm`: an index in SWARMS; NO_SWARM: rates and durations are drawn by chance."""
    rng = Random(f"{seed}/schedule")
    steps: list[Planned] = []
    for index, step in enumerate(space.scenario.steps):
        if not isinstance(step.action, RandomFaults):
            steps.append(Planned(_fixed(space, step, rng), index))
    for source in space.sources:
        by = Swarm(rng.choice(PACES), rng.choice(LENGTHS)) if swarm < 0 else SWARMS[swarm]
        steps += faults_of(space, source, by, source.from_ms, rng)
    return Schedule(seed, tuple(admitted(space, steps)), swarm)


def faults_of(
    space: Space, source: FaultSource, swarm: Swarm, from_ms: int, rng: Random
) -> Iterator[Planned]:
    """Faults from a moment on, to the end of their time.  A swarm may leave kinds out."""
    profile = source.profile
    kinds = list(range(len(profile.kinds)))
    if rng.random() < SWARM_SHARE:
        kept = [kind for kind in kinds if rng.random() < 0.5]
        kinds = kept if len(kept) >= 2 else kinds
    at_ms = from_ms
    while True:
        at_ms += max(1, round(pick(profile.every, rng) * swarm.pace))
        if at_ms >= source.until_ms:
            return
        kind = pick_kind(profile, kinds, rng)
        drawn = fault(space, source, kind, at_ms, rng, swarm.length)
        yield anchored(space, drawn, rng) if rng.random() < ANCHORED_SHARE else drawn


def pick_kind(profile: Profile, kinds: Sequence[int], rng: Random) -> int:
    """One of these kinds of a profile, by their weights."""
    return rng.choices(kinds, [profile.kinds[kind].weight for kind in kinds])[0]


def fault(
    space: Space, source: FaultSource, kind: int, at_ms: int, rng: Random, length: float = 1.0
) -> Planned:
    """A fault of this kind at this moment; its nodes and its duration are drawn."""
    profile = source.profile
    chosen = profile.kinds[kind]
    action = with_nodes(space, chosen.action, rng)
    lasts_ms = None
    if chosen.action.CAN_BE_UNDONE:
        lasts_ms = max(1, round(pick(chosen.repair or profile.repair, rng) * length))
    step = Step(
        chosen.verb,
        action,
        Trigger(at=moment(at_ms)),
        StepOptions(
            for_=None if lasts_ms is None else moment(lasts_ms),
            only_if=chosen.only_if or (SETTLED if profile.waits_for_sync else None),
            if_possible=True,
        ),
    )
    return Planned(step, source.index, kind)


def anchored(space: Space, planned: Planned, rng: Random) -> Planned:
    """A fault that waits, from its moment on, for a moment inside a broker; it is skipped if that
    does not come soon."""
    if not space.moments:
        return planned
    return triggered(planned, when=rng.choice(space.moments), within_ms=ANCHOR_WAIT_MS)


def freed(planned: Planned) -> Planned:
    """A fault that waits for no moment inside a broker."""
    return triggered(planned, when=None, within_ms=None)


def triggered(planned: Planned, **changes: object) -> Planned:
    """A fault with changes of its trigger, by the names of Trigger's fields."""
    trigger = structs.replace(planned.step.trigger, **changes)
    return structs.replace(planned, step=structs.replace(planned.step, trigger=trigger))


def _fixed(space: Space, step: Step, rng: Random) -> Step:
    """A step of the scenario, with its moments and nodes drawn.  A repeated step is drawn in the
    run."""
    trigger, options = step.trigger, step.options
    return structs.replace(
        step,
        action=step.action if trigger.every else with_nodes(space, step.action, rng),
        trigger=structs.replace(
            trigger, at=_drawn(trigger.at, rng), after=_drawn(trigger.after, rng)
        ),
        options=structs.replace(
            options, for_=_drawn(options.for_, rng), if_possible=step.may_be_skipped
        ),
        place=Place(0, 0),
        path="",
    )


def _drawn(wanted: MomentRange | None, rng: Random) -> MomentRange | None:
    return None if wanted is None else moment(pick(wanted, rng))


def redrawn(space: Space, planned: Planned, rng: Random) -> Planned:
    """A step of the scenario with other moments and nodes, within what the scenario allows."""
    return Planned(_fixed(space, space.scenario.steps[planned.source], rng), planned.source)


def moment(at_ms: int) -> MomentRange:
    """A moment that nothing draws."""
    return MomentRange(at_ms, at_ms)


def pick(wanted: MomentRange, rng: Random) -> int:
    """A time in a range."""
    return wanted.low_ms + rng.randrange(wanted.high_ms - wanted.low_ms + 1)


def with_nodes(space: Space, action: Action, rng: Random) -> Action:
    """An action whose `any ...` is a drawn broker, or a drawn client of `any client`: the same one
    never twice in an action.  A broker that is not among the meant ones makes the step impossible,
    so it is skipped."""
    changes: dict[str, Targets] = {}
    brokers, clients = list(space.brokers), list(space.clients)
    for name in action.__struct_fields__:
        value = getattr(action, name)
        if isinstance(value, tuple) and any(isinstance(each, AnyTarget) for each in value):
            changes[name] = tuple(_nodes(value, brokers, clients, rng))
    return structs.replace(action, **changes) if changes else action


def _nodes(
    wanted: Targets, brokers: list[int], clients: list[str], rng: Random
) -> Iterator[Target]:
    for each in wanted:
        if isinstance(each, AnyTarget) and _is_of_clients(each):
            for name in _taken(clients, each.count, rng):
                yield ClientTarget(client=name, shown=f"client {name}")
        elif isinstance(each, AnyTarget) and not _is_of_others(each):
            for broker in _taken(brokers, each.count, rng):
                yield BrokerTarget(broker_id=broker, shown=str(broker))
        else:
            yield each


def _taken(left: list[_Node], count: int, rng: Random) -> Iterator[_Node]:
    """Draw nodes from those left, each once."""
    for _ in range(min(count, len(left))):
        yield left.pop(rng.randrange(len(left)))


def _is_of_clients(target: AnyTarget) -> bool:
    return all(isinstance(each, ClientsTarget) for each in target.among)


def _is_of_others(target: AnyTarget) -> bool:
    """Whether the drawn nodes may be other ones than brokers: clients, or the controller."""
    return any(
        each.is_controller or "client" in each.shown or str(CONTROLLER_ID) == each.shown
        for each in target.among
    )


# -------------------------------------------------------------------------------------- bounds


def admitted(space: Space, steps: Sequence[Planned]) -> list[Planned]:
    """The steps within the bounds of their profiles: at most `at_once` are active at a time.  A
    later fault gives way.  The scenario's own steps stay in their order, each fault at its
    moment."""
    limits = {source.index: source.profile.at_once for source in space.sources}
    active: dict[int, list[int]] = {index: [] for index in limits}
    admitted_: list[Planned] = []
    held_until_ms = 0
    for planned in in_order(steps):
        if planned.kind != FIXED:
            ends = active[planned.source]
            ends[:] = [end for end in ends if end > planned.at_ms]
            if len(ends) >= limits[planned.source]:
                continue
            held_until_ms = max(held_until_ms, planned.at_ms)
            if held_until_ms + planned.waits_ms >= space.scenario.duration_ms:
                planned = freed(planned)
            held_until_ms += planned.waits_ms
            if planned.lasts_ms:
                ends.append(held_until_ms + planned.lasts_ms)
        admitted_.append(planned)
    return admitted_


def in_order(steps: Sequence[Planned]) -> list[Planned]:
    """The steps by time.  Steps of the scenario keep their order: a step that waits for a condition
    stays behind the one before it."""
    fixed = [step for step in steps if step.kind == FIXED]
    fixed.sort(key=lambda step: step.source)
    ordered: list[tuple[int, int, Planned]] = []
    at_ms = 0
    for planned in fixed:
        at_ms = max(at_ms, planned.at_ms)
        ordered.append((at_ms, 0, planned))
    ordered += [(step.at_ms, 1, step) for step in steps if step.kind != FIXED]
    ordered.sort(key=lambda entry: entry[:2])
    return [planned for _, _, planned in ordered]


def scenario_of(space: Space, schedule: Schedule) -> Scenario:
    """The scenario that plays a schedule: the same whatever its own seed draws of steps."""
    steps: list[Step] = []
    last_ms = 0
    for planned in schedule.steps:
        step, at = planned.step, planned.step.trigger.at
        if at is not None and at.low_ms < last_ms:  # it waits for the step before it anyway
            step = structs.replace(step, trigger=structs.replace(step.trigger, at=moment(last_ms)))
        last_ms = max(last_ms, planned.at_ms)
        steps.append(step)
    return structs.replace(space.scenario, steps=tuple(steps), seed=schedule.seed)
