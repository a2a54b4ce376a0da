"""The lessons: each is played, and each question has exactly one right answer in its run."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from kcluster.learn.course import all_lessons, lesson_folders, lesson_of
from kcluster.learn.lesson import Lesson, load_lesson
from kcluster.learn.playing import AmbiguousQuestionError, PartPlayed, play_lesson
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario

LESSONS = all_lessons()


def test_course__lessons_are_numbered_from_one() -> None:
    assert [lesson.number for lesson in LESSONS] == list(range(1, len(LESSONS) + 1))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_course__each_question_has_one_right_answer_in_the_run(lesson: Lesson) -> None:
    played = play_lesson(lesson)
    assert played.result.passed, played.result.failures
    asked = [each for each in played.parts if each.part.ask is not None]
    assert asked
    assert all(each.right is not None for each in asked)
    assert played.untrue == (), "the script for teachers says what the run does not show"


@pytest.mark.parametrize("folder", lesson_folders(), ids=lambda folder: folder.name)
def test_course__each_file_begins_with_its_title(folder: Path) -> None:
    for name in ("scenario.yaml", "start.yaml"):
        first = (folder / name).read_text("utf-8").splitlines()[0]
        assert first.startswith("# ")
        assert first.endswith((".", "?"))


def test_course__a_lesson_is_found_by_number_and_by_name() -> None:
    assert lesson_of("1").name == lesson_of("leader").name == "leader"


def test_course__a_wrong_name_gets_the_nearest_one() -> None:
    with pytest.raises(LookupError, match=r"leder: no such lesson; did you mean leader\?"):
        lesson_of("leder")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_course__words_before_a_part_do_not_tell_it_as_past(lesson: Lesson) -> None:
    """On the page they stand beside a cluster for which all of it is still to come."""
    for part in lesson.parts:
        before = f"{part.text} {'' if part.ask is None else part.ask.question}".lower()
        assert not re.search(r"\bnow\b|\bhas been\b|\bjust (died|happened)", before), part.title


def test_course__choices_stand_in_a_drawn_order() -> None:
    """The files have most right answers at the first two places."""
    asked = [part.ask for lesson in LESSONS for part in lesson.parts if part.ask is not None]
    of_files = [
        [choice["text"] for choice in part["ask"]["choices"]]
        for folder in lesson_folders()
        for part in yaml.safe_load((folder / "lesson.yaml").read_text("utf-8"))["parts"]
        if "ask" in part
    ]
    drawn = [[choice.text for choice in question.choices] for question in asked]
    firsts = Counter(
        own.index(each[0]) for own, each in zip(of_files, drawn, strict=True) if len(own) == 3
    )
    assert set(firsts) == {0, 1, 2}
    assert [sorted(each) for each in drawn] == [sorted(each) for each in of_files]


SCENARIO = """\
# A leader dies.
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, name: shop, rate: 2/s}
steps:
  - {at: 5s, kill: 1}
duration: 20s
"""
LESSON = """\
title: A lesson of a teacher
intro: Who leads?
scenario: scenario.yaml
parts:
  - title: Broker 1 dies
    until: 18s
    ask:
      question: Who leads now?
      choices:
        - {text: Broker 2, when: leader(orders-0) = 2}
        - {text: Broker 3, when: leader(orders-0) = 3}
"""


def teachers_own(folder: Path, text: str) -> Path:
    (folder / "scenario.yaml").write_text(SCENARIO, "utf-8")
    path = folder / "lesson.yaml"
    path.write_text(text, "utf-8")
    return path


def right_text(played: PartPlayed) -> str:
    assert played.part.ask is not None
    assert played.right is not None
    return played.part.ask.choices[played.right].text


def test_lesson__a_teacher_may_write_one(tmp_path: Path) -> None:
    played = play_lesson(load_lesson(teachers_own(tmp_path, LESSON)))
    (part,) = played.parts
    assert right_text(part) == "Broker 2"
    assert [logs.leader for logs in part.logs] == [2]
    assert [note.event.kind for note in part.notes][:2] == ["broker_down", "broker_fenced"]


def test_lesson__the_answer_is_that_of_the_run(tmp_path: Path) -> None:
    path = teachers_own(tmp_path, LESSON)
    path.with_name("scenario.yaml").write_text(SCENARIO.replace("[1, 2, 3]", "[1, 3, 2]"), "utf-8")
    (part,) = play_lesson(load_lesson(path)).parts
    assert right_text(part) == "Broker 3"


def test_lesson__a_part_may_show_the_same_time_of_another_scenario(tmp_path: Path) -> None:
    part = LESSON[LESSON.index("  - title") :].replace("18s", "19s\n    scenario: other.yaml")
    path = teachers_own(tmp_path, LESSON + part)
    (tmp_path / "other.yaml").write_text(SCENARIO.replace("[1, 2, 3]", "[1, 3, 2]"), "utf-8")
    own, other = play_lesson(load_lesson(path)).parts
    assert (right_text(own), right_text(other)) == ("Broker 2", "Broker 3")
    kinds = [note.event.kind for note in other.notes]
    assert kinds[:2] == ["broker_down", "broker_fenced"]  # from the start of its run on
    assert other.counts["sent"]["shop"] == own.counts["sent"]["shop"] + 2


def test_lesson__a_question_that_no_choice_answers_is_an_error(tmp_path: Path) -> None:
    text = LESSON.replace("leader(orders-0) = 2", "leader(orders-0) = 1")
    lesson = load_lesson(teachers_own(tmp_path, text))
    with pytest.raises(AmbiguousQuestionError, match="Broker 1 dies: 0 choices are right: none"):
        play_lesson(lesson)


def test_lesson__every_problem_is_reported_with_its_place(tmp_path: Path) -> None:
    text = LESSON.replace("until", "untill").replace("leader(orders-0) = 3", "leader(orders-0)")
    with pytest.raises(ScenarioError) as caught:
        load_lesson(teachers_own(tmp_path, text))
    problems = [(problem.line, problem.path) for problem in caught.value.problems]
    assert problems == [
        (5, "parts[0].until"),
        (6, "parts[0].untill"),
        (11, "parts[0].ask.choices[1].when"),
    ]


def test_lesson__a_choice_needs_something_that_makes_it_right(tmp_path: Path) -> None:
    text = LESSON.replace("{text: Broker 3, when: leader(orders-0) = 3}", "{text: Broker 3}")
    with pytest.raises(
        ScenarioError, match="Broker 3 needs exactly one of when, checks and failing"
    ):
        load_lesson(teachers_own(tmp_path, text))


def test_course__scenarios_of_lessons_are_plain_scenarios() -> None:
    for lesson in LESSONS:
        assert isinstance(lesson.scenario, Scenario)
        assert lesson.scenario.story
