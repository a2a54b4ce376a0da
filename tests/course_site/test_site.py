"""The course's site in a real browser, opened from a file: without a server, without a network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kcluster.learn.course import lesson_of
from kcluster.learn.playing import play_lesson
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryKind, library_path
from kcluster.scenario.play.running import run_scenario
from tests.runs.browser import CHROMIUM, Browser
from tools.course_site.build import build

PARTS = Path(__file__).parents[2] / "build/course-site"
ANSWER_S = 200.0
"""Python starts in the browser in 3 s, on a quiet machine."""
SCENARIO = "scram_user_unknown"
"""A scenario that needs the stand-in for OpenSSL."""
HANDS = """
const course = kclusterCourse;
await course.ready;
const card = () => document.getElementById("card").innerText;
const until = async (holds) => {
  while (!holds()) await new Promise((again) => setTimeout(again, 20));
};
const go = async (address) => {
  location.hash = address;
  await until(() => course.address === `#${address}`);
};
const press = (words) =>
  [...document.querySelectorAll("#card button")].find((each) => each.innerText === words).click();
const type = (text) => {
  const area = document.getElementById("text");
  area.value = text;
  area.dispatchEvent(new Event("input", { bubbles: true }));
};
const tried = async (words) => {
  press(words);
  await until(() => course.outcome);
  await course.frame.ready;
};
const picture = () => document.querySelector("iframe").contentDocument.body.innerText;
"""

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian's package: chromium)"),
    pytest.mark.skipif(shutil.which("node") is None, reason="no Node here"),
    pytest.mark.skipif(
        not (PARTS / ".done").exists(), reason="no Python for browsers here (make site-parts)"
    ),
    pytest.mark.long,
    pytest.mark.timeout_s(300),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the site's file."""
    return build(PARTS, tmp_path_factory.mktemp("site")).as_uri()


def test_site__lesson_exercise_and_scenario(browser: Browser, site: str) -> None:
    path = library_path(LibraryKind.SCENARIO, SCENARIO)
    assert path is not None
    steps = f"""
    const saw = {{ lesson: course.shown.trace, before: card(), picture: picture() }};
    press("Broker 1: it is the first in the replica list.");
    saw.after = card();
    await go("lesson=12");
    await until(() => course.shown && course.frame.page);
    saw.broken = picture();
    await course.showPart(3);
    saw.repaired = picture();
    await course.showPart(4);
    saw.again = picture();
    await go("exercise=2");
    await until(() => document.getElementById("text"));
    type(course.text.replace("9000", "nine"));
    await tried("Run");
    saw.problems = course.outcome.problems;
    press("Undo all changes");
    await tried("Check");
    saw.grade = card();
    saw.missed = picture();
    await go({json.dumps(f"scenario={SCENARIO}")});
    await tried("Run");
    saw.scenario = course.outcome.trace;
    saw.words = picture();
    return saw;
    """
    saw: dict[str, Any] = browser.look(site + "#lesson=1", HANDS + steps, answer_s=ANSWER_S)
    assert saw["lesson"] == play_lesson(lesson_of("1")).result.trace_hash
    assert "Which broker is the leader?" in saw["before"]
    assert "leader 1, epoch 0" in saw["picture"]
    assert "Right." not in saw["before"]
    assert "Right." in saw["after"]
    assert "6 lost-write" in saw["broken"]
    assert "6 lost-write" not in saw["repaired"], "the picture is that of the part's own run"
    assert "6 lost-write" in saw["again"]
    (problem,) = saw["problems"]
    assert problem["text"].startswith("exercise-2.yaml:5:39 ")
    assert "5 of 10 points, 10 runs" in saw["grade"]
    assert "missed in 10 of 10 runs" in saw["grade"]
    assert "Timeline" in saw["missed"]
    assert saw["scenario"] == run_scenario(Scenario.load(path), "virtual").trace_hash
    assert "as expected" in saw["words"]
