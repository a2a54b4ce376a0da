"""A lesson played in virtual time: the events of each part, and the right answers.

Owns: PartPlayed, and looking at the cluster when a part ends.  Never: makes words (telling.py),
takes an answer from any source but the run.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kcluster.clients.ledger import Ledger, Outcome
from kcluster.config.files.fields import fields_of
from kcluster.contract import Note
from kcluster.evidence.rows import ExchangeRow
from kcluster.learn.lesson import Choice, Lesson, LessonPart, Search, Sight
from kcluster.operations.logs import PartitionLogs, partition_logs
from kcluster.scenario.language.model import Checks
from kcluster.scenario.outcome import failed_checks
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.stage import ScenarioStage
from kcluster.scenario.play.virtual import run_virtual

Counts = Mapping[str, Mapping[str, int]]
"""The numbers of records that were sent, acked, failed and read, each by client."""


class ErrorsReceived(Struct, frozen=True):
    """The number of times that a client received an error in a part."""

    client: str
    api: str
    error: str
    count: int


class Searched(Struct, frozen=True):
    """The runs of a search.  `failing`: the seeds of the runs that were not as expected; `first`:
    the first of these runs."""

    runs: int
    failing: tuple[int, ...]
    first: RunResult | None


class PartPlayed(Struct, frozen=True):
    """A part of a lesson in its run, `result`.  `right`: the place of the right choice, from 0;
    None if there is no question, or if it is about a search that has not been played.  `held`:
    whether each choice is right; None for a choice about the search.  `counts`: up to the end of
    the part.  `requests`: the requests of the client that the part names.  `began_ms`: the origin
    of times."""

    part: LessonPart
    result: RunResult
    right: int | None
    held: tuple[bool | None, ...]
    notes: tuple[Note, ...]
    logs: tuple[PartitionLogs, ...]
    errors: tuple[ErrorsReceived, ...]
    counts: Counts
    requests: tuple[ExchangeRow, ...]
    began_ms: int
    searched: Searched | None = None


class LessonPlayed(Struct, frozen=True):
    """A lesson and the run of its scenario."""

    lesson: Lesson
    parts: tuple[PartPlayed, ...]
    result: RunResult
    untrue: tuple[str, ...] = ()
    """The sights of the script whose conditions did not hold, by their time."""


class AmbiguousQuestionError(ValueError):
    """The error for a question with no right choice in the run, or several."""


class _Moment(Struct):
    """The state of the stage when a part ended."""

    last_note: int
    logs: tuple[PartitionLogs, ...]
    held: dict[int, bool]
    """Whether the conditions of each choice hold, by the place of the choice."""
    counts: Counts


class _Watcher:
    """Looks at the stage of a run at the end of each part, and at each sight of the script."""

    def __init__(
        self, lesson: Lesson, parts: Sequence[LessonPart], script: Sequence[Sight]
    ) -> None:
        self._partitions = lesson.keys.partitions
        self._parts, self._script = parts, script
        self._stage: ScenarioStage | None = None
        self.moments: list[_Moment] = []
        self.first_note = 0
        self.untrue: list[str] = []

    @property
    def stage(self) -> ScenarioStage:
        assert self._stage is not None, "the run has not begun"
        return self._stage

    def watch(self, stage: ScenarioStage) -> None:
        self._stage = stage
        self.first_note = len(stage.notes())
        for part in self._parts:
            stage.at(part.until_ms, partial(self._look, part))
        for sight in self._script:
            stage.at(sight.at_ms, partial(self._check, sight))

    def _check(self, sight: Sight) -> None:
        if not all(self.stage.holds(condition, self.first_note) for condition in sight.when):
            self.untrue.append(f"{sight.at_ms} ms: {sight.answer}")

    def _look(self, part: LessonPart) -> None:
        stage = self.stage
        since = self.moments[-1].last_note if self.moments else self.first_note
        choices = () if part.ask is None else part.ask.choices
        self.moments.append(
            _Moment(
                len(stage.notes()),
                tuple(
                    partition_logs(stage.plan, stage.dispatcher, *partition)
                    for partition in self._partitions
                ),
                {
                    at: all(stage.holds(condition, since) for condition in choice.when)
                    for at, choice in enumerate(choices)
                },
                _counts(stage.ledger),
            )
        )


class PartSearch:
    """The search of a part, run by run: `of` runs, of which `done` have been played."""

    def __init__(self, lesson: Lesson, search: Search) -> None:
        self._scenario = lesson.others[search.scenario]
        self._failing: list[int] = []
        self._first: RunResult | None = None
        self.done = 0
        self.of = search.runs

    def play_next(self) -> None:
        """Play the run with the next seed, from 1 on; the first failing run is kept."""
        self.done += 1
        result = run_virtual(self._scenario, self.done, _no_progress)
        if not result.passed:
            self._failing.append(self.done)
            self._first = self._first or result

    def found(self) -> Searched:
        """What the runs found; plays the runs that have not been played."""
        while self.done < self.of:
            self.play_next()
        return Searched(self.of, tuple(self._failing), self._first)


def play_lesson(
    lesson: Lesson, seed: int | None = None, *, with_searches: bool = True
) -> LessonPlayed:
    """Play a lesson's scenario, those of its parts, and their searches.  AmbiguousQuestionError if
    a question has no answer, or several.  Without `with_searches`, `after_search` must complete the
    parts that have a search."""
    watcher, result, played = _play(lesson, "", seed, lesson.keys.script)
    for file in dict.fromkeys(part.scenario for part in lesson.parts if part.scenario):
        played |= _play(lesson, file, seed)[2]
    parts = tuple(
        after_search(part, PartSearch(lesson, part.part.search).found())
        if with_searches and part.part.search
        else part
        for _, part in sorted(played.items())
    )
    return LessonPlayed(lesson, parts, result, tuple(watcher.untrue))


def _play(
    lesson: Lesson, file: str, seed: int | None, script: Sequence[Sight] = ()
) -> tuple[_Watcher, RunResult, dict[int, PartPlayed]]:
    """Play a scenario of a lesson: (what watched it, its run, its parts by their places)."""
    scenario = lesson.others[file]
    own = {at: part for at, part in enumerate(lesson.parts) if part.scenario == file}
    watcher = _Watcher(lesson, tuple(own.values()), script)
    result = run_virtual(scenario, scenario.first_seed(seed), _no_progress, watcher.watch)
    played = _parts(tuple(own.values()), watcher, result)
    return watcher, result, dict(zip(own, played, strict=True))


def after_search(played: PartPlayed, searched: Searched) -> PartPlayed:
    """A part with what its search found."""
    return replace(
        played, searched=searched, right=_right_choice(played.part, played.held, searched)
    )


def _no_progress(passed_ms: int, all_ms: int) -> None:
    pass


def _parts(
    parts: Sequence[LessonPart], watcher: _Watcher, result: RunResult
) -> Iterator[PartPlayed]:
    first, from_ms = watcher.first_note, 0
    needs_requests = any(part.requests_of for part in parts)
    exchanges = result.record().exchanges if needs_requests else []
    for part, moment in zip(parts, watcher.moments, strict=True):
        held = tuple(_held(part, moment, watcher.stage, result))
        yield PartPlayed(
            part=part,
            result=result,
            right=None if part.search else _right_choice(part, held),
            held=held,
            notes=tuple(result.notes[first : moment.last_note]),
            logs=moment.logs,
            errors=_errors(result, from_ms, part.until_ms),
            counts=moment.counts,
            requests=tuple(
                row
                for row in exchanges
                if row.client == part.requests_of
                and from_ms <= row.at_ms - result.began_ms < part.until_ms
            ),
            began_ms=result.began_ms,
        )
        first, from_ms = moment.last_note, part.until_ms


def _counts(ledger: Ledger) -> Counts:
    sends = ledger.sends
    return {
        "sent": Counter(send.producer for send in sends),
        "acked": Counter(send.producer for send in sends if send.outcome is Outcome.ACKED),
        "failed": Counter(send.producer for send in sends if send.outcome is Outcome.FAILED),
        "read": Counter(read.consumer for read in ledger.reads),
    }


def _held(
    part: LessonPart, moment: _Moment, stage: ScenarioStage, result: RunResult
) -> Iterator[bool | None]:
    """Whether each choice of a part is right; None for a choice about its search."""
    for at, choice in enumerate(part.ask.choices if part.ask else ()):
        if choice.failing:
            yield None
        elif choice.checks is None:
            yield moment.held[at]
        else:
            yield _checks_hold(choice, stage, result)


def _right_choice(
    part: LessonPart, held: tuple[bool | None, ...], searched: Searched | None = None
) -> int | None:
    if part.ask is None:
        return None

    def holds(at: int, choice: Choice) -> bool:
        is_right = held[at]
        if is_right is not None:
            return is_right
        assert searched is not None, "the lesson was checked"
        return all(count.holds(len(searched.failing)) for count in choice.failing)

    right = [at for at, choice in enumerate(part.ask.choices) if holds(at, choice)]
    if len(right) != 1:
        texts = [part.ask.choices[at].text for at in right] or ["none"]
        raise AmbiguousQuestionError(
            f"{part.title}: {len(right)} choices are right: {', '.join(texts)}"
        )
    return right[0]


def _checks_hold(choice: Choice, stage: ScenarioStage, result: RunResult) -> bool:
    """Whether the checks that the choice names hold, even if others fail."""
    assert choice.checks is not None
    notes = result.notes[result.first_note :]
    failed = failed_checks(choice.checks, result.verdict, stage, notes)
    return not {each.check for each in failed} & set(keys_in(choice.checks))


def keys_in(checks: Checks) -> list[str]:
    """The keys of the checks that differ from the defaults."""
    return [
        field.key for field in fields_of(Checks) if getattr(checks, field.name) != field.default
    ]


def _errors(result: RunResult, from_ms: int, until_ms: int) -> tuple[ErrorsReceived, ...]:
    found = Counter(
        (error.client, error.api, error.error)
        for error in result.ledger.errors
        if from_ms <= error.at_ms - result.began_ms < until_ms
    )
    return tuple(ErrorsReceived(*key, count) for key, count in sorted(found.items()))
