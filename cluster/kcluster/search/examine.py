"""A finding, shrunk at once and described: from a trial to a report.

Owns: the runs that shrinking and describing need.  Never: searches (loop.py), writes a file.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from kcluster.scenario.language.scenario import Scenario
from kcluster.search.findings import SearchFinding
from kcluster.search.loop import FindingGroup
from kcluster.search.report import Report
from kcluster.search.schedule import Space, scenario_of
from kcluster.search.shrink import MAX_TRIES, Shrinker
from kcluster.search.trial import play

OTHER_SEEDS: Final = 5
"""The number of other seeds with which the shrunk scenario is run."""


def examine(space: Space, found: FindingGroup, tries: int = MAX_TRIES) -> Report:
    """Shrink the example of a group of findings, and describe it.  `tries`: the most runs."""
    schedule = found.example.schedule
    original = scenario_of(space, schedule)
    return examine_scenario(original, schedule.seed, found.finding, found.run, tries)


def examine_scenario(
    original: Scenario, seed: int, shown: SearchFinding, run: int = 1, tries: int = MAX_TRIES
) -> Report:
    """Shrink a scenario whose run with this seed shows a finding, and describe it.  `run`: the
    number of the run that showed it first."""

    def named(
        scenario: Scenario, at: int
    ) -> tuple[tuple[SearchFinding, ...], str, SearchFinding | None]:
        _, findings, outcome = play(scenario, at)
        same = [one for one in findings if one.name == shown.name]
        best = next((one for one in same if one.group == shown.group), None)
        return findings, outcome, best

    def shows(scenario: Scenario) -> bool:
        return named(scenario, seed)[2] is not None

    shrunk = Shrinker(original, shows, tries).run()
    findings, outcome, finding = named(shrunk.scenario, seed)
    assert finding is not None, "a run with one seed is always the same"
    seeds = [seed + 1 + at for at in range(OTHER_SEEDS)] if tries else []
    sure = sum(named(shrunk.scenario, each)[2] is not None for each in seeds)
    return Report(
        shown.group,
        finding,
        findings,
        structs.replace(shrunk.scenario, seed=seed),
        outcome,
        run,
        len(original.steps),
        shrunk.tries,
        shrunk.is_minimal,
        sure,
        len(seeds),
    )
