"""One run of a search: a schedule is played in virtual time; what it found, and what it reached.

Owns: Trial, and playing one.  Never: chooses a schedule (loop.py), reads a clock.  Kafka: no
counterpart.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from msgspec import Struct, structs

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import BUGS
from kcluster.scenario.play.virtual import VirtualRun
from kcluster.search.coverage import Coverage
from kcluster.search.findings import (
    CRASH,
    FindingKind,
    SearchFinding,
    asked_by,
    findings_of,
    searched,
)
from kcluster.search.schedule import Schedule, Space, scenario_of
from kcluster.search.vary import Moments


class Trial(Struct, frozen=True):
    """The result of one run: it can be sent to another process.  `signatures`: what the run
    reached, with the moments at which it first did; `moments`: when its events were; `outcome`: its
    verdict."""

    schedule: Schedule
    findings: tuple[SearchFinding, ...]
    signatures: Mapping[int, int]
    moments: Moments
    outcome: str


def run_trial(space: Space, schedule: Schedule) -> Trial:
    """Play a schedule, and look at it."""
    coverage, findings, outcome = play(scenario_of(space, schedule), schedule.seed)
    moments = {} if coverage is None else coverage.moments
    signatures = {} if coverage is None else coverage.signatures
    return Trial(schedule, findings, signatures, moments, outcome)


def play(scenario: Scenario, seed: int) -> tuple[Coverage | None, tuple[SearchFinding, ...], str]:
    """Run a scenario with the checks of a search: (what it reached, what it found, its verdict).  A
    bug that ends the run is a finding, too."""
    coverage = None
    scenario = structs.replace(scenario, checks=searched(scenario.checks))
    try:
        played = VirtualRun(scenario, seed, asked=asked_by(scenario.checks))
        stage = played.stage
        coverage = Coverage(stage.dispatcher, played.run.recorder, stage.began_ms)
        coverage.attach()
        played.advance(scenario.duration_ms)
        result: RunResult = played.finish()
    except BUGS as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('kcluster/')[2]}:{where.lineno}"
        text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        crash = SearchFinding(FindingKind.CRASH, CRASH, place, detail=text)
        return coverage, (crash,), CRASH
    return coverage, findings_of(result), result.verdict.outcome
