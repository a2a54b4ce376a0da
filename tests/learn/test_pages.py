"""docs/course: each page is what the lessons say now."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from kcluster.learn.course import all_lessons
from kcluster.learn.pages import screen_name

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout_s(240)
def test_pages__docs_have_what_the_lessons_say() -> None:
    path = ROOT / "tools" / "course_pages.py"
    spec = importlib.util.spec_from_file_location("course_pages", path)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    written = dict(tool.pages())
    stale = [
        name
        for name, text in written.items()
        if not (tool.FOLDER / name).exists() or (tool.FOLDER / name).read_text("utf-8") != text
    ]
    assert stale == [], "run python tools/course_pages.py"
    files = [path for path in tool.FOLDER.rglob("*") if path.is_file()]
    there = {path.relative_to(tool.FOLDER).as_posix() for path in files}
    screens = {
        screen_name(lesson, sight) for lesson in all_lessons() for sight in lesson.keys.script
    }
    assert screens - there == set(), "run python tools/course_screens.py"
    assert there - {"teaching.md"} - screens == set(written)
