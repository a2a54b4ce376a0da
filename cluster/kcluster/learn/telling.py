"""A lesson as text: its parts, the questions, and the events.

Owns: the lines, as Markdown, for a terminal and the pages of docs/course.  Never: asks, prints,
plays. Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import structs

from kcluster.events.render import plain
from kcluster.learn.ladder import ladder_lines, rungs_of
from kcluster.learn.lesson import COUNTS, ERRORS, EVENTS, GROUPS, LOGS, VERDICT, Lesson, Question
from kcluster.learn.playing import PartPlayed, Searched
from kcluster.runs.bars import Glyph
from kcluster.runs.log_drawing import drawing_of
from kcluster.scenario.report import REBALANCES, noted_lines, timeline_lines

MAX_EVENTS: Final = 24


def head_of(lesson: Lesson) -> str:
    """The title of a lesson: `Lesson 1: Leader, followers and the high watermark (10 minutes)`."""
    number = f"Lesson {lesson.number}: " if lesson.number else ""
    return f"{number}{lesson.title} ({lesson.keys.minutes} minutes)"


def question_lines(question: Question) -> Iterator[str]:
    """The question and its numbered choices."""
    yield from question.question.strip().splitlines()
    yield ""
    yield from (f"{at}. {choice.text}" for at, choice in enumerate(question.choices, 1))


def answer_line(question: Question, right: int, given: int | None) -> str:
    """The line with the right choice; `given`: the student's choice, from 0, None for no answer."""
    head = f"{right + 1}. {question.choices[right].text}"
    if given is None:
        return f"Answer: {head}"
    if given == right:
        return f"Right: {head}"
    return f"Not quite. You chose {given + 1}; the answer is {head}"


def seen_lines(played: PartPlayed) -> Iterator[str]:
    """The events of a part without the drawing of the logs: events, requests, errors, counts, and
    the verdict without outages."""
    shows = played.part.shows
    if EVENTS in shows or GROUPS in shows:
        yield from _event_lines(played)
    if client := played.part.requests_of:
        yield f"requests of {client}:"
        yield from ladder_lines(rungs_of(played.requests, client), played.began_ms)
    if ERRORS in shows:
        yield from _error_lines(played)
    if COUNTS in shows:
        yield "records: " + "  ".join(_count(word, by) for word, by in played.counts.items())
    if played.searched is not None:
        yield from _search_lines(played.searched)
    if VERDICT in shows:
        shown = structs.replace(played.result.verdict, windows=(), errors=(), degraded=())
        yield from shown.lines(verbose=True)


def log_lines(played: PartPlayed, glyph: Glyph) -> list[str]:
    """The replicas' logs at the end of a part; nothing if the part does not show them."""
    if LOGS not in played.part.shows:
        return []
    return [line.rstrip() for logs in played.logs for line in drawing_of(plain(logs), glyph)]


def _event_lines(played: PartPlayed) -> Iterator[str]:
    has_groups = GROUPS in played.part.shows
    shown = [note for note in played.notes if has_groups or not isinstance(note.event, REBALANCES)]
    lines = [line for _, line in noted_lines(shown, played.began_ms)]
    yield from lines[:MAX_EVENTS] or ["nothing changes in the cluster"]
    if len(lines) > MAX_EVENTS:
        yield f"... and {len(lines) - MAX_EVENTS} more events"


def _search_lines(searched: Searched) -> Iterator[str]:
    """The numbers of a search, then the first run that failed."""
    failing, first = searched.failing, searched.first
    if first is None:
        yield f"{searched.runs} runs: all as expected"
        return
    seeds = ", ".join(map(str, failing))
    yield f"{searched.runs} runs: {len(failing)} not as expected, with the seeds {seeds}"
    yield ""
    yield f"seed {first.seed}:"
    yield from list(timeline_lines(first))[:MAX_EVENTS]
    yield from (f"  {line}" for line in first.verdict.lines()[-1:])


def _count(word: str, by_client: Mapping[str, int]) -> str:
    """The counts in a line: `acked 46`, or for several clients `acked 46 (bank 6, shop 40)`."""
    shown = ", ".join(f"{client} {count:,}" for client, count in sorted(by_client.items()))
    each = f" ({shown})" if len(by_client) > 1 else ""
    return f"{word} {sum(by_client.values()):,}{each}"


def _error_lines(played: PartPlayed) -> Iterator[str]:
    for each in played.errors:
        times = "once" if each.count == 1 else f"{each.count:,} times"
        yield f"{each.client} got {each.error} for its {each.api} {times}"
    if not played.errors:
        yield "no client got an error"
