"""The grade of an answer: the goals that it reaches in every run, with seeds that the student has
not seen.

Owns: the seeds, the runs, the points.  Never: has words for a terminal (the verb does).
Kafka: no counterpart.

The seeds follow from the exercise, the answer and, if there is one, the teacher's secret.  So equal
answers get equal points, and a changed answer gets other seeds: a student cannot fit an answer to
the seeds of its last grade.  A teacher can name the seeds, and use them for all students.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.files.tree import Node, from_yaml
from kcluster.json_types import JsonObject
from kcluster.learn.edits import answer_key, forbidden_edits
from kcluster.learn.exercises import Exercise
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.outcome import FailedCheck
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

MAX_SEED: Final = 1_000_000
"""The limit of hidden seeds, which are short enough to be typed."""
MAX_REASONS: Final = 3


class GoalGrade(Struct, frozen=True):
    """A goal and the number of runs that missed it.  `points`: the points given;
    `first_failing_seed`: None if every run reached the goal; `why`: the reasons in the first
    failing run."""

    check: str
    text: str
    points: int
    of: int
    failed_runs: int
    first_failing_seed: int | None
    why: str

    @property
    def reached(self) -> bool:
        return self.first_failing_seed is None


class Grade(Struct, frozen=True):
    """The grade of an answer.  `first_failing`: the first run that missed a goal, None if there is
    none."""

    exercise: Exercise
    answer: Scenario
    seeds: tuple[int, ...]
    goals: tuple[GoalGrade, ...]
    first_failing: RunResult | None

    @property
    def points(self) -> int:
        return sum(goal.points for goal in self.goals)

    @property
    def of(self) -> int:
        return self.exercise.points

    @property
    def passed(self) -> bool:
        """Whether every goal was reached in every run."""
        return self.points == self.of

    def values(self) -> JsonObject:
        """The grade for JSON."""
        failing = self.first_failing
        return {
            "exercise": self.exercise.name,
            "number": self.exercise.number,
            "file": self.answer.source,
            "points": self.points,
            "of": self.of,
            "passed": self.passed,
            "runs": len(self.seeds),
            "goals": [
                {
                    "check": goal.check,
                    "text": goal.text,
                    "points": goal.points,
                    "of": goal.of,
                    "failed_runs": goal.failed_runs,
                    "first_failing_seed": goal.first_failing_seed,
                    "why": goal.why,
                }
                for goal in self.goals
            ],
            "first_failing_seed": None if failing is None else failing.seed,
            "replay": None if failing is None else failing.replay,
        }


def _no_progress(done: int, of: int) -> None:
    pass


def grade_file(
    exercise: Exercise,
    path: str,
    seeds: Sequence[int] = (),
    secret: str = "",
    progress: Callable[[int, int], None] = _no_progress,
) -> Grade:
    """The grade of the answer in a file, as `grade_answer` gives it.  ScenarioError lists every
    problem of the file, as for any scenario, or every change that the exercise forbids."""
    return grade_answer(exercise, Scenario.load(path), seeds, secret, progress)


def grade_answer(
    exercise: Exercise,
    answer: Scenario,
    seeds: Sequence[int] = (),
    secret: str = "",
    progress: Callable[[int, int], None] = _no_progress,
) -> Grade:
    """The grade of an answer.  Without `seeds`, hidden seeds are used, as many as the exercise has
    runs.  ScenarioError lists every change that the exercise forbids."""
    start_tree, answer_tree = _tree(exercise.start), _tree(answer)
    problems = forbidden_edits(start_tree, answer_tree, exercise.start.may_edit, answer.source)
    if problems:
        raise ScenarioError(problems)
    chosen = tuple(seeds) or hidden_seeds(exercise, answer_key(answer_tree), secret)
    return _grade(exercise, answer, chosen, progress)


def hidden_seeds(exercise: Exercise, answer: str, secret: str = "") -> tuple[int, ...]:
    """The hidden seeds of this answer, as many as the exercise has runs."""
    head = f"{exercise.name}\0{secret}\0{answer}"
    hashes = (hashlib.sha256(f"{head}\0{at}".encode()) for at in range(exercise.keys.runs))
    return tuple(int.from_bytes(each.digest()[:8], "big") % MAX_SEED for each in hashes)


def _tree(scenario: Scenario) -> Node:
    node, _ = from_yaml(scenario.text, scenario.source)
    assert node is not None, "it was read before"
    return node


def _grade(
    exercise: Exercise,
    answer: Scenario,
    seeds: tuple[int, ...],
    progress: Callable[[int, int], None],
) -> Grade:
    goals = exercise.keys.goals
    missed: dict[str, list[tuple[int, str]]] = {check: [] for check in goals}
    first_failing = None
    for number, seed in enumerate(seeds, 1):
        result = run_scenario(answer, "virtual", seed)
        for check, why in _missed(result.failed, list(goals)).items():
            missed[check].append((seed, why))
            first_failing = first_failing or result
        progress(number, len(seeds))
    grades = [
        GoalGrade(
            check=check,
            text=goal.text,
            points=0 if missed[check] else goal.points,
            of=goal.points,
            failed_runs=len(missed[check]),
            first_failing_seed=missed[check][0][0] if missed[check] else None,
            why=missed[check][0][1] if missed[check] else "",
        )
        for check, goal in goals.items()
    ]
    return Grade(exercise, answer, seeds, tuple(grades), first_failing)


def _missed(failed: Sequence[FailedCheck], goals: Sequence[str]) -> dict[str, str]:
    """The goals that a run missed, each with the reasons.  A failure that concerns no goal, such as
    an action that could not be performed, misses all of them."""
    found: dict[str, list[str]] = {}
    for each in failed:
        for goal in [each.check] if each.check in goals else goals:
            found.setdefault(goal, []).append(each.text)
    return {goal: "; ".join(texts[:MAX_REASONS]) for goal, texts in found.items()}
