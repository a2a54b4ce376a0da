"""The work of `kcluster scenario run`.

Owns: the list of runs, the output about them, the exit code.  Never: runs a scenario itself
(scenario/play/running.py).
Kafka: Trogdor's coordinator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kcluster.cli.click_tools import fail, print_json, refuse_both
from kcluster.cli.errors import CommandError
from kcluster.cli.progress_bar import BAR, progress_bar
from kcluster.cli.topology_choice import without_effect_line
from kcluster.cli.work.scenario_files import playable_on_kafka, read_all
from kcluster.cli.writing import writing
from kcluster.collector import collect_after_run
from kcluster.runs.directory import write_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunCrash, RunResult
from kcluster.scenario.play.running import try_scenario
from kcluster.scenario.report import crash_lines, crash_values, result_lines, result_values


def run_files(
    files: tuple[str, ...],
    clock: str,
    seed: int | None,
    runs: int,
    as_json: bool,
    out: str | None,
    verbose: bool,
    quiet: bool,
) -> None:
    """Run the scenarios of these files; ends the process with the exit code."""
    refuse_both(verbose, quiet)
    scenarios = read_all(files)
    for line in dict.fromkeys(without_effect_line(each.topology) for each in scenarios):
        if line is not None:
            print(line, file=sys.stderr)
    refused = 0
    if clock == "kafka":
        playable = playable_on_kafka(scenarios)
        refused, scenarios = len(scenarios) - len(playable), playable
    plan = [
        (scenario, on, scenario.first_seed(seed) + number)
        for scenario in scenarios
        for on in (("virtual", "live") if clock == "both" else (clock,))
        if clock != "both" or on in scenario.clocks
        for number in range(runs)
    ]
    failed = inconclusive = crashed = 0
    for each in plan:
        result = _one(*each, as_json, out, verbose, quiet, len(plan) == 1)
        if result is None:
            crashed += 1
        else:
            failed += not result.passed
            inconclusive += result.has_problems or (
                not result.passed and result.verdict.outcome == "unknown"
            )
        del result
        if len(plan) > 1:
            collect_after_run()
    if len(plan) > 1 and not as_json:
        crashes = f", {crashed} crashed (a bug in kcluster)" if crashed else ""
        print(f"\n{len(plan)} runs, {failed} not as expected{crashes}")
    sys.exit(1 if crashed else 2 if inconclusive or refused else 1 if failed else 0)


def _one(
    scenario: Scenario,
    clock: str,
    seed: int,
    as_json: bool,
    out: str | None,
    verbose: bool,
    quiet: bool,
    alone: bool,
) -> RunResult | None:
    """Print one run, and return its result; None if a bug of kcluster ended it."""
    with _progress(scenario.name, quiet=as_json) as progress:
        result = try_scenario(scenario, clock, seed, progress=progress)
    if isinstance(result, RunCrash):
        if as_json:
            print_json(crash_values(result))
        else:
            print("\n".join(crash_lines(result)))
        return None
    unwritten = None
    if out is not None:
        try:
            with writing(out):
                path = write_run(out, result.record())
            if not as_json:
                print(f"run directory: {path}")
        except CommandError as error:
            unwritten = error  # the result comes first
    if as_json:
        print_json(result_values(result))
    else:
        is_short = quiet or (result.passed and not alone and not verbose)
        print("\n".join(result_lines(result, verbose, is_short)))
    if unwritten is not None:
        fail(unwritten, as_json)
    return result


@contextmanager
def _progress(name: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar of the scenario's time, on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda passed_ms, all_ms: None
        return
    with progress_bar("{task.description}", BAR, "{task.completed:.1f} s") as bar:
        task = bar.add_task(name)
        yield lambda passed_ms, all_ms: bar.update(
            task, completed=passed_ms / 1000, total=all_ms / 1000
        )
