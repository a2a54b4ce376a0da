"""One run of a search: a schedule is played in virtual time; what it found, and what it reached.

Owns: Trial, and playing one.  Never: chooses a schedule (loop.py), reads a clock.  Kafka: no
counterpart.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from msgspec import Struct, structs

from kcluster.chance import Anew
from kcluster.contract import Event
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


class SearchRun(Struct, frozen=True):
    """What is read of one run.  `coverage`: what it reached, None if it did not begin; `findings`:
    what it found; `outcome`: its verdict; `notes`: its events, with their times since its start."""

    coverage: Coverage | None
    findings: tuple[SearchFinding, ...]
    outcome: str
    notes: tuple[tuple[int, Event], ...] = ()


def run_trial(space: Space, schedule: Schedule) -> Trial:
    """Play a schedule, and look at it."""
    played = play(scenario_of(space, schedule), schedule.seed)
    coverage = played.coverage
    moments = {} if coverage is None else coverage.moments
    signatures = {} if coverage is None else coverage.signatures
    return Trial(schedule, played.findings, signatures, moments, played.outcome)


def play(scenario: Scenario, seed: int, anew: Anew | None = None) -> SearchRun:
    """Run a scenario with the checks of a search.  A bug that ends the run is a finding, too."""
    coverage = None
    scenario = structs.replace(scenario, checks=searched(scenario.checks))
    try:
        run = VirtualRun(scenario, seed, asked=asked_by(scenario.checks))
        stage = run.stage
        coverage = Coverage(stage.dispatcher, run.run.recorder, stage.began_ms)
        coverage.attach()
        if anew is not None:
            run.advance(anew.at_ms)
            run.draw_anew(anew.seed)
        run.advance(scenario.duration_ms)
        result: RunResult = run.finish()
    except BUGS as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('kcluster/')[2]}:{where.lineno}"
        text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        crash = SearchFinding(FindingKind.CRASH, CRASH, place, detail=text)
        return SearchRun(coverage, (crash,), CRASH)
    began_ms = stage.began_ms
    notes = result.notes[result.first_note :]
    events = tuple((note.at_ms - began_ms, note.event) for note in notes)
    return SearchRun(coverage, findings_of(result), result.verdict.outcome, events)
