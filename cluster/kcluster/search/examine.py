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
    name = found.finding.name
    seed = found.example.schedule.seed
    original = scenario_of(space, found.example.schedule)

    def named(
        scenario: Scenario, at: int
    ) -> tuple[tuple[SearchFinding, ...], str, SearchFinding | None]:
        _, findings, outcome = play(scenario, at)
        same = [one for one in findings if one.name == name]
        best = next((one for one in same if one.group == found.finding.group), None)
        return findings, outcome, best

    def shows(scenario: Scenario) -> bool:
        return named(scenario, seed)[2] is not None

    shrunk = Shrinker(original, shows, tries).run()
    findings, outcome, finding = named(shrunk.scenario, seed)
    assert finding is not None, "a run with one seed is always the same"
    seeds = [seed + 1 + at for at in range(OTHER_SEEDS)] if tries else []
    sure = sum(named(shrunk.scenario, each)[2] is not None for each in seeds)
    return Report(
        found.finding.group,
        finding,
        findings,
        structs.replace(shrunk.scenario, seed=seed),
        outcome,
        found.run,
        len(original.steps),
        shrunk.tries,
        shrunk.is_minimal,
        sure,
        len(seeds),
    )
