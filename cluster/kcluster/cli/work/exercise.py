"""The work of `kcluster exercise`.

Owns: the output about tasks and grades, the exit code.  Never: grades (learn/grading.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Final

import click

from kcluster.cli.click_tools import fail, print_json
from kcluster.cli.errors import CommandError
from kcluster.cli.writing import writing
from kcluster.config.files.numbers import whole_number
from kcluster.events.words.base import counted
from kcluster.learn.exercises import Exercise, all_exercises, exercise_of
from kcluster.learn.grading import Grade, grade_file
from kcluster.runs.directory import write_run
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.report import timeline_lines

MAX_EVENTS: Final = 40
"""The number of lines that show the first run that missed a goal."""


def list_exercises(as_json: bool) -> None:
    """List the exercises."""
    for each in all_exercises():
        if as_json:
            values = {"number": each.number, "name": each.name, "title": each.keys.title}
            print_json({**values, "points": each.points})
        else:
            print(f"  {each.number}  {each.keys.title} ({each.points} points)")


def show_task(exercise: str) -> None:
    """Show the task."""
    found = _exercise(exercise)
    print("\n".join(task_lines(found)))
    if found.number:
        file = f"exercise-{found.number}.yaml"
        print(f"\nBegin: kcluster exercise start {found.number}    (writes {file})")
        print(f"Check: kcluster exercise check {found.number} {file}")


def write_start(exercise: str, file: str | None) -> None:
    """Write the file to begin with."""
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


def print_grade(
    exercise: str,
    file: str,
    seeds: str | None,
    secret: str,
    out: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Grade a file; ends the process with the exit code."""
    found = _exercise(exercise)
    try:
        grade = grade_file(found, file, seeds_of(seeds), secret)
    except ScenarioError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    page = unwritten = None
    if out is not None and grade.first_failing is not None:
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
    """The seeds in `1..50` or `3,5,8`; none for None.  Raises click's error for other text."""
    seeds: list[int] = []
    for part in (text or "").split(",") if text else ():
        low, dots, high = part.strip().partition("..")
        first = whole_number(low)
        last = whole_number(high) if dots else first
        if first is None or last is None:
            raise click.BadParameter(f"{part!r} is no seed; write 1..50 or 3,5,8")
        seeds += range(first, last + 1)
    return tuple(seeds)


def task_lines(exercise: Exercise) -> Iterator[str]:
    """The task, the goals with their points, and the parts that may be changed."""
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
    yield f"{grade.points} of {grade.of} points, {counted(len(grade.seeds), 'run')}"
    for goal in grade.goals:
        yield f"  {goal.points} of {goal.of}  {goal.text}"
        if not goal.reached:
            runs = f"{goal.failed_runs} of {counted(len(grade.seeds), 'run')}"
            yield f"          missed in {runs}; seed {goal.first_failing_seed}: {goal.why}"
    if grade.first_failing is None:
        return

    result = grade.first_failing
    yield from ("", f"The first of these runs, seed {result.seed}:")
    lines = list(timeline_lines(result))
    yield from lines[:MAX_EVENTS]
    if len(lines) > MAX_EVENTS:
        yield f"... and {len(lines) - MAX_EVENTS} more events"
    yield from (f"  {line}" for line in result.verdict.lines())
    yield f"replay: {result.replay}"


def _exercise(word: str) -> Exercise:

    try:
        return exercise_of(word)
    except (LookupError, ScenarioError) as error:
        fail(CommandError(str(error.args[0]), 2))
