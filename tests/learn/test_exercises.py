"""The exercises: right answers get all points, wrong ones miss the goal that they should miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.config.files.tree import Node, from_yaml
from kcluster.learn.edits import answer_key, forbidden_edits
from kcluster.learn.exercises import all_exercises, exercise_of
from kcluster.learn.grading import grade_file, hidden_seeds
from kcluster.scenario.language.loader import ScenarioError
from tests.learn.answers import RIGHT, WRONG, Answer

EXERCISES = all_exercises()
SEEDS = (11, 12)
"""Fewer than a student's answer is played with: these tests must be fast.  A wrong answer is wrong
with the first."""


def written(answer: Answer, folder: Path) -> str:
    text = exercise_of(f"{answer.exercise}").start.text
    for old, new in answer.edits:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "mine.yaml"
    path.write_text(text, "utf-8")
    return str(path)


def test_exercises__each_has_a_right_answer_and_a_wrong_one() -> None:
    names = {exercise.name for exercise in EXERCISES}
    assert {answer.exercise for answer in RIGHT} == names
    assert {answer.exercise for answer in WRONG} == names


@pytest.mark.parametrize("answer", RIGHT, ids=lambda answer: answer.exercise)
def test_exercises__a_right_answer_gets_all_points(answer: Answer, tmp_path: Path) -> None:
    grade = grade_file(exercise_of(answer.exercise), written(answer, tmp_path), SEEDS)
    assert [goal.why for goal in grade.goals if not goal.reached] == []
    assert grade.passed
    assert grade.points == 10


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: f"{answer.exercise}: {answer.what}")
def test_exercises__a_wrong_answer_misses_its_goal(answer: Answer, tmp_path: Path) -> None:
    path = written(answer, tmp_path)
    grade = grade_file(exercise_of(answer.exercise), path, SEEDS[:1])
    assert tuple(goal.check for goal in grade.goals if not goal.reached) == answer.missed
    assert grade.first_failing is not None
    assert grade.first_failing.replay == (
        f"kcluster scenario run {path} --clock virtual --seed {grade.first_failing.seed}"
    )
    assert grade.points == sum(g.of for g in grade.goals if g.check not in answer.missed)


def test_exercises__a_goal_counts_the_runs_that_missed_it(tmp_path: Path) -> None:
    answer = next(answer for answer in WRONG if answer.exercise == "acks_one")
    grade = grade_file(exercise_of("acks_one"), written(answer, tmp_path), SEEDS)
    missed = [goal for goal in grade.goals if not goal.reached]
    assert [goal.first_failing_seed for goal in missed] == [SEEDS[0]] * len(answer.missed)
    assert grade.first_failing is not None
    assert grade.first_failing.seed == SEEDS[0]


def test_exercises__what_may_not_be_changed_is_reported_with_its_path(tmp_path: Path) -> None:
    edits = (("rate: 10/s, ", ""), ("brokers: 4", "brokers: 5"), ("at: 10s", "at: 5s"))
    path = written(Answer("leader", "", edits), tmp_path)
    with pytest.raises(ScenarioError) as caught:
        grade_file(exercise_of("leader"), path)
    assert [problem.path for problem in caught.value.problems] == [
        "topology.brokers",
        "workload.producers.rate",
        "steps[0].at",
    ]
    assert str(caught.value.problems[0]) == (
        f"{path}:3:12 topology.brokers: 4 may not be changed; you may change"
        " topology.topics.orders.assignment"
    )


def tree(text: str) -> Node:
    node, problems = from_yaml(text, "mine.yaml")
    assert node is not None
    assert problems == []
    return node


START = "topology: {topics: {orders: {}}}\nsteps:\n  - {at: 1s, kill: 1}\n"
CONFIG = ("topology.topics.orders.config",)


@pytest.mark.parametrize(
    ("answer", "may_edit", "paths"),
    [
        (START, CONFIG, []),
        (START.replace("{}", "{config: {min.insync.replicas: 2}}"), CONFIG, []),
        (START.replace("{}", "{config: {a: 1}}"), (f"{CONFIG[0]}.b",), [f"{CONFIG[0]}.a"]),
        (START.replace("{}", "{partitions: 2}"), CONFIG, ["topology.topics.orders.partitions"]),
        ("seed: 5\nname: mine\n" + START, CONFIG, []),
        (START + "  - {at: 2s, start: 1}\n", CONFIG, ["steps"]),
        (START + "  - {at: 2s, start: 1}\n", ("steps",), []),
        ("topology: {topics: {orders: {}}}\n", CONFIG, ["steps"]),
        (START.replace("1s", "2s"), ("steps[0].at",), []),
    ],
)
def test_edits__only_the_allowed_paths_may_differ(
    answer: str, may_edit: tuple[str, ...], paths: list[str]
) -> None:
    problems = forbidden_edits(tree(START), tree(answer), may_edit, "mine.yaml")
    assert [problem.path for problem in problems] == paths


def test_seeds__follow_from_the_answer_not_from_its_layout() -> None:
    exercise = EXERCISES[0]
    seeds = hidden_seeds(exercise, answer_key(tree(START)))
    spaced = "# mine\nseed: 7\n" + START.replace("{at: 1s, kill: 1}", "{at:  1s,  kill:  1}")
    assert len(seeds) == exercise.keys.runs
    assert hidden_seeds(exercise, answer_key(tree(spaced))) == seeds
    assert hidden_seeds(exercise, answer_key(tree(START.replace("1s", "2s")))) != seeds
    assert hidden_seeds(exercise, answer_key(tree(START)), "of the teacher") != seeds
