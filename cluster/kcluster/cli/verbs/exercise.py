"""`kcluster exercise`: the exercises of the course: list, show, start, check.

Owns: the verbs' options.  Never: prints a task or a grade (work/exercise.py).  Exit codes: 0 all
points, 1 not all, 2 a file is wrong.
Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import HelpfulGroup, Section, section


@section(Section.SCENARIOS)
@click.group("exercise", cls=HelpfulGroup)
def command() -> None:
    """List, show, start and check the exercises of the course."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_(as_json: bool) -> None:
    """List the exercises."""
    from kcluster.cli.work.exercise import list_exercises

    list_exercises(as_json)


@command.command("show")
@click.argument("exercise", metavar="EXERCISE")
def show(exercise: str) -> None:
    """Show the task, the goals, and what may be changed.

    EXERCISE is a number, a name, or the file of an exercise of your own.
    """
    from kcluster.cli.work.exercise import show_task

    show_task(exercise)


@command.command("start")
@click.argument("exercise", metavar="EXERCISE")
@click.argument("file", required=False)
def start(exercise: str, file: str | None) -> None:
    """Write the file to begin with.

    FILE is exercise-N.yaml if none is given.  A file that exists is not overwritten.
    """
    from kcluster.cli.work.exercise import write_start

    write_start(exercise, file)


@command.command("check")
@click.argument("exercise", metavar="EXERCISE")
@click.argument("file")
@click.option("--seeds", metavar="SEEDS", help="Seeds for all students, such as 1..50 or 3,5,8.")
@click.option(
    "--secret",
    envvar="KCLUSTER_EXERCISE_SECRET",
    default="",
    help="A word that changes the hidden seeds.  [default: $KCLUSTER_EXERCISE_SECRET]",
)
@click.option(
    "--out", metavar="DIR", help="Write the first run that misses a goal to a directory below DIR."
)
@click.option("-q", "--quiet", is_flag=True, help="Show only the points.")
@click.option("--json", "as_json", is_flag=True, help="Print the grade as one JSON object.")
def check(
    exercise: str,
    file: str,
    seeds: str | None,
    secret: str,
    out: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Grade the answer in FILE over hidden seeds.

    Prints the points of each goal and the first run that missed one, with the command that replays
    it.  The exit code is 0 for all points, 1 for fewer, 2 for a file that cannot be graded.
    """
    from kcluster.cli.work.exercise import print_grade

    print_grade(exercise, file, seeds, secret, out, quiet, as_json)
