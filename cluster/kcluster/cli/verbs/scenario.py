"""`kcluster scenario`: run, check, list, show and begin scenario files; the help on their keys.

Owns: the verb's options, progress, what is printed, the exit code: 0 all as expected, 1 not (or a
bug of kcluster ended a run), 2 a file is wrong or a run proved nothing.  Never: runs a scenario
itself (scenario/play/running.py).
Kafka: Trogdor's coordinator.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from kcluster.cli.click_tools import HelpfulGroup, Section, fail, print_json, refuse_both, section
from kcluster.cli.errors import CommandError
from kcluster.collector import collect_after_run

if TYPE_CHECKING:
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.play.phases import RunResult

CLOCKS: Final = ("virtual", "live", "both")


@section(Section.SCENARIOS)
@click.group("scenario", cls=HelpfulGroup)
def command() -> None:
    """Run scenario files, live or in virtual time; check, list and explain them."""


@command.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE|NAME|DIR...")
def check(files: tuple[str, ...]) -> None:
    """Check scenario files without running them.

    Each problem is one line on stderr; the exit code is 2 if there is any.
    """
    scenarios = read_all(files)
    print(f"{len(scenarios)} scenario{'s' if len(scenarios) > 1 else ''}: no problems")


@command.command("run")
@click.argument("files", nargs=-1, required=True, metavar="FILE|NAME|DIR...")
@click.option("--clock", type=click.Choice(CLOCKS), default="virtual", show_default=True)
@click.option(
    "--seed", type=click.IntRange(0), help="The random seed.  [default: the file's, or 1]"
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="The number of runs; each takes the next seed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per run.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write a run directory per run below DIR.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Show the timeline, and every outage with its reasons."
)
@click.option("-q", "--quiet", is_flag=True, help="Show only whether each run is as expected.")
def run(
    files: tuple[str, ...],
    clock: str,
    seed: int | None,
    runs: int,
    as_json: bool,
    out: str | None,
    verbose: bool,
    quiet: bool,
) -> None:
    """Run scenarios and check their results.

    A scenario is a file, or the NAME of one that ships with kcluster; of a DIR all scenario files
    in it are run.  Each is run on each clock with each seed; the last line is a summary.
    """
    from kcluster.cli.topology_choice import without_effect_line

    refuse_both(verbose, quiet)
    scenarios = read_all(files)
    for line in dict.fromkeys(without_effect_line(each.topology) for each in scenarios):
        if line is not None:
            print(line, file=sys.stderr)
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
    sys.exit(1 if crashed else 2 if inconclusive else 1 if failed else 0)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def list_(as_json: bool) -> None:
    """List the scenarios, fault profiles and sweeps that ship with kcluster."""
    from kcluster.scenario.library import LibraryKind, library_files

    uses = {
        LibraryKind.SCENARIO: "kcluster scenario run NAME",
        LibraryKind.PROFILE: "in a step: faults: NAME",
        LibraryKind.SWEEP: "kcluster pipeline sweep NAME",
    }
    for kind, use in uses.items():
        files = library_files(kind)
        if as_json:
            for file in files:
                print_json({"kind": kind, "name": file.name, "title": file.title})
            continue
        print(f"{kind.capitalize()}s ({use}):")
        width = max(len(file.name) for file in files)
        print("\n".join(f"  {file.name:<{width}}  {file.title}" for file in files) + "\n")


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print a scenario, fault profile or sweep that ships with kcluster."""
    from kcluster.scenario.search import library_text

    try:
        print(library_text(name), end="")
    except LookupError as error:
        fail(CommandError(str(error), 2))


@command.command("new")
@click.argument("file", default="scenario.yaml")
@click.option("--topology", metavar="FILE", help="A topology file, such as one of kcluster import.")
@click.option(
    "--lose", metavar="BROKERS", help="With --topology: what loses power under load: 'rack b'."
)
def new(file: str, topology: str | None, lose: str | None) -> None:
    """Write a scenario to begin with; it runs as it is.

    FILE is scenario.yaml if none is given.  A file that exists is not overwritten.

    With --topology and --lose: a drill on this topology. Each topic has a producer and a group of
    readers; then the brokers lose power, and come back.
    """
    from kcluster.scenario.skeleton import skeleton

    if (topology is None) != (lose is None):
        raise click.UsageError(
            "--topology and --lose go together: --topology t.yaml --lose 'rack b'"
        )
    if topology is None or lose is None:
        text = skeleton(shlex.quote(file))
    else:
        text = _drill(file, topology, lose)
    try:
        with open(file, "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        fail(CommandError(f"{file} exists; name another file", 2))
    except OSError as error:
        fail(CommandError(f"{file}: cannot be written: {error.strerror}", 2))
    print(f"{file} is written; run it: kcluster scenario run {shlex.quote(file)}")


def _drill(file: str, topology: str, lost: str) -> str:
    """The text of a drill; its problems go to stderr, with exit code 2."""
    from kcluster.config.files.problems import TopologyError
    from kcluster.config.topology.model import Topology
    from kcluster.operations.targets import targets
    from kcluster.scenario.drill import drill
    from kcluster.scenario.language.loader import ScenarioError
    from kcluster.scenario.language.scenario import Scenario

    try:
        targets(lost)
    except ValueError as error:
        fail(CommandError(f"--lose {shlex.quote(lost)}: {error}", 2))
    try:
        loaded = Topology.load(topology)
    except TopologyError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    path = os.path.relpath(topology, os.path.dirname(file) or ".")
    text = drill(loaded, path, lost, shlex.quote(file))
    try:
        Scenario.parse(text, file)
    except ScenarioError as error:
        fail(CommandError(f"--lose {shlex.quote(lost)}: {error.problems[0].text}", 2))
    return text


@command.command("help")
@click.argument("word", required=False)
@click.option("--markdown", is_flag=True, help="Print the whole reference as Markdown.")
def help_(word: str | None, markdown: bool) -> None:
    """Explain the keys of scenario files, and each action.

    Without WORD, all of them are listed.
    """
    from kcluster.config.files.problems import unknown
    from kcluster.scenario.language.reference import pages
    from kcluster.scenario.language.reference_text import as_markdown, as_text, overview

    found = pages()
    if markdown:
        print(as_markdown(), end="")
    elif word is None:
        print(overview())
    elif word in found:
        print(as_text(found[word]))
    else:
        fail(CommandError(f"{word}: {unknown('word of scenario files', word, found)}", 2))


def read_all(words: Sequence[str]) -> list[Scenario]:
    """The scenarios of files, names and directories.  All problems go to stderr; exit code 2 if
    there is any."""
    from kcluster.scenario.language.loader import ScenarioError
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.search import scenario_files

    problems: list[str] = []
    scenarios = []
    for word in words:
        for file in scenario_files(word, problems):
            try:
                scenarios.append(Scenario.load(file))
            except ScenarioError as error:
                problems.append(str(error))
    if problems:
        print("\n".join(problems), file=sys.stderr)
        sys.exit(2)
    return scenarios


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
    """The result of one run, printed; None if a bug of kcluster ended it."""
    from kcluster.scenario.play.phases import RunCrash
    from kcluster.scenario.play.running import try_scenario
    from kcluster.scenario.report import crash_lines, crash_values, result_lines, result_values

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
        from kcluster.cli.writing import writing
        from kcluster.runs.directory import write_run

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
    from rich.progress import BarColumn, Progress, TextColumn

    from kcluster.plain_output import plain_console

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.1f} s"))
    with Progress(*columns, transient=True, console=plain_console(to_stderr=True)) as bar:
        task = bar.add_task(name)
        yield lambda passed_ms, all_ms: bar.update(
            task, completed=passed_ms / 1000, total=all_ms / 1000
        )
