"""Shrinking: the smallest scenario found that still shows a finding.

Owns: the smaller candidates of a scenario, in their order, and the descent through them.  Never:
runs a scenario itself (the caller's `shows` does), words anything.  Kafka: no counterpart; delta
debugging (Zeller), and the shrinking of Hypothesis.

Steps go first, then clients, then time; numbers become rounder.  Stalls of a program's threads at
any line become stalls at a single one.  A candidate is kept if its run
shows a finding of the same name.  So at the end no single step can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct, structs

from kcluster.actions.stalls import ALL_APPS, StallProgram
from kcluster.scenario.language.model import Step, WorkloadSpec
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.words import MomentRange

Shows = Callable[[Scenario], bool]
"""Whether a run of the scenario shows the finding."""

MAX_TRIES: Final = 250
ROUND_MS: Final = (5_000, 1_000, 500, 100, 50, 10)
"""The grids on which times are tried, the coarsest first."""
MIN_DURATION_MS: Final = 1_000
LOW_RATE_PER_S: Final = 5.0

T = TypeVar("T")


class Shrunk(Struct, frozen=True):
    """The result.  `tries`: the number of runs that it took; `is_minimal`: whether the run was
    seen to pass without each single step."""

    scenario: Scenario
    tries: int
    is_minimal: bool


class _Exhausted(Exception):
    """The tries are used up."""


class Shrinker:
    """One descent.  `shows` is asked at most `tries` times.  `places`: if the clients are the
    user's programs, the lines of their code with the name of each program ("" for a test), None
    for other clients; of programs only steps can be left out, made rounder, or put at a line."""

    def __init__(
        self,
        scenario: Scenario,
        shows: Shows,
        tries: int = MAX_TRIES,
        *,
        places: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        self.scenario = scenario
        self.tries = 0
        self._shows = shows
        self._limit = tries
        self._places = places
        self._known: set[bytes] = set()

    def run(self) -> Shrunk:
        """Shrink until nothing can be left out, or the tries are used up."""
        is_minimal = False
        try:
            while True:
                before = self.scenario
                self._fewer_steps()
                is_minimal = True
                if self._places is None:
                    self._fewer_clients()
                    self._shorter()
                self._rounder()
                self._stalls_at_one_line(self._places or ())
                if self.scenario == before:
                    break
                is_minimal = False
        except _Exhausted:
            pass
        return Shrunk(self.scenario, self.tries, is_minimal)

    def _try(self, candidate: Scenario) -> bool:
        """Keep a candidate that shows the finding; returns whether it was kept."""
        if candidate == self.scenario:
            return False
        key = repr((candidate.steps, candidate.workload, candidate.duration_ms)).encode()
        if key in self._known:
            return False
        if self.tries >= self._limit:
            raise _Exhausted
        self._known.add(key)
        self.tries += 1
        if not self._shows(candidate):
            return False
        self.scenario = candidate
        return True

    def _fewer_steps(self) -> None:
        """Leave out halves, quarters, ... and at last single steps."""
        size = max(1, len(self.scenario.steps) // 2)
        while True:
            at = 0
            while at < len(self.scenario.steps):
                steps = self.scenario.steps
                left = (*steps[:at], *steps[at + size :])
                if not self._try(structs.replace(self.scenario, steps=left)):
                    at += size
            if size == 1:
                return
            size = max(1, size // 2)

    def _fewer_clients(self) -> None:
        for candidate_of in (_without_client, _with_fewer_members, _with_lower_rates):
            at = 0
            while (candidate := candidate_of(self.scenario.workload, at)) is not None:
                if not self._try(structs.replace(self.scenario, workload=candidate)):
                    at += 1

    def _shorter(self) -> None:
        """End the run soon after its last step."""
        last_ms = max((_end_of(step) for step in self.scenario.steps), default=0)
        for spare_ms in (0, 1_000, 3_000, 6_000):
            duration_ms = max(MIN_DURATION_MS, -(-(last_ms + spare_ms) // 1_000) * 1_000)
            is_shorter = duration_ms < self.scenario.duration_ms
            if is_shorter and self._try(structs.replace(self.scenario, duration_ms=duration_ms)):
                return

    def _rounder(self) -> None:
        """Give each step a rounder moment and a rounder duration."""
        for at in range(len(self.scenario.steps)):
            for candidate in _rounder_times(self.scenario.steps[at]):
                steps = list(self.scenario.steps)
                steps[at] = candidate
                if _is_in_order(steps) and self._try(
                    structs.replace(self.scenario, steps=tuple(steps))
                ):
                    break

    def _stalls_at_one_line(self, places: Sequence[tuple[str, str]]) -> None:
        """Let threads that stand still at any line do so at a single one, each time."""
        for at, step in enumerate(self.scenario.steps):
            stall = step.action
            if not isinstance(stall, StallProgram) or stall.line is not None:
                continue
            of_app = [line for app, line in places if stall.app in (ALL_APPS, app)]
            for line in dict.fromkeys(of_app):
                steps = list(self.scenario.steps)
                steps[at] = structs.replace(
                    step, action=structs.replace(stall, share=1.0, line=line)
                )
                if self._try(structs.replace(self.scenario, steps=tuple(steps))):
                    break


def _end_of(step: Step) -> int:
    at = step.trigger.at
    return (0 if at is None else at.high_ms) + (step.options.undone_after_ms or 0)


def _is_in_order(steps: list[Step]) -> bool:
    moments = [step.trigger.at.low_ms for step in steps if step.trigger.at is not None]
    return moments == sorted(moments)


def _rounder_times(step: Step) -> Iterator[Step]:
    """The step with both times on a grid, then with one of them; for a step near a moment of
    clients, without its delay, then with a rounder one."""
    at, lasts, delay = step.trigger.at, step.options.for_, step.trigger.delay
    if delay is not None:
        for rounder in (None, *(_on_grid(delay, grid_ms) for grid_ms in ROUND_MS)):
            yield structs.replace(step, trigger=structs.replace(step.trigger, delay=rounder))
    for grid_ms in ROUND_MS:
        rounder_at, rounder_lasts = _on_grid(at, grid_ms), _on_grid(lasts, grid_ms)
        yield _with_times(step, rounder_at, rounder_lasts)
    for grid_ms in ROUND_MS:
        yield _with_times(step, _on_grid(at, grid_ms), lasts)
        yield _with_times(step, at, _on_grid(lasts, grid_ms))


def _with_times(step: Step, at: MomentRange | None, lasts: MomentRange | None) -> Step:
    return structs.replace(
        step,
        trigger=structs.replace(step.trigger, at=at),
        options=structs.replace(step.options, for_=lasts),
    )


def _on_grid(time: MomentRange | None, grid_ms: int) -> MomentRange | None:
    """A fixed time on a grid, at least one line of it; a drawn time stays."""
    if time is None or time.is_drawn:
        return time
    rounded = max(1, round(time.low_ms / grid_ms)) * grid_ms
    return MomentRange(rounded, rounded)


# ----------------------------------------------------------------------------------- workloads


def _without_client(workload: WorkloadSpec, at: int) -> WorkloadSpec | None:
    """The workload without its client number `at`; None if there are fewer.  The last producer
    stays: a run without records proves nothing."""
    consumers, processors = workload.consumers, workload.processors
    if at < len(consumers):
        return structs.replace(workload, consumers=_without(consumers, at))
    at -= len(consumers)
    if at < len(processors):
        return structs.replace(workload, processors=_without(processors, at))
    at -= len(processors)
    if at < len(workload.producers) and len(workload.producers) > 1:
        return structs.replace(workload, producers=_without(workload.producers, at))
    return None


def _without(items: tuple[T, ...], at: int) -> tuple[T, ...]:
    return (*items[:at], *items[at + 1 :])


def _with_fewer_members(workload: WorkloadSpec, at: int) -> WorkloadSpec | None:
    """The workload with one member less in the consumer or processor number `at` that has more."""
    consumers = list(workload.consumers)
    for number, spec in enumerate(consumers):
        if spec.members > 1:
            if at == 0:
                consumers[number] = structs.replace(spec, members=spec.members - 1)
                return structs.replace(workload, consumers=tuple(consumers))
            at -= 1
    processors = list(workload.processors)
    for number, each in enumerate(processors):
        if each.members > 1:
            if at == 0:
                processors[number] = structs.replace(each, members=each.members - 1)
                return structs.replace(workload, processors=tuple(processors))
            at -= 1
    return None


def _with_lower_rates(workload: WorkloadSpec, at: int) -> WorkloadSpec | None:
    """The workload with half the rate of the producer number `at` that sends many records."""
    producers = list(workload.producers)
    for number, spec in enumerate(producers):
        if spec.rate_per_s >= 2 * LOW_RATE_PER_S:
            if at == 0:
                producers[number] = structs.replace(spec, rate_per_s=spec.rate_per_s // 2)
                return structs.replace(workload, producers=tuple(producers))
            at -= 1
    return None
