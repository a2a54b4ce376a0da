"""`kcluster learn` and `kcluster exercise`, as they are typed; exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kcluster.cli.click_tools import kcluster
from kcluster.cli.work.exercise import seeds_of
from kcluster.learn.exercises import Exercise, all_exercises


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *words, typed="": CliRunner().invoke(kcluster, words, input=typed)


def test_learn__lists_the_lessons(run: Callable[..., Result]) -> None:
    result = run("learn")
    assert result.exit_code == 0
    assert "  1  Leader, followers and the high watermark" in result.output


def test_learn__asks_before_it_shows(run: Callable[..., Result]) -> None:
    result = run("learn", "1", typed="3\n9\n3\n1\n")
    assert result.exit_code == 0
    assert "Right: 3. Broker 1" in result.output
    assert "9: there are the answers 1 to 3" in result.output
    assert "Not quite. You chose 1; the answer is 2. Those of shop only" in result.output
    assert "You answered 2 of 3 questions correctly." in result.output
    assert result.output.index("How far the consumer may read") < result.output.index("acked 46")


def test_learn__without_answers_goes_on_to_the_end(run: Callable[..., Result]) -> None:
    result = run("learn", "leader", typed="")
    assert result.exit_code == 0
    assert "Answer: 3. Broker 1" in result.output
    assert "Exercise: kcluster exercise show 1" in result.output


def test_learn__an_unknown_lesson_is_refused(run: Callable[..., Result]) -> None:
    result = run("learn", "99")
    assert result.exit_code == 2
    assert "99: no such lesson; there are 1 to" in result.stderr
    assert "99: no such exercise; there are 1 to" in run("exercise", "show", "99").stderr


def test_exercise__from_its_task_to_its_points(run: Callable[..., Result]) -> None:
    assert "Exercise 1: " in run("exercise", "show", "1").output
    assert "exercise-1.yaml is written" in run("exercise", "start", "1").output
    assert run("exercise", "start", "1").exit_code == 2
    mine = Path("exercise-1.yaml")
    result = run("exercise", "check", "1", "exercise-1.yaml", "--seeds", "1..2", "--out", "runs")
    assert result.exit_code == 1
    assert "4 of 10 points, 2 runs" in result.output
    assert "missed in 2 of 2 runs; seed 1: writes_resume: after" in result.output
    assert "replay: kcluster scenario run exercise-1.yaml --clock virtual --seed 1" in result.output
    assert Path(result.output.rpartition("timeline: ")[2].strip()).exists()
    result = run("exercise", "check", "1", "exercise-1.yaml", "--seeds", "1", "--quiet")
    assert (result.exit_code, result.output) == (1, "4 of 10 points, 1 run\n")
    mine.write_text(mine.read_text("utf-8").replace("[[1, 2, 3]]", "[[1, 2, 4]]"), "utf-8")
    result = run("exercise", "check", "1", "exercise-1.yaml", "--seeds", "1,2", "--json")
    assert result.exit_code == 0
    grade = json.loads(result.output)
    assert (grade["points"], grade["of"], grade["passed"]) == (10, 10, True)
    assert grade["first_failing_seed"] is None


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda exercise: exercise.name)
def test_exercise__each_starts_with_a_file_that_can_be_graded(
    exercise: Exercise, run: Callable[..., Result]
) -> None:
    number = str(exercise.number)
    assert run("exercise", "start", number).exit_code == 0
    result = run("exercise", "check", number, f"exercise-{number}.yaml", "--seeds", "1", "--json")
    assert result.exit_code == 1, result.stderr
    grade = json.loads(result.output)
    assert 0 <= grade["points"] < grade["of"] == exercise.points


def test_exercise__a_file_that_cannot_be_graded_is_exit_code_2(run: Callable[..., Result]) -> None:
    run("exercise", "start", "1", "mine.yaml")
    mine = Path("mine.yaml")
    mine.write_text(mine.read_text("utf-8").replace("rate: 10/s", "rate: 1/s"), "utf-8")
    result = run("exercise", "check", "1", "mine.yaml")
    assert result.exit_code == 2
    assert "workload.producers.rate: 10/s may not be changed; you may change" in result.stderr


def test_exercise__seeds_are_numbers_and_ranges() -> None:
    assert seeds_of("1..3,7") == (1, 2, 3, 7)
    assert seeds_of(None) == ()


def test_learn__a_lesson_whose_question_the_run_does_not_answer_is_refused(
    run: Callable[..., Result],
) -> None:
    Path("scenario.yaml").write_text(
        "# Nothing happens.\ntopology: {brokers: 1, topics: {orders: {}}}\nduration: 2s\n", "utf-8"
    )
    Path("lesson.yaml").write_text(
        "title: Who?\nintro: Who leads?\nscenario: scenario.yaml\nparts:\n"
        "  - {title: One broker, until: 1s, ask: {question: Who, choices: [\n"
        "      {text: B, when: leader(orders-0) = 2}, {text: C, when: leader(orders-0) = 3}]}}\n",
        "utf-8",
    )
    result = run("learn", "lesson.yaml")
    assert result.exit_code == 2
    assert result.stderr == "kcluster: One broker: 0 choices are right: none\n"


def test_learn__notes_for_teachers(run: Callable[..., Result]) -> None:
    result = run("learn", "2", "--notes")
    assert result.exit_code == 0
    assert "### Second 10" in result.output
    assert "**Why is the producer waiting?** Its leader is dead" in result.output
    assert run("learn", "99", "--notes").exit_code == 2
    assert "This lesson has no notes." in run_without_notes(run)


def run_without_notes(run: Callable[..., Result]) -> str:
    Path("scenario.yaml").write_text("# Nothing.\ntopology: {brokers: 1}\nduration: 2s\n", "utf-8")
    parts = "parts: [{title: All of it, until: 1s}]\n"
    text = f"title: Mine\nintro: Nothing happens.\nscenario: scenario.yaml\n{parts}"
    Path("lesson.yaml").write_text(text, "utf-8")
    return run("learn", "lesson.yaml", "--notes").output


def test_learn__a_vote_is_for_the_page(run: Callable[..., Result]) -> None:
    result = run("learn", "2", "--vote")
    assert result.exit_code == 2
    assert "--vote is for --page" in result.stderr
