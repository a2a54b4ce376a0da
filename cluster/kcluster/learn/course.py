"""The course that ships with kcluster: its lessons, and their files.

Owns: the order of the lessons, finding one by number or name.  Never: reads a file's content
(lesson.py, exercises.py). Kafka: no counterpart.

A lesson is a folder of `lessons/`: `lesson.yaml`, `scenario.yaml`, `exercise.yaml`, `start.yaml`.
The folder's name begins with the lesson's number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kcluster.config.files.problems import unknown
from kcluster.learn.lesson import Lesson, load_lesson

FOLDER: Final = Path(__file__).parent / "lessons"


def lesson_folders() -> list[Path]:
    """The folders of all lessons, in the order of the course."""
    return sorted((each for each in FOLDER.iterdir() if each.is_dir()), key=_number_of)


def all_lessons() -> list[Lesson]:
    """The whole course."""
    return [_load(folder) for folder in lesson_folders()]


def lesson_of(word: str) -> Lesson:
    """The lesson of this number or name, or of this file.  LookupError with the nearest name;
    ScenarioError for a file with problems."""
    if word.endswith((".yaml", ".yml")):
        return load_lesson(Path(word))
    return _load(folder_of(word))


def folder_of(word: str, what: str = "lesson") -> Path:
    """The folder of a lesson by number or name.  LookupError with the nearest name; `what`: the
    word for a lesson in its message."""
    folders = lesson_folders()
    for folder in folders:
        if word in (str(_number_of(folder)), folder.name, _name_of(folder)):
            return folder
    if word.isdecimal():
        raise LookupError(f"{word}: no such {what}; there are 1 to {len(folders)}")
    raise LookupError(f"{word}: {unknown(what, word, map(_name_of, folders))}")


def number_and_name(folder: Path) -> tuple[int, str]:
    """The number and the name of a lesson's folder: `4_acks_one` -> (4, `acks_one`)."""
    return _number_of(folder), _name_of(folder)


def _load(folder: Path) -> Lesson:
    return load_lesson(folder / "lesson.yaml", *number_and_name(folder))


def _number_of(folder: Path) -> int:
    return int(folder.name.partition("_")[0])


def _name_of(folder: Path) -> str:
    return folder.name.partition("_")[2]
