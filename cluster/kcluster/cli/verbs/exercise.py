"""`kcluster exercise`: the exercises of the course: list, show, start, check.

Owns: the verbs: their options, what is printed, the exit code: 0 all points, 1 not all, 2 a file is
wrong.  Never: grades (learn/grading.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from kcluster.cli.click_tools import HelpfulGroup, Section, fail, print_json, section
from kcluster.cli.errors import CommandError

if TYPE_CHECKING:
    from kcluster.learn.exercises import Exercise
    from kcluster.learn.grading import Grade

MAX_EVENTS: Final = 40
"""Lines of the first run that missed a goal."""


@section(Section.SCENARIOS)
@click.group("exercise", cls=HelpfulGroup)
def command() -> None:
    """List, show, start and check the exercises of the course."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_(as_json: bool) -> None:
    """List the exercises."""
    from kcluster.learn.exercises import all_exercises

    for each in all_exercises():
        if as_json:
            values = {"number": each.number, "name": each.name, "title": each.keys.title}
            print_json({**values, "points": each.points})
        else:
            print(f"  {each.number}  {each.keys.title} ({each.points} points)")


@command.command("show")
@click.argument("exercise", metavar="EXERCISE")
def show(exercise: str) -> None:
    """Show the task, the goals, and what may be changed.

    EXERCISE is a number, a name, or the file of an exercise of your own.
    """
    found = _exercise(exercise)
    print("\n".join(task_lines(found)))
    if found.number:
        file = f"exercise-{found.number}.yaml"
        print(f"\nBegin: kcluster exercise start {found.number}    (writes {file})")
        print(f"Check: kcluster exercise check {found.number} {file}")


@command.command("start")
@click.argument("exercise", metavar="EXERCISE")
@click.argument("file", required=False)
def start(exercise: str, file: str | None) -> None:
    """Write the file to begin with.

    FILE is exercise-N.yaml if none is given.  A file that exists is not overwritten.
    """
    found = _exercise(exercise)
    path = file or f"exercise-{found.number or found.name}.yaml"
    head = "".join(f"# {line}".rstrip() + "\n" for line in task_lines(found))
    try:
        with open(path, "x", encoding="utf-8") as opened:
            opened.write(f"{head}#\n{found.start.text}")
    except FileExistsError:
        fail(CommandError(f"{path} exists; name another file", 2))
    except OSError as error:
        fail(CommandError(f"{path}: cannot be written: {error.strerror}", 2))
    quoted = shlex.quote(path)
    print(f"{path} is written. Change it, then:")
    commands = (f"kcluster scenario run {quoted}", f"kcluster exercise check {exercise} {quoted}")
    width = max(map(len, commands))
    for each, what in zip(commands, ("one run, with its events", "your points"), strict=True):
        print(f"  {each:<{width}}   {what}")


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
    from kcluster.learn.grading import grade_file
    from kcluster.scenario.language.loader import ScenarioError

    found = _exercise(exercise)
    try:
        grade = grade_file(found, file, seeds_of(seeds), secret)
    except ScenarioError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    page = unwritten = None
    if out is not None and grade.first_failing is not None:
        from kcluster.cli.writing import writing
        from kcluster.runs.directory import write_run

        try:
            with writing(out):
                page = write_run(out, grade.first_failing.record()) / "timeline.html"
        except CommandError as error:
            unwritten = error  # the points come first
    if as_json:
        print_json({**grade.values(), "timeline": None if page is None else str(page)})
    else:
        print("\n".join(islice(grade_lines(grade), 1 if quiet else None)))
        if page is not None:
            print(f"timeline: {page}")
    if unwritten is not None:
        fail(unwritten, as_json)
    sys.exit(0 if grade.passed else 1)


def seeds_of(text: str | None) -> tuple[int, ...]:
    """`1..50`, `3,5,8`; none for None.  click's error for other text."""
    seeds: list[int] = []
    for part in (text or "").split(",") if text else ():
        low, dots, high = part.strip().partition("..")
        if not low.isdecimal() or (dots and not high.isdecimal()):
            raise click.BadParameter(f"{part!r} is no seed; write 1..50 or 3,5,8")
        seeds += range(int(low), int(high if dots else low) + 1)
    return tuple(seeds)


def task_lines(exercise: Exercise) -> Iterator[str]:
    """The task, the goals with their points, and what may be changed."""
    keys = exercise.keys
    number = f"Exercise {exercise.number}: " if exercise.number else ""
    yield f"{number}{keys.title} ({exercise.points} points)"
    yield ""
    yield from keys.task.strip().splitlines()
    yield ""
    yield "Goals, in every run:"
    for goal in keys.goals.values():
        yield f"  {goal.points} point{'s' if goal.points > 1 else ''}: {goal.text}"
    yield f"You may change: {', '.join(exercise.start.may_edit)}"
    if keys.hint:
        yield ""
        yield from f"Hint: {keys.hint.strip()}".splitlines()


def grade_lines(grade: Grade) -> Iterator[str]:
    """The points, and the first run that missed a goal."""
    from kcluster.events.words.base import counted

    yield f"{grade.points} of {grade.of} points, {counted(len(grade.seeds), 'run')}"
    for goal in grade.goals:
        yield f"  {goal.points} of {goal.of}  {goal.text}"
        if not goal.reached:
            runs = f"{goal.failed_runs} of {counted(len(grade.seeds), 'run')}"
            yield f"          missed in {runs}; seed {goal.first_failing_seed}: {goal.why}"
    if grade.first_failing is None:
        return
    from kcluster.scenario.report import timeline_lines

    result = grade.first_failing
    yield from ("", f"The first of these runs, seed {result.seed}:")
    lines = list(timeline_lines(result))
    yield from lines[:MAX_EVENTS]
    if len(lines) > MAX_EVENTS:
        yield f"... and {len(lines) - MAX_EVENTS} more events"
    yield from (f"  {line}" for line in result.verdict.lines())
    yield f"replay: {result.replay}"


def _exercise(word: str) -> Exercise:
    from kcluster.learn.exercises import exercise_of
    from kcluster.scenario.language.loader import ScenarioError

    try:
        return exercise_of(word)
    except (LookupError, ScenarioError) as error:
        fail(CommandError(str(error.args[0]), 2))
