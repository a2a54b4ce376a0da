"""The lessons as Markdown pages, for docs/course and to hand out.

Owns: the layout of a page.  Never: adds words about Kafka, which are the lesson's. Kafka: no
counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kcluster.learn.exercises import Exercise
from kcluster.learn.lesson import LOGS, Lesson, Question, Sight
from kcluster.learn.pictures import logs_picture, spoken
from kcluster.learn.playing import LessonPlayed, PartPlayed
from kcluster.learn.telling import answer_line, question_lines, seen_lines

MADE_BY: Final = "<!-- Made by tools/course_pages.py from cluster/kcluster/learn/lessons. -->"
_WIDTH: Final = 150
"""The width at which lines of events are cut."""


def page_name(lesson: Lesson) -> str:
    """The file name of a lesson's page: `4-acks-one.md`."""
    return f"{lesson.number}-{lesson.name.replace('_', '-')}.md"


def notes_name(lesson: Lesson) -> str:
    """The file name of a lesson's notes for teachers: `4-acks-one-notes.md`."""
    return page_name(lesson).replace(".md", "-notes.md")


def screen_name(lesson: Lesson, sight: Sight) -> str:
    """The file of a screenshot: `screens/2-10.png`, second 10 of lesson 2."""
    return f"screens/{lesson.number}-{sight.at_ms / 1000:g}.png"


def notes_page(lesson: Lesson) -> str:
    """The notes of a lesson for teachers, with the script of what the class sees."""
    head = f"# {lesson.number}. {lesson.title}: notes for teachers"
    back = f"The lesson: [{lesson.title}]({page_name(lesson)})."
    run = f"On the projector: `kcluster learn {lesson.number} --page`; with `--vote`, phones vote."
    blocks = [MADE_BY, head, f"{back} {run}", *notes_blocks(lesson, with_screens=True)]
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def notes_blocks(lesson: Lesson, *, with_screens: bool) -> Iterator[str]:
    """The notes, then what the class sees, second by second, and the questions that it must be able
    to answer from the picture alone."""
    if lesson.keys.notes:
        yield "## What helps"
        yield lesson.keys.notes
    if lesson.keys.script:
        yield "## What the class sees"
    for sight in lesson.keys.script:
        at = f"Second {sight.at_ms / 1000:g}"
        yield f"### {at}"
        yield sight.sees
        if with_screens:
            yield f"![{at}: the view {sight.view}]({screen_name(lesson, sight)})"
        if sight.ask:
            yield f"**{sight.ask}** {sight.answer}"


def lesson_page(played: LessonPlayed, exercise: Exercise | None) -> str:
    """The page of a lesson; without an exercise, for a lesson of a teacher's own."""
    lesson = played.lesson
    number = f"{lesson.number}. " if lesson.number else ""
    blocks = [f"# {number}{lesson.title}", lesson.keys.intro]
    if lesson.number:
        blocks.insert(0, MADE_BY)
        blocks.insert(
            2, f"In the terminal: `kcluster learn {lesson.number}`; with a live cluster: `--page`."
        )
    for part, each in enumerate(played.parts, 1):
        blocks += _part(part, each, played)
    blocks += ["## What to remember", lesson.keys.summary]
    if lesson.number and lesson.keys.script:
        blocks.append(f"For teachers: [notes and a script]({notes_name(lesson)}).")
    if exercise is not None:
        blocks += exercise_blocks(exercise)
    return "\n\n".join(block.strip() for block in blocks if block.strip()) + "\n"


def exercise_blocks(exercise: Exercise) -> Iterator[str]:
    """The task, the goals, and the commands."""
    yield f"## Exercise: {exercise.keys.title}"
    yield exercise.keys.task
    yield "\n".join(
        ["| points | goal, in every run |", "|---|---|"]
        + [f"| {goal.points} | {goal.text} |" for goal in exercise.keys.goals.values()]
    )
    edits = ", ".join(f"`{path}`" for path in exercise.start.may_edit)
    yield f"You may change {edits}."
    number, file = exercise.number, f"exercise-{exercise.number}.yaml"
    commands = f"kcluster exercise start {number}\nkcluster exercise check {number} {file}"
    yield f"```sh\n{commands}\n```"
    if exercise.keys.hint:
        yield _folded("Hint", [exercise.keys.hint])


def lesson_pictures(played: LessonPlayed) -> dict[str, str]:
    """The pictures of a lesson's page, by their file names."""
    return {
        _picture(played.lesson, number, at): logs_picture(logs)
        for number, each in enumerate(played.parts, 1)
        if LOGS in each.part.shows
        for at, logs in enumerate(each.logs)
    }


def _picture(lesson: Lesson, part: int, at: int) -> str:
    """The file of a picture: `pictures/7-3-b.svg`, the second partition in part 3 of lesson 7."""
    letter = f"-{chr(ord('a') + at)}" if len(lesson.keys.partitions) > 1 else ""
    return f"pictures/{lesson.number}-{part}{letter}.svg"


def _part(number: int, each: PartPlayed, played: LessonPlayed) -> Iterator[str]:
    part = each.part
    yield f"## {part.title}"
    yield part.text
    if part.ask is not None and each.right is not None:
        yield _question(part.ask)
        yield _folded("Answer", [answer_line(part.ask, each.right, None), part.ask.because])
    lines = list(seen_lines(each))
    if lines:
        yield "What happens:"
        yield _block(lines)
    if LOGS in part.shows:
        for at, logs in enumerate(each.logs):
            yield f"![{spoken(logs)}]({_picture(played.lesson, number, at)})"
    yield part.after


def _question(question: Question) -> str:
    lines = list(question_lines(question))
    return "\n".join([f"**{question.question.strip()}**", *lines[lines.index("") :]])


def _folded(summary: str, blocks: Iterable[str]) -> str:
    """Text that the reader can unfold."""
    inside = "\n\n".join(block.strip() for block in blocks if block.strip())
    return f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"


def _block(lines: Iterable[str]) -> str:
    cut = (line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..." for line in lines)
    return "\n".join(["```text", *(line.rstrip() for line in cut), "```"])
