"""The search: which schedule is run next, and what is learnt from a run.

Owns: the corpus of schedules that reached something new, what was found, by its group.  Never: runs
a schedule (trial.py), reads a clock, writes a file.  Kafka: no counterpart; coverage-guided
fuzzing.

The caller asks for a batch of schedules, runs them in any order and number of processes, and gives
the trials back in the order of the batch.  So a search with one seed is the same on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

from msgspec import Struct, structs

from kcluster.search.findings import SearchFinding, lead
from kcluster.search.schedule import NO_SWARM, SWARMS, Schedule, Space, draw
from kcluster.search.trial import Trial
from kcluster.search.vary import Moments, go_on, vary

BATCH: Final = 8
"""The number of schedules that are chosen at once, whatever the number of processes."""
FRESH_SHARE: Final = 0.4
"""The share of schedules that are drawn anew, once there is a corpus."""
GO_ON_SHARE: Final = 0.6
"""The share of the others that go on from a rare state with other faults; the rest is varied."""
MAX_CORPUS: Final = 500


class Entry(Struct):
    """A schedule that reached signatures that were new.  `novel`: these, with the moments at which
    it reached them; `chosen`: how often it was varied."""

    schedule: Schedule
    moments: Moments
    novel: Mapping[int, int]
    chosen: int = 0


class SwarmYield(Struct):
    """What the runs of a swarm have reached.  `rarity`: the sum over their signatures, a rare one
    counting more; before the first run as much as one usual run."""

    runs: int = 0
    rarity: float = 0.0


class FindingGroup(Struct):
    """A group of equal findings.  `example`: the first trial; `run`: the number of that run, from
    1; `times`: how many runs had it."""

    finding: SearchFinding
    example: Trial
    run: int
    times: int = 1


class ScheduleSearch:
    """One search, in one or more spaces that take turns.  `guided`: whether schedules are varied;
    if not, each is drawn by chance."""

    def __init__(self, spaces: Sequence[Space], seed: int, *, guided: bool = True) -> None:
        self.spaces = spaces
        self.seed = seed
        self.guided = guided
        self.runs = 0
        self.chosen = 0
        """The number of schedules that were chosen."""
        self.seen: dict[int, int] = {}
        """The number of runs that reached a signature."""
        self.swarms = [SwarmYield() for _ in SWARMS]
        self.corpus: list[Entry] = []
        self.found: dict[str, FindingGroup] = {}

    def batch(self, size: int = BATCH) -> list[Schedule]:
        """The next schedules."""
        return [self._choose() for _ in range(size)]

    def _choose(self) -> Schedule:
        number, self.chosen = self.chosen, self.chosen + 1
        rng = Random(f"{self.seed}/search/{number}")
        if not self.guided:
            return self._draw(number, NO_SWARM)
        if not self.corpus or rng.random() < FRESH_SHARE:
            return self._draw(number, self._swarm(rng))
        entry = rng.choices(self.corpus, [self._weight(each) for each in self.corpus])[0]
        entry.chosen += 1
        space = self.space_of(entry.schedule)
        if rng.random() < GO_ON_SHARE and space.sources:
            signatures = list(entry.novel)
            rare = rng.choices(signatures, [1 / self.seen[each] for each in signatures])[0]
            return go_on(space, entry.schedule, entry.novel[rare], rng)
        return vary(space, entry.schedule, entry.moments, rng)

    def _draw(self, number: int, swarm: int) -> Schedule:
        turn = number % len(self.spaces)
        drawn = draw(self.spaces[turn], self.seed + number, swarm)
        return structs.replace(drawn, space=turn)

    def space_of(self, schedule: Schedule) -> Space:
        """The space of one of its schedules."""
        return self.spaces[schedule.space]

    def _swarm(self, rng: Random) -> int:
        """A swarm: one whose runs reach more is drawn more often."""
        runs = sum(one.runs for one in self.swarms)
        rarity = sum(one.rarity for one in self.swarms)
        usual = rarity / runs if rarity else 1.0  # runs that fail at once reach nothing
        weights = [((one.rarity + usual) / (one.runs + 1) / usual) ** 2 for one in self.swarms]
        return rng.choices(range(len(weights)), weights)[0]

    def _weight(self, entry: Entry) -> float:
        """How much a schedule is worth: rare signatures count more, and it tires."""
        return self._rarity(entry.novel) / (1 + entry.chosen)

    def _rarity(self, signatures: Iterable[int]) -> float:
        return sum(1 / self.seen[signature] for signature in signatures)

    def learn(self, trials: Iterable[Trial]) -> list[FindingGroup]:
        """Take the trials of a batch, in its order; returns the findings of new groups."""
        return [found for trial in trials if (found := self._learn(trial)) is not None]

    def _learn(self, trial: Trial) -> FindingGroup | None:
        self.runs += 1
        novel = {each: at for each, at in trial.signatures.items() if each not in self.seen}
        for signature in trial.signatures:
            self.seen[signature] = self.seen.get(signature, 0) + 1
        if trial.schedule.swarm != NO_SWARM:
            yield_ = self.swarms[trial.schedule.swarm]
            yield_.runs += 1
            yield_.rarity += self._rarity(trial.signatures)
        finding = lead(trial.findings)
        if finding is None:
            if novel:
                self.corpus.append(Entry(trial.schedule, trial.moments, novel))
                del self.corpus[:-MAX_CORPUS]
            return None
        known = self.found.get(finding.group)
        if known is not None:
            known.times += 1
            return None
        self.found[finding.group] = FindingGroup(finding, trial, self.runs)
        return self.found[finding.group]
