"""`kcluster scenario`: run, check, list, show and begin scenario files; the help on their keys.

Owns: the verbs' options.  Never: reads or runs a scenario (work/scenario.py).  Exit codes: 0 all as
expected, 1 not (or a bug of kcluster ended a run), 2 a file is wrong or a run proved nothing.
Kafka: Trogdor's coordinator.
"""

from __future__ import annotations

import shlex
from typing import Final

import click

from kcluster.cli.click_tools import HelpfulGroup, Section, fail, print_json, section
from kcluster.cli.errors import CommandError
from kcluster.scenario.skeleton import skeleton

CLOCKS: Final = ("virtual", "live", "both", "kafka")


@section(Section.SCENARIOS)
@click.group("scenario", cls=HelpfulGroup)
def command() -> None:
    """Run scenario files, live or in virtual time; check, list and explain them."""


@command.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE|NAME|DIR...")
@click.option(
    "--clock",
    type=click.Choice(CLOCKS),
    default="virtual",
    show_default=True,
    help="With kafka: also whether a real Kafka can play each step.",
)
def check(files: tuple[str, ...], clock: str) -> None:
    """Check scenario files without running them.

    Each problem is one line on stderr; the exit code is 2 if there is any.
    """
    from kcluster.cli.work.scenario_files import check_files

    check_files(files, clock)


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
    from kcluster.cli.work.scenario import run_files

    run_files(files, clock, seed, runs, as_json, out, verbose, quiet)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def list_(as_json: bool) -> None:
    """List the scenarios, fault profiles, sweeps and searches that ship with kcluster."""
    from kcluster.scenario.library import LibraryKind, library_files

    uses = {
        LibraryKind.SCENARIO: "kcluster scenario run NAME",
        LibraryKind.PROFILE: "in a step: faults: NAME",
        LibraryKind.SWEEP: "kcluster pipeline sweep NAME",
        LibraryKind.SEARCH: "kcluster search NAME",
    }
    for kind, use in uses.items():
        files = library_files(kind)
        if as_json:
            for file in files:
                print_json({"kind": kind, "name": file.name, "title": file.title})
            continue
        print(f"{kind.plural.capitalize()} ({use}):")
        width = max(len(file.name) for file in files)
        print("\n".join(f"  {file.name:<{width}}  {file.title}" for file in files) + "\n")


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print a scenario, fault profile, sweep or search that ships with kcluster."""
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
    if (topology is None) != (lose is None):
        raise click.UsageError(
            "--topology and --lose go together: --topology t.yaml --lose 'rack b'"
        )
    if topology is None or lose is None:
        text = skeleton(shlex.quote(file))
    else:
        from kcluster.cli.work.drill import drill_text

        text = drill_text(file, topology, lose)
    try:
        with open(file, "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        fail(CommandError(f"{file} exists; name another file", 2))
    except OSError as error:
        fail(CommandError(f"{file}: cannot be written: {error.strerror}", 2))
    print(f"{file} is written; run it: kcluster scenario run {shlex.quote(file)}")


@command.command("help")
@click.argument("word", required=False)
@click.option("--markdown", is_flag=True, help="Print the whole reference as Markdown.")
def help_(word: str | None, markdown: bool) -> None:
    """Explain the keys of scenario files, and each action.

    Without WORD, all of them are listed.
    """
    from kcluster.cli.work.scenario_help import print_help

    print_help(word, markdown)
