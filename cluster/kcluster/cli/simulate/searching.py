"""`kcluster search app.py`: a search for faults that make users' programs fail.

Owns: the runs of such a search, what counts as a finding, its report and its file.  Never: draws a
fault (search/near.py), shrinks (search/shrink.py), forks (world/seeds.py).  Kafka: no counterpart.

The first run has no faults.  Its moments are those near which the faults of all other runs are put.
Each run has a seed of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from kcluster.chance import Anew
from kcluster.cli.errors import CommandError
from kcluster.cli.interrupts import leave_on_second_interrupt
from kcluster.cli.simulate.command import prepare
from kcluster.cli.simulate.hash_seed import report_hash_seed
from kcluster.cli.simulate.options import SimulateOptions, SimulationSetting, setting_of
from kcluster.cli.simulate.printing import play
from kcluster.cli.simulate.replay import replay_command
from kcluster.cli.simulate.simulation import PROGRAMS, Simulated, Simulation
from kcluster.cli.writing import writing
from kcluster.config.files.problems import unknown
from kcluster.operations.moments import MomentWatch
from kcluster.protocol.names import has_internal_prefix
from kcluster.runs.whole_files import SHARED, replacing
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.writing import text_of_scenario
from kcluster.search.certainty import PROGRAM_SEEDS, Certainty, certainty_of_programs
from kcluster.search.near import LifeCount, ProgramLife, draw_near
from kcluster.search.program_words import (
    ProgramFinding,
    finding_lines,
    not_again_text,
    nothing_text,
)
from kcluster.search.shrink import Shrinker
from kcluster.world.seeds import SeedOutcome, SeedResult, run_seeds

MAX_RUNS: Final = 1_000_000
MAX_TRIES: Final = 60
"""The most runs that shrinking takes."""


class ProgramSearchOptions(Struct, frozen=True):
    """What the verb adds to the options of a simulation.  `kill`: the programs that may be killed,
    all of them if it is empty."""

    seconds: float | None
    runs: int | None
    jobs: int | None
    out: str | None
    kill: tuple[str, ...] = ()


class _Trial(Struct, frozen=True):
    """What a run reports.  `where`: equal for equal failures, "" if it passed; `reason`: its words;
    `output`: what the run printed."""

    where: str = ""
    reason: str = ""
    life: ProgramLife | None = None
    output: str = ""


def search_programs(simulate: SimulateOptions, options: ProgramSearchOptions) -> int:
    """Search; returns the exit code: 1 if something was found."""
    setting = setting_of(simulate)
    if setting.scenario.steps:
        text = "a search draws the steps itself; name a scenario without steps, or a --topology"
        raise CommandError(f"--scenario: {text}", 2)
    names = [program.name for program in setting.programs]
    for name in options.kill:
        if name not in names:
            raise CommandError(f"--kill {name}: {unknown('program', name, names)}", 2)
    report_hash_seed()
    leave_on_second_interrupt()
    prepare(setting)
    return _ProgramSearch(setting, simulate, options).go()


class _ProgramSearch:
    """One search."""

    def __init__(
        self, setting: SimulationSetting, simulate: SimulateOptions, options: ProgramSearchOptions
    ) -> None:
        self._setting = setting
        self._simulate = simulate
        self._options = options
        self._apps = options.kill or tuple(program.name for program in setting.programs)
        self._runs = 0

    def go(self) -> int:
        """Search, print what was found; returns the exit code."""
        options = self._options
        until_s = None if options.seconds is None else time.monotonic() + options.seconds
        first = self._play((), self._setting.seed)
        if first.where or first.life is None:
            print(first.output, end="")
            print(f"without any fault: {first.reason}")
            return 1
        life = first.life
        outcome = run_seeds(
            range(1, (options.runs or MAX_RUNS) + 1),
            lambda number: self._in_child(self._steps(life, number), self._setting.seed + number),
            workers=options.jobs or 0,
            on_outcome=self._count,
            until_s=until_s,
        )
        failed = outcome.first_failed
        if failed is None:
            print(nothing_text(self._runs))
            return 0
        self._report(life, self._steps(life, failed.seed), failed.seed, _trial_of(failed))
        return 1

    def _steps(self, life: ProgramLife, number: int) -> tuple[Step, ...]:
        return draw_near(life, self._setting.seed + number)

    def _count(self, _outcome: SeedOutcome) -> None:
        self._runs += 1

    def _report(
        self, life: ProgramLife, steps: tuple[Step, ...], number: int, failed: _Trial
    ) -> None:
        """Shrink a finding, write its file, and print it."""
        seed = self._setting.seed + number
        scenario = structs.replace(self._setting.scenario, steps=steps, seed=seed)
        shrunk = Shrinker(
            scenario,
            lambda candidate: self._play(candidate.steps, seed).where == failed.where,
            MAX_TRIES,
            places=life.places,
        ).run()
        certainty = None
        if failed.life is not None:
            steps_left, lasts_ms = shrunk.scenario.steps, failed.life.lasts_ms
            certainty = self._certainty(steps_left, seed, failed.where, lasts_ms)
        shown = self._play(shrunk.scenario.steps, seed)
        if shown.where != failed.where:
            print(failed.output, end="")
            print(not_again_text(failed.reason))
            return
        print(shown.output, end="")
        folder = Path(self._options.out or f"search-{scenario.name}")
        file = folder / f"seed-{seed}.yaml"
        with writing(str(file)):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(file, SHARED) as out:
                out.write(text_of_scenario(shrunk.scenario, shown.reason).encode())
        simulate = structs.replace(
            self._simulate, scenario=str(file), topology=None, brokers=None, profile=None
        )
        found = ProgramFinding(
            "the programs end well", shown.reason, shrunk, number, len(steps), certainty
        )
        print("\n".join(finding_lines(found, replay_command(simulate, seed))))

    def _certainty(
        self, steps: tuple[Step, ...], seed: int, where: str, lasts_ms: int
    ) -> Certainty:
        """From which moment on the run was sure to fail like this."""

        def count(at_ms: int | None) -> int:
            found: list[SeedOutcome] = []

            def run(other: int) -> SeedResult:
                if at_ms is None:
                    return self._in_child(steps, other)
                return self._in_child(steps, seed, Anew(at_ms, other))

            run_seeds(
                range(seed + 1, seed + 1 + PROGRAM_SEEDS),
                run,
                workers=self._options.jobs or 0,
                on_outcome=found.append,
                keeps_going=True,
            )
            return sum(_trial_of(outcome).where == where for outcome in found)

        return certainty_of_programs(count, lasts_ms)

    def _play(self, steps: tuple[Step, ...], seed: int) -> _Trial:
        """Run the programs once, in a child."""
        found: list[SeedOutcome] = []
        run_seeds([seed], lambda _: self._in_child(steps, seed), workers=1, on_outcome=found.append)
        return _trial_of(found[0])

    def _in_child(self, steps: tuple[Step, ...], seed: int, anew: Anew | None = None) -> SeedResult:
        scenario = structs.replace(self._setting.scenario, steps=steps)
        setting = structs.replace(self._setting, scenario=scenario, seed=seed)
        simulation = Simulation(setting, replay_command(self._simulate, seed))
        simulation.anew = anew
        cluster = simulation.cluster
        count = LifeCount(cluster.driver.clock_ms)
        MomentWatch(cluster.dispatcher, cluster.verbs.settled, count.add)
        if not steps:
            simulation.line_watches.append(count.add_line)
        simulated = play(simulation, not self._simulate.quiet, print)
        topics = cluster.verbs.settled.image.topics
        partitions = [
            f"{name}-{part.partition}"
            for name, topic in topics.items()
            if not has_internal_prefix(name)
            for part in topic.partitions
        ]
        where, reason = next(_failures(simulated), ("", ""))
        trial = _Trial(where, reason, count.life(self._apps, partitions))
        return SeedResult(bool(where), msgspec.json.encode(trial))


def _failures(simulated: Simulated) -> Iterator[tuple[str, str]]:
    """Why a run failed: what equal failures have in common, and the words."""
    for end in simulated.ends:
        if end.exit_code:
            where = f"{end.name} {end.exit_code} {end.reason.partition(':')[0]}"
            reason = f": {end.reason}" if end.reason else ""
            yield where, f"program {end.name} ended with exit code {end.exit_code}{reason}"
    for failed in simulated.run.failed:
        if failed.check == PROGRAMS:
            first = failed.text.partition("\n")[0]
            yield first, first
    verdict = simulated.run.verdict
    if verdict.outcome == "invalid" and not simulated.run.passed:
        for anomaly in verdict.anomalies:
            yield anomaly.name, f"{anomaly.name}: {anomaly.text}"
        for violation in verdict.violations:
            yield violation.name, f"{violation.name}: {violation.text}"


def _trial_of(outcome: SeedOutcome) -> _Trial:
    output = outcome.output.decode(errors="backslashreplace")
    if outcome.result is None:
        return _Trial(outcome.ended, f"the process {outcome.ended}", output=output)
    try:
        trial = msgspec.json.decode(outcome.result.report, type=_Trial)
    except msgspec.DecodeError:
        text = outcome.result.report.decode(errors="backslashreplace")
        return _Trial("crash", f"a bug in kcluster ended the run\n{text}", output=output)
    return structs.replace(trial, output=output)
