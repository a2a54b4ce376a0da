"""`pytest --kcluster-search TIME`: a search for faults that make a test fail.

Owns: the runs of one test in a search, its report, the file that repeats a finding.  Never: draws a
fault (search/near.py), shrinks (search/shrink.py), forks (world/seeds.py).  Kafka: no counterpart.

The first run has no faults: a test that fails then is reported as always.  Its moments are those
near which the faults of all other runs are put.  Each run has a seed of its own.
"""

from __future__ import annotations

import linecache
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest
from msgspec import Struct, structs

from kcluster.actions.stalls import StallProgram
from kcluster.chance import Anew
from kcluster.config.files.durations import milliseconds
from kcluster.config.files.fields import duration_text
from kcluster.config.files.numbers import whole_number
from kcluster.json_types import JsonObject
from kcluster.operations.conditions import MomentCondition
from kcluster.operations.moments import EXECUTION
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.writing import step_values, text_of_scenario
from kcluster.search.certainty import PROGRAM_SEEDS, Certainty, certainty_of_programs
from kcluster.search.near import ProgramLife, draw_near, draw_plain
from kcluster.search.program_words import ProgramFinding, finding_lines, nothing_text
from kcluster.search.shrink import Shrinker, Shrunk
from kcluster.testing.items import (
    ANEW,
    LIFE,
    MARK,
    SEARCH,
    SEARCH_PLAIN,
    SEED_LIMIT_INI,
    STEPS,
    STEPS_FILE,
    replay_of,
)
from kcluster.testing.marks import arguments_of
from kcluster.testing.reports import PENDING_RUNS, runs_directory
from kcluster.testing.seed_tally import place_of_failure, reason_of
from kcluster.testing.seeds import (
    keep_runs,
    reports_of,
    rows_of,
    run_as_child,
    run_in_children,
    say,
    workers_of,
)
from kcluster.world.seeds import SeedOutcome, SeedResult, run_seeds

MAX_RUNS: Final = 1_000_000
MAX_TRIES: Final = 60
"""The most runs that shrinking takes."""


FACTS: Final = "kcluster_search"
"""The property of a report, for those who count searches, with SearchFacts as JSON."""


class SearchFacts(Struct, frozen=True):
    """The outcome of a search.  `run`: the number of the run that failed, 0: none did; `runs`: how
    many runs with faults there were before it was shrunk; `reason`, `sentence`: its words; `steps`,
    `steps_before`: after shrinking, and before."""

    run: int
    runs: int
    reason: str = ""
    sentence: str = ""
    steps: int = 0
    steps_before: int = 0


class _Run(Struct, frozen=True):
    """What a child reports.  `where`: the place and the kind of its failure, "" if it passed;
    `reason`: its words."""

    rows: list[JsonObject] = []
    where: str = ""
    reason: str = ""
    life: ProgramLife | None = None


def search_item(item: pytest.Item, nextitem: pytest.Item | None, seed: int) -> None:
    """Search for faults that make an item fail; reports the first finding, or that none was
    found."""
    run_in_children(item, nextitem, lambda: (None, _TestSearch(item, seed).go()))


class _TestSearch:
    """The search of one item."""

    def __init__(self, item: pytest.Item, seed: int) -> None:
        self._item = item
        self._seed = seed
        mark = item.get_closest_marker(MARK)
        self._topology = arguments_of(mark, "virtual").topology
        self._most, seconds = _limit(item.config.getoption(SEARCH))
        self._until_s = None if seconds is None else time.monotonic() + seconds
        self._limit_s = float(item.config.getini(SEED_LIMIT_INI))
        self._draw = draw_plain if item.config.getoption(SEARCH_PLAIN) else draw_near
        self._runs = 0
        self._pending = runs_directory(item.config) / f".search-{os.getpid()}"
        """The place of the run directories of all runs that fail; the last one is kept."""

    def go(self) -> list[pytest.TestReport]:
        """The reports of the item."""
        try:
            return self._go()
        finally:
            shutil.rmtree(self._pending, ignore_errors=True)

    def _go(self) -> list[pytest.TestReport]:
        first = self._play(self._scenario(0, ()), self._seed)
        if first.life is None or first.where:
            return reports_of(self._item, first.rows)
        life = first.life
        found = self._first_failure(life)
        if found is None:
            reports = reports_of(self._item, first.rows)
            text = nothing_text(self._runs)
            for report in reports:
                if report.when == "call":
                    report.sections.append(("search", text))
                    _give_facts(report, SearchFacts(0, self._runs))
            say(self._item, f"{self._item.nodeid}: {text}")
            return reports
        return self._examined(life, *found)

    def _examined(self, life: ProgramLife, number: int, failed: _Run) -> list[pytest.TestReport]:
        """Shrink a failed run, and report the shrunk one."""
        scenario = self._scenario(number, self._draw(life, self._seed + number))
        shrunk = self._shrink(life, scenario, number, failed.where)
        certainty = None
        if failed.life is not None:
            certainty = self._certainty(shrunk.scenario, number, failed.where, failed.life.lasts_ms)
        shutil.rmtree(self._pending, ignore_errors=True)
        shown = self._play(shrunk.scenario, self._seed + number)
        found = ProgramFinding(
            "the test passes", shown.reason, shrunk, number, len(scenario.steps), certainty
        )
        return self._reports(found, shown)

    def _scenario(self, number: int, steps: tuple[Step, ...]) -> Scenario:
        return Scenario(self._item.name, "", self._topology, steps=steps, seed=self._seed + number)

    def _first_failure(self, life: ProgramLife) -> tuple[int, _Run] | None:
        """The lowest number of a run that failed, and the run."""

        def count(outcome: SeedOutcome) -> None:
            self._runs += 1

        outcome = run_seeds(
            range(1, self._most + 1),
            lambda number: self._in_child(
                self._scenario(number, self._draw(life, self._seed + number)), self._seed + number
            ),
            workers=workers_of(),
            limit_s=self._limit_s,
            on_outcome=count,
            until_s=self._until_s,
        )
        failed = outcome.first_failed
        return None if failed is None else (failed.seed, _run_of(failed))

    def _shrink(self, life: ProgramLife, scenario: Scenario, number: int, where: str) -> Shrunk:
        def shows(candidate: Scenario) -> bool:
            return self._play(candidate, self._seed + number).where == where

        return Shrinker(scenario, shows, MAX_TRIES, places=life.places).run()

    def _certainty(self, scenario: Scenario, number: int, where: str, lasts_ms: int) -> Certainty:
        """From which moment on the run was sure to fail in this place."""
        seed = self._seed + number

        def count(at_ms: int | None) -> int:
            found: list[SeedOutcome] = []

            def run(other: int) -> SeedResult:
                if at_ms is None:
                    return self._in_child(scenario, other)
                return self._in_child(scenario, seed, Anew(at_ms, other))

            run_seeds(
                range(seed + 1, seed + 1 + PROGRAM_SEEDS),
                run,
                workers=workers_of(),
                limit_s=self._limit_s,
                on_outcome=found.append,
                keeps_going=True,
            )
            return sum(_run_of(outcome).where == where for outcome in found)

        return certainty_of_programs(count, lasts_ms)

    def _play(self, scenario: Scenario, seed: int) -> _Run:
        """Run the item once, in a child."""
        outcome: list[SeedOutcome] = []
        run_seeds(
            [seed],
            lambda _: self._in_child(scenario, seed),
            workers=1,
            limit_s=self._limit_s,
            on_outcome=outcome.append,
        )
        return _run_of(outcome[0])

    def _in_child(self, scenario: Scenario, seed: int, anew: Anew | None = None) -> SeedResult:
        item = self._item
        if anew is not None:
            item.stash[ANEW] = anew
        item.stash[PENDING_RUNS] = self._pending
        if scenario.steps:
            item.stash[STEPS] = scenario
        life: list[ProgramLife] = []
        item.stash[LIFE] = life
        reports = run_as_child(item, seed, f"search-{seed}")
        failed = [report for report in reports if report.failed]
        rows = rows_of(item, reports)
        longrepr = next((row["longrepr"] for row in rows if row["outcome"] == "failed"), None)
        found = _Run(
            rows,
            place_of_failure(longrepr) if failed else "",
            reason_of(longrepr) if failed else "",
            life[0] if life else None,
        )
        return SeedResult(bool(failed), msgspec.json.encode(found, enc_hook=str))

    def _reports(self, found: ProgramFinding, shown: _Run) -> list[pytest.TestReport]:
        item, number, shrunk = self._item, found.run, found.shrunk
        steps = shrunk.scenario.steps
        runs = runs_directory(item.config)
        replay = replay_of(item, self._seed + number)
        if steps:
            runs.mkdir(parents=True, exist_ok=True)
            file = runs / f"{_plain(item.name)}-{self._seed + number}.yaml"
            comment = f"{item.nodeid}: {shown.reason}"
            named = structs.replace(shrunk.scenario, name=_plain(item.name))
            file.write_text(text_of_scenario(named, comment), "utf-8")
            replay = f"{replay} {STEPS_FILE} {_relative(file, item)}"
        lines = [*finding_lines(found, replay)]
        facts = SearchFacts(
            number, self._runs, shown.reason, lines[1], len(steps), found.steps_before
        )
        if steps:
            lines += [*_sources(steps), "as first lines of the test:", *_pasted(steps)]
        reports = reports_of(item, shown.rows)
        for report in reports:
            if report.failed:
                report.sections.append(("search", "\n".join(lines)))
                _give_facts(report, facts)
        keep_runs(self._pending, runs, reports)
        return reports


def _give_facts(report: pytest.TestReport, facts: SearchFacts) -> None:
    report.user_properties.append((FACTS, msgspec.json.encode(facts).decode()))


def _limit(text: str) -> tuple[int, float | None]:
    """The most runs, and the seconds, of `200` or `60s`."""
    number = whole_number(text)
    if number is not None:
        return number, None
    try:
        return MAX_RUNS, milliseconds(text) / 1000
    except ValueError as error:
        raise pytest.UsageError(f"{SEARCH} {text}: {error}, or a number of runs") from None


def _run_of(outcome: SeedOutcome) -> _Run:
    if outcome.result is not None:
        try:
            return msgspec.json.decode(outcome.result.report, type=_Run)
        except msgspec.DecodeError:
            text = outcome.result.report.decode(errors="replace").strip()
            return _Run(where="outside", reason=text.splitlines()[-1] if text else "")
    return _Run(where=outcome.ended, reason=f"the process {outcome.ended}")


def _sources(steps: Sequence[Step]) -> Iterator[str]:
    """The source of the lines at which steps come."""
    files = [getattr(module, "__file__", None) or "" for module in tuple(sys.modules.values())]
    for step in steps:
        when, place = step.trigger.when, ""
        if isinstance(when, MomentCondition) and when.moment.kind == EXECUTION:
            place = when.moment.of
        elif isinstance(step.action, StallProgram):
            place = step.action.line or ""
        name, _, line = place.partition(":")
        if line.isdecimal():
            file = next((file for file in files if os.path.basename(file) == name), "")
            yield f"{place}: {linecache.getline(file, int(line)).strip()}"


def _pasted(steps: Sequence[Step]) -> Iterator[str]:
    """The steps as lines of a test; a time after a moment is then drawn anew for each seed."""
    for step in steps:
        when, delay = step.trigger.when, step.trigger.delay
        values = ", ".join(f"{key}={value!r}" for key, value in _keys(step).items())
        if not isinstance(when, MomentCondition):
            yield f'kafka_cluster.do("{step.verb}", {values})'
            continue
        within = "" if delay is None else f', within="{duration_text(delay.low_ms)}"'
        lasts = step.options.for_
        ends = "" if lasts is None else f', lasts="{duration_text(lasts.low_ms)}"'
        yield (
            f'kafka_cluster.at_moment("{when.moment}", "{step.verb}", dict({values}){within}{ends})'
        )


def _keys(step: Step) -> dict[str, object]:
    """The keys of a step's action, as Python takes them."""
    values = step_values(step)[step.verb]
    return values if isinstance(values, dict) else {step.action.SHORT: values}


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")


def _relative(file: Path, item: pytest.Item) -> str:
    return shlex.quote(os.path.relpath(file, item.config.invocation_params.dir))
