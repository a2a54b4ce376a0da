"""The course in a browser without a server: the functions that its page calls.

Owns: these five functions, and their answers as JSON.  Never: plays, judges, draws: the
answers carry the page of a run (runs/page/), as a run directory does.  Kafka: no counterpart.

tools/course_site/worker.js calls these functions under Pyodide.  Texts of users become problems
with their places, and bugs of kcluster become the report of a crash, so that no call raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from textwrap import dedent

import msgspec
from msgspec import structs

from kcluster.config.files.problems import ProblemsError
from kcluster.json_types import JsonObject
from kcluster.learn.course import all_lessons, lesson_of
from kcluster.learn.exercises import Exercise, exercise_of
from kcluster.learn.grading import grade_answer
from kcluster.learn.lesson import Lesson
from kcluster.learn.playing import LessonPlayed, PartPlayed, PartSearch, after_search, play_lesson
from kcluster.learn.telling import seen_lines
from kcluster.operations.errors import ClusterError
from kcluster.runs.page.document import page_of_record
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryFile, LibraryKind, library_files
from kcluster.scenario.play.phases import RunCrash, RunResult
from kcluster.scenario.play.running import try_scenario
from kcluster.scenario.report import crash_lines, result_lines
from kcluster.version import __version__

Report = Callable[[int, int], None]
"""Called while Python works, with (done, all): ms of a run, or runs of a grade."""


def _no_report(done: int, of: int) -> None:
    pass


def contents() -> str:
    """The lessons, and the scenarios with their text."""
    return _json(
        version=__version__,
        lessons=[_heading(each) for each in all_lessons()],
        scenarios=[_scenario(each) for each in library_files(LibraryKind.SCENARIO)],
    )


def lesson(number: int) -> str:
    """A lesson with its run: each part with its question, the right choice and the events, the
    page of the run, and the exercise.  A part with another scenario has the `page` of that run, and
    begins when it does.  A part with `searches` lacks the right choice until `search` has played
    its runs."""
    played = _played(number)
    keys = played.lesson.keys
    return _json(
        **_heading(played.lesson),
        summary=keys.summary,
        partition="{}-{}".format(*keys.partitions[0]),
        trace=played.result.trace_hash,
        parts=list(_parts(played)),
        page=_page_of(played.result, played.lesson),
        exercise=_exercise(exercise_of(str(number))),
    )


def search(number: int, part: int) -> str:
    """Play the next run of the search of a lesson's part, counted from 0: `done` of `of` runs.  The
    answer to the last one has what `lesson` lacks of the part."""
    runs = _search(number, part)
    if runs.done < runs.of:
        runs.play_next()
    if runs.done < runs.of:
        return _json(done=runs.done, of=runs.of)
    played = _played(number)
    searched = after_search(played.parts[part], runs.found())
    return _json(done=runs.done, of=runs.of, **_findings(searched))


@cache
def _played(number: int) -> LessonPlayed:
    """A lesson without its searches, so that its picture is shown soon."""
    return play_lesson(lesson_of(str(number)), with_searches=False)


@cache
def _search(number: int, part: int) -> PartSearch:
    shown = lesson_of(str(number))
    search = shown.parts[part].search
    assert search is not None, "the page asks only for parts with a search"
    return PartSearch(shown, search)


def run(text: str, file: str, seed: int | None = None, report: Report = _no_report) -> str:
    """A run of a scenario's text: its `page`, and the lines of its report; or its `problems`, which
    call the text by the name `file`."""
    try:
        scenario = Scenario.parse(text, file)
        result = try_scenario(scenario, "virtual", seed, report)
    except (ProblemsError, ClusterError) as error:
        return _json(problems=_problems(error))
    return _json(**_run(result))


def grade(number: int, text: str, file: str, report: Report = _no_report) -> str:
    """The grade of an answer to the exercise of a lesson: points and goals, with the page of the
    first run that missed a goal; or `problems`, as of `run`."""
    exercise = exercise_of(str(number))
    try:
        found = grade_answer(exercise, Scenario.parse(text, file), progress=report)
    except (ProblemsError, ClusterError) as error:
        return _json(problems=_problems(error))
    missed = found.first_failing
    return _json(**found.values(), **({} if missed is None else _run(missed)))


def _heading(shown: Lesson) -> JsonObject:
    keys = shown.keys
    return {"number": shown.number, "title": keys.title, "intro": keys.intro}


def _scenario(file: LibraryFile) -> JsonObject:
    return {"name": file.name, "title": file.title, "text": file.path.read_text("utf-8")}


def _page_of(result: RunResult, shown: Lesson) -> str:
    """The page of a run of a lesson, which names the lesson instead of its file."""
    record = result.record()
    replay = f"kcluster learn {shown.number}"
    record.info = structs.replace(record.info, name=shown.title, replay=replay)
    return page_of_record(record)


def _parts(played: LessonPlayed) -> Iterator[JsonObject]:
    from_ms = 0
    for each in played.parts:
        part, ask = each.part, each.part.ask
        yield {
            "title": part.title,
            "from": 0 if part.scenario else from_ms,
            "until": part.until_ms,
            "text": part.text,
            "question": "" if ask is None else ask.question,
            "choices": [] if ask is None else [choice.text for choice in ask.choices],
            "searches": 0 if part.search is None else part.search.runs,
            "because": "" if ask is None else ask.because,
            "after": part.after,
            "page": _page_of(each.result, played.lesson) if part.scenario else "",
            **_findings(each),
        }
        from_ms = part.until_ms


def _findings(each: PartPlayed) -> JsonObject:
    """What the runs of a part decide."""
    return {"right": each.right, "seen": _lines(seen_lines(each))}


def _exercise(exercise: Exercise) -> JsonObject:
    keys = exercise.keys
    return {
        "title": keys.title,
        "task": keys.task,
        "goals": [{"points": goal.points, "text": goal.text} for goal in keys.goals.values()],
        "hint": keys.hint,
        "may_edit": exercise.start.may_edit,
        "runs": keys.runs,
        "text": exercise.start.text,
    }


def _run(result: RunResult | RunCrash) -> JsonObject:
    if isinstance(result, RunCrash):
        return {"lines": _lines(crash_lines(result))}
    return {
        "page": page_of_record(result.record()),
        "lines": _lines(result_lines(result)),
        "trace": result.trace_hash,
    }


def _problems(error: ProblemsError | ClusterError) -> list[JsonObject]:
    """The problems with their places; line 0 for one without a place."""
    if isinstance(error, ClusterError):
        return [{"line": 0, "column": 0, "text": str(error)}]
    return [
        {"line": each.line, "column": each.column, "text": str(each)} for each in error.problems
    ]


def _lines(lines: Iterable[str]) -> str:
    """Lines as one text, without the indentation that all of them have."""
    return dedent("\n".join(line.rstrip() for line in lines))


def _json(**values: object) -> str:
    return msgspec.json.encode(values).decode()
