"""Write docs/course: a page and a teacher's notes for each lesson, and the list of lessons.

    python tools/course_pages.py

Owns: which files are written.  Never: words of its own: they are the lessons'
(cluster/kcluster/learn/lessons).  `make reference` runs it; tests/learn/test_pages.py fails if a
page is out of date.  tools/course_screens.py takes the screenshots of the notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kcluster.learn.course import all_lessons
from kcluster.learn.exercises import all_exercises
from kcluster.learn.pages import (
    MADE_BY,
    lesson_page,
    lesson_pictures,
    notes_name,
    notes_page,
    page_name,
)
from kcluster.learn.playing import play_lesson

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "course"
INTRO: Final = """\
# The course

Each lesson takes ten minutes: it plays a failure, asks what will happen, and shows it. The answers
come from the run itself. At its end is an exercise that is graded over runs that you have not seen.

In a terminal, `kcluster learn 1` asks the questions one by one. These pages have the same text,
with the answers folded. Without an install, a browser [plays the whole course
alone](../how-to/course-site.md). For teachers: [how to use the course](teaching.md)."""


def pages() -> Iterator[tuple[str, str]]:
    """(file, text) of each page and picture."""
    lessons = all_lessons()
    for lesson, exercise in zip(lessons, all_exercises(), strict=True):
        played = play_lesson(lesson)
        yield page_name(lesson), lesson_page(played, exercise)
        yield from lesson_pictures(played).items()
        yield notes_name(lesson), notes_page(lesson)
    rows = [
        f"| {lesson.number} | [{lesson.title}]({page_name(lesson)}) | {exercise.keys.title} |"
        for lesson, exercise in zip(lessons, all_exercises(), strict=True)
    ]
    table = "\n".join(["| | lesson | exercise |", "|---|---|---|", *rows])
    yield "index.md", f"{MADE_BY}\n\n{INTRO}\n\n{table}\n"


if __name__ == "__main__":
    (FOLDER / "pictures").mkdir(parents=True, exist_ok=True)
    for file, text in pages():
        (FOLDER / file).write_text(text, encoding="utf-8")
