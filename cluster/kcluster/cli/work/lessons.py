"""The work of `kcluster learn` without a lesson: the list of all.

Owns: its lines.  Never: reads a lesson (learn/course.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.click_tools import print_json
from kcluster.learn.course import all_lessons


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
