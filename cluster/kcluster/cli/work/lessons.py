"""The work of `kcluster learn` that plays nothing: the list of lessons, a teacher's notes.

Owns: their lines.  Never: reads a lesson (learn/course.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.click_tools import fail, print_json
from kcluster.cli.errors import CommandError
from kcluster.cli.work.learn import print_markdown
from kcluster.learn.course import all_lessons, lesson_of
from kcluster.learn.pages import notes_blocks
from kcluster.learn.telling import head_of
from kcluster.scenario.language.loader import ScenarioError


def list_lessons(as_json: bool) -> None:
    """Print all lessons."""
    lessons = all_lessons()
    if as_json:
        for each in lessons:
            values = {"number": each.number, "name": each.name, "title": each.title}
            print_json({**values, "minutes": each.keys.minutes})
        return
    print("Lessons (kcluster learn 1):")
    for each in lessons:
        print(f"  {each.number}  {each.title}")
    print("\nExercises, one per lesson: kcluster exercise list")


def print_notes(word: str) -> None:
    """Print the teacher's notes of the lesson of this number, name or file."""
    try:
        lesson = lesson_of(word)
    except (LookupError, ScenarioError) as error:
        fail(CommandError(str(error.args[0]), 2))
    blocks = list(notes_blocks(lesson, with_screens=False)) or ["This lesson has no notes."]
    print_markdown("\n\n".join([f"# {head_of(lesson)}", *blocks]))
