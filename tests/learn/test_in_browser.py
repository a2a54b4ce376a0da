"""What the course's site asks of Python; the site itself is tested in tests/course_site."""

from __future__ import annotations

import json

import pytest

from kcluster.learn import in_browser
from kcluster.learn.course import lesson_folders
from kcluster.learn.exercises import exercise_of
from kcluster.scenario.play import running

SMALL = "topology: {brokers: 1}\nduration: 1s"


def test_contents__all_lessons_and_scenarios() -> None:
    contents = json.loads(in_browser.contents())
    numbers = [each["number"] for each in contents["lessons"]]
    assert numbers == list(range(1, len(lesson_folders()) + 1))
    texts = {each["name"]: each["text"] for each in contents["scenarios"]}
    assert "topology:" in texts["zombie_leader"]


def test_lesson__parts_follow_each_other() -> None:
    lesson = json.loads(in_browser.lesson(1))
    parts = lesson["parts"]
    assert [part["from"] for part in parts] == [0, *(part["until"] for part in parts[:-1])]
    assert parts[0]["choices"][parts[0]["right"]].startswith("Broker 1")
    assert f"<title>{lesson['title']}: valid</title>" in lesson["page"]
    assert lesson["exercise"]["text"] == exercise_of("1").start.text


def test_search__comes_after_the_first_picture() -> None:
    lesson = json.loads(in_browser.lesson(11))
    played, searched, _ = lesson["parts"]
    assert (played["searches"], played["choices"][played["right"]]) == (0, "No.")
    assert (searched["searches"], searched["right"]) == (40, None)
    in_browser._search(11, 1).of = 2
    assert json.loads(in_browser.search(11, 1)) == {"done": 1, "of": 2}
    found = json.loads(in_browser.search(11, 1))
    assert searched["choices"][found["right"]] == "None, as before."
    assert "2 runs: all as expected" in found["seen"]


def test_lesson__a_part_with_another_scenario_has_its_page_and_begins_with_it() -> None:
    lesson = json.loads(in_browser.lesson(12))
    (repaired,) = [part for part in lesson["parts"] if part["page"]]
    assert repaired["title"] == "The same minute with the fix"
    assert (repaired["from"], repaired["until"]) == (0, 29_000)
    assert f"<title>{lesson['title']}: valid</title>" in repaired["page"]
    assert f"<title>{lesson['title']}: invalid</title>" in lesson["page"]


def test_run__problems_have_places() -> None:
    problems = json.loads(in_browser.run("topology: {brokers: many}", "mine.yaml"))["problems"]
    assert [(each["line"], each["column"]) for each in problems] == [(1, 21)]
    assert problems[0]["text"].startswith("mine.yaml:1:21 topology.brokers: ")


def test_run__reports_while_it_plays() -> None:
    reports = []
    run = json.loads(in_browser.run(SMALL, "a.yaml", 3, lambda *each: reports.append(each)))
    assert reports[-1] == (1000, 1000)
    assert "seed 3" in run["lines"]


def test_run__a_bug_is_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AssertionError("no end")

    monkeypatch.setattr(running, "run_virtual", fails)
    crash = json.loads(in_browser.run(SMALL, "a.yaml"))
    assert crash["lines"].startswith("a: CRASHED  (virtual, seed 1): AssertionError: no end")


def test_grade__forbidden_edits_have_places() -> None:
    text = exercise_of("5").start.text.replace("verdict: valid", "verdict: invalid")
    (problem,) = json.loads(in_browser.grade(5, text, "mine.yaml"))["problems"]
    assert problem["text"].startswith(f"mine.yaml:{problem['line']}:")
    assert "checks.verdict" in problem["text"]
