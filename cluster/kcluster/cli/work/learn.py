"""The work of `kcluster learn`: a lesson in the terminal.

Owns: asking the questions, the output.  Never: plays a lesson (learn/playing.py), knows an
answer.
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.config.files.numbers import whole_number
from kcluster.learn.course import lesson_of
from kcluster.learn.lesson import LessonPart, Question
from kcluster.learn.playing import AmbiguousQuestionError, LessonPlayed, PartPlayed, play_lesson
from kcluster.learn.telling import answer_line, head_of, log_lines, question_lines, seen_lines
from kcluster.plain_output import plain_console
from kcluster.runs.bars import block, digit
from kcluster.scenario.language.loader import ScenarioError

if TYPE_CHECKING:
    from rich.console import Console


class LessonStage(NamedTuple):
    """The part of a lesson beside the terminal, which plays it.  `show`: shows a part by its
    number, with the answer or without it.  `line`: takes a prompt, and whether an answer is
    wanted; returns the line that the user types, or gives on the page."""

    play: Callable[[LessonPart], object]
    show: Callable[[int, PartPlayed, bool], object]
    line: Callable[[str, bool], str]


def terminal_line(prompt: str, _: bool) -> str:
    """A line that the user types; empty at the end of the input."""
    if sys.stdin is None:  # it was closed before the process began
        print(prompt)
        return ""
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return ""


def played_lesson(word: str) -> LessonPlayed:
    """The lesson of this number, name or file, played in virtual time."""
    try:
        return play_lesson(lesson_of(word))
    except (LookupError, ScenarioError, AmbiguousQuestionError) as error:
        fail(CommandError(str(error.args[0]), 2))


def tell(played: LessonPlayed, shows_answers: bool, stage: LessonStage | None = None) -> None:
    """Tell a lesson in the terminal: its texts, questions and answers."""
    lesson = played.lesson
    line = terminal_line if stage is None else stage.line
    right = asked = 0
    print_markdown(f"# {head_of(lesson)}\n\n{lesson.keys.intro}")
    for number, each in enumerate(played.parts, 1):
        print_markdown(f"## {number}. {each.part.title}\n\n{each.part.text}")
        if stage is not None:
            if number > 1 and not shows_answers:
                _pause(line)  # the page still shows the answer of the part before
            stage.show(number, each, False)
        given = None
        if each.part.ask is not None:
            given = _ask(each.part.ask, shows_answers, line)
            asked += given is not None
            right += given is not None and given == each.right
        elif not shows_answers:
            _pause(line)
        if stage is not None:
            print(f"\nThe cluster runs to second {each.part.until_ms / 1000:g}.", flush=True)
            stage.play(each.part)
            stage.show(number, each, True)
        _show(each)
        _answer(each, given)
        print_markdown(each.part.after)
    print_markdown(f"## What to remember\n\n{lesson.keys.summary}")
    if asked:
        print(f"You answered {right} of {asked} questions correctly.")
    if lesson.number:
        print(f"Exercise: kcluster exercise show {lesson.number}")
    if stage is not None:
        _pause(line)  # the page closes with the lesson


def _ask(
    question: Question, shows_answers: bool, line_of: Callable[[str, bool], str]
) -> int | None:
    """The place of the student's choice; None at the end of the input."""
    _print_lines(["", *question_lines(question)])
    while not shows_answers:
        line = line_of(f"Your answer (1 to {len(question.choices)}, Enter for none): ", True)
        if not line:
            return None
        number = whole_number(line)
        if number is not None and 1 <= number <= len(question.choices):
            return number - 1
        print(f"{line}: there are the answers 1 to {len(question.choices)}")
    return None


def is_terminal() -> bool:
    """Whether a person types the input."""
    return sys.stdin is not None and sys.stdin.isatty()


def _pause(line: Callable[[str, bool], str]) -> None:
    if is_terminal():
        line("Press Enter to go on. ", False)


def _show(each: PartPlayed) -> None:

    print()
    _print_lines(f"    {line}" for line in seen_lines(each))
    if not sys.stdout.isatty():
        _print_lines(f"    {line}" for line in log_lines(each, digit))
        return
    console = _console()
    for line in log_lines(each, block):
        console.print(f"    {line}")


def _answer(each: PartPlayed, given: int | None) -> None:

    question = each.part.ask
    if question is None or each.right is None:
        return
    print()
    print(answer_line(question, each.right, given))
    print_markdown(question.because)


def print_markdown(text: str) -> None:
    """Print Markdown: rendered on a terminal, as plain text in a pipe."""
    if not text.strip():
        return
    if not sys.stdout.isatty():
        print(f"\n{text.strip()}")
        return

    from rich.markdown import Markdown

    print()
    _console().print(Markdown(text))


def _console() -> Console:

    return plain_console(highlight=False, soft_wrap=False, width=None)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
