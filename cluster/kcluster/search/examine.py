"""A finding, shrunk at once and described: from a trial to a report.

Owns: the runs that shrinking and describing need.  Never: searches (loop.py), writes a file.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from kcluster.chance import Anew
from kcluster.scenario.language.scenario import Scenario
from kcluster.search.certainty import Certainty, Odds, certainty_of, moments_of
from kcluster.search.findings import SearchFinding
from kcluster.search.loop import FindingGroup
from kcluster.search.report import Report
from kcluster.search.schedule import Space, scenario_of
from kcluster.search.shrink import MAX_TRIES, Shrinker
from kcluster.search.trial import SearchRun, play

OTHER_SEEDS: Final = 8
"""The number of other seeds from which it is told how sure a finding was."""


def examine(
    space: Space, found: FindingGroup, tries: int = MAX_TRIES, *, other_seeds: int = OTHER_SEEDS
) -> Report:
    """Shrink the example of a group of findings, and describe it; see examine_scenario."""
    schedule = found.example.schedule
    original = scenario_of(space, schedule)
    return examine_scenario(
        original, schedule.seed, found.finding, found.run, tries, other_seeds=other_seeds
    )


def examine_scenario(
    original: Scenario,
    seed: int,
    shown: SearchFinding,
    run: int = 1,
    tries: int = MAX_TRIES,
    *,
    other_seeds: int = OTHER_SEEDS,
) -> Report:
    """Shrink a scenario whose run with this seed shows a finding, and describe it.  `run`: the
    number of the run that showed it first; `tries`: the most runs for shrinking; `other_seeds`: how
    many there are to tell how sure it was, 0 if that is not asked."""

    def shows(scenario: Scenario) -> bool:
        return _shown(shown, play(scenario, seed)) is not None

    shrunk = Shrinker(original, shows, tries).run()
    played = play(shrunk.scenario, seed)
    finding = _shown(shown, played)
    assert finding is not None, "a run with one seed is always the same"
    return Report(
        shown.group,
        finding,
        played.findings,
        structs.replace(shrunk.scenario, seed=seed),
        played.outcome,
        run,
        len(original.steps),
        shrunk.tries,
        shrunk.is_minimal,
        _certainty(shrunk.scenario, finding, played, seed, other_seeds) if other_seeds else None,
    )


def _shown(wanted: SearchFinding, played: SearchRun) -> SearchFinding | None:
    """The finding of a run that is equal to this one."""
    return next((one for one in played.findings if one.group == wanted.group), None)


def _certainty(
    scenario: Scenario, finding: SearchFinding, played: SearchRun, seed: int, other_seeds: int
) -> Certainty:
    """From which moment on a run was sure to show its finding."""
    seeds = [seed + 1 + at for at in range(other_seeds)]

    def odds_at(at_ms: int) -> Odds:
        runs = [play(scenario, seed, Anew(at_ms, each)) for each in seeds]
        return Odds(at_ms, _count(finding, runs), len(runs))

    others = _count(finding, [play(scenario, each) for each in seeds])
    times = [at_ms for at_ms, _ in played.notes] + [link.at_ms for link in finding.chain]
    moments = moments_of(times, scenario.duration_ms)
    events = dict(reversed(played.notes))  # the first one of each moment
    return certainty_of(moments, odds_at, events.get, others, len(seeds))


def _count(finding: SearchFinding, runs: Sequence[SearchRun]) -> int:
    return sum(_shown(finding, each) is not None for each in runs)
