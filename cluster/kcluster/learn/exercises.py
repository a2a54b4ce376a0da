"""An exercise as a checked value: its task, its goals with points, the file with which students
begin.

Owns: Exercise, Goal, reading an exercise's file.  Never: grades (grading.py).
Kafka: no counterpart.

The goals are checks of `start.yaml`, the file with which students begin, so that `kcluster scenario
run` shows them too.  An exercise gives each of them points:

    goals:
      verdict: {points: 6, text: No acknowledged record is lost.}
      writes_resume: {points: 4, text: Writes never stop for more than 5 s.}
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from msgspec import Struct

from kcluster.config.files.fields import MapOf, StoryText, StructOf, Whole, text
from kcluster.config.files.problems import Problem, unknown
from kcluster.learn.course import folder_of, lesson_folders, number_and_name
from kcluster.learn.lesson import read_keys
from kcluster.learn.playing import keys_in
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.outcome import VERDICT

_FILE: Final = "exercise.yaml"


class Goal(Struct, frozen=True):
    """A condition that must hold in every run, with its points."""

    points: Annotated[int, Whole(1, 100), "Its points."]
    text: Annotated[str, text(), "The goal in words."]


class ExerciseKeys(Struct, frozen=True):
    """The keys of an exercise's file."""

    title: Annotated[str, text(), "Its title."]
    task: Annotated[str, StoryText(), "What to do."]
    start: Annotated[str, text(), "The file that students begin with, beside this one."]
    goals: Annotated[
        dict[str, Goal],
        MapOf(StructOf(Goal, "key of a goal"), "goals by check"),
        "What must hold, by the check in the start file.",
    ]
    runs: Annotated[int, Whole(1, 1_000), "The number of runs, each with its own seed."] = 20
    hint: Annotated[str, StoryText(), "What helps."] = ""


class Exercise(Struct, frozen=True):
    """An exercise, from `exercise_of`.  `number`: the number of its lesson, 0 for a teacher's own
    exercise; `start`: the file with which students begin."""

    number: int
    name: str
    keys: ExerciseKeys
    start: Scenario

    @property
    def points(self) -> int:
        """The most points of the exercise."""
        return sum(goal.points for goal in self.keys.goals.values())


def all_exercises() -> list[Exercise]:
    """The exercises of the course, in its order."""
    return [_load(folder / _FILE, *number_and_name(folder)) for folder in lesson_folders()]


def exercise_of(word: str) -> Exercise:
    """The exercise of this number or name, or of this file.  LookupError with the nearest name;
    ScenarioError for a file with problems."""
    if word.endswith((".yaml", ".yml")):
        return _load(Path(word), 0, Path(word).stem)
    folder = folder_of(word, "exercise")
    return _load(folder / _FILE, *number_and_name(folder))


def _load(path: Path, number: int, name: str) -> Exercise:
    keys: ExerciseKeys = read_keys(path, ExerciseKeys, "exercise")
    start = Scenario.load(path.parent / keys.start)
    checks = dict.fromkeys([VERDICT, *keys_in(start.checks)])
    problems = [
        Problem(str(path), 0, 0, f"goals.{key}", unknown(f"check in {keys.start}", key, checks))
        for key in keys.goals
        if key not in checks
    ]
    if not start.may_edit:
        problems.append(Problem(start.source, 0, 0, "may_edit", "missing; what may be changed?"))
    if problems:
        raise ScenarioError(problems)
    return Exercise(number, name, keys, start)
