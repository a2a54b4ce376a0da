"""A lesson as a checked value: its text in parts, with a question before each event.

Owns: Lesson, LessonPart, Question, Choice, and reading a lesson's file.  Never: plays the scenario
(playing.py), knows the right answer: a choice has conditions, and the run decides. Kafka: no
counterpart.

    parts:
      - title: Who takes over?
        until: 20s                       # time of the scenario at which this part ends
        text: Broker 1 is about to die.
        ask:
          question: Which broker leads afterwards?
          choices:
            - {text: Broker 2, when: leader(orders-0) = 2}
            - {text: Nobody, when: leader(orders-0) < 0}
        after: The first live broker of the replica list took over.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.actions.kinds import PARTITION
from kcluster.config.files.fields import (
    ListOf,
    OneOf,
    StoryText,
    StructOf,
    Whole,
    duration,
    read_struct,
    text,
)
from kcluster.config.files.problems import Problem, show
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.source import FileKind
from kcluster.operations.conditions import Condition
from kcluster.operations.names import PartitionName
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.model import Checks
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.words import CONDITION, COUNT, CountCheck

MIN_CHOICES: Final = 2
MAX_CHOICES: Final = 9
"""The most choices of a question: each is chosen by a single digit."""
EVENTS: Final = "events"
GROUPS: Final = "groups"
"""The events with those of each rebalance of a group."""
LOGS: Final = "logs"
ERRORS: Final = "errors"
COUNTS: Final = "counts"
VERDICT: Final = "verdict"
SHOWN: Final = (EVENTS, GROUPS, LOGS, ERRORS, COUNTS, VERDICT)


class Search(Struct, frozen=True):
    """Many runs of a scenario, one for each seed from 1 on: a search for schedules that fail."""

    runs: Annotated[int, Whole(2, 200), "The number of runs."]
    scenario: Annotated[str, text(), "Their file, beside this one; without it, the lesson's."] = ""


class Sight(Struct, frozen=True):
    """A moment of a lesson's script for teachers: what the class sees, and a question that the
    class must be able to answer from the picture alone."""

    at_ms: Annotated[int, duration(0), "The time of the scenario."]
    sees: Annotated[str, StoryText(), "What the class sees."]
    view: Annotated[
        str,
        OneOf("view", ("partition", "cluster", "client", "groups")),
        "The view of the page that is open.",
    ] = "partition"
    ask: Annotated[str, text(), "The question."] = ""
    answer: Annotated[str, text(), "Its answer."] = ""
    when: Annotated[
        tuple[Condition, ...],
        ListOf(CONDITION, "conditions"),
        "All of these hold at that time, so that the answer is true.",
    ] = ()


class Choice(Struct, frozen=True):
    """A possible answer to a question.  The answer is right if its conditions hold at the end of
    the part, if its checks hold for the whole run, or if the number of failed runs of the search is
    `failing`."""

    text: Annotated[str, text(), "The answer, as students read it."]
    when: Annotated[
        tuple[Condition, ...],
        ListOf(CONDITION, "conditions"),
        "It is right if all of these hold at the part's end.",
    ] = ()
    checks: Annotated[
        Checks | None, StructOf(Checks, "check"), "It is right if these hold for the run."
    ] = None
    failing: Annotated[
        tuple[CountCheck, ...],
        ListOf(COUNT, "numbers"),
        "It is right if so many runs of the part's search fail.",
    ] = ()


class Question(Struct, frozen=True):
    """A question to the students before a part is played."""

    question: Annotated[str, StoryText(), "The question."]
    choices: Annotated[
        tuple[Choice, ...],
        ListOf(StructOf(Choice, "key of a choice"), "choices", alone=False),
        "The answers; exactly one of them is right in the run.",
    ]
    because: Annotated[str, StoryText(), "Why the right one is right."] = ""


class LessonPart(Struct, frozen=True):
    """A part of a lesson: text, perhaps a question, then the run up to `until`."""

    title: Annotated[str, text(), "Its heading."]
    until_ms: Annotated[int, duration(1), "The time of the scenario at which it ends."]
    text: Annotated[str, StoryText(), "What to read before."] = ""
    ask: Annotated[Question | None, StructOf(Question, "key of a question"), "The question."] = None
    after: Annotated[str, StoryText(), "What to read after."] = ""
    shows: Annotated[
        tuple[str, ...],
        ListOf(OneOf("part of the picture", SHOWN), "what is shown"),
        "What is shown of the run.",
    ] = (EVENTS, LOGS)
    requests_of: Annotated[str, text(), "The client whose requests are shown."] = ""
    search: Annotated[
        Search | None, StructOf(Search, "key of a search"), "Runs with other seeds."
    ] = None
    scenario: Annotated[
        str,
        text(),
        "Another scenario, a file beside this one: the part shows its run, from the start on.",
    ] = ""


class LessonKeys(Struct, frozen=True):
    """The keys of a lesson's file."""

    title: Annotated[str, text(), "The lesson's title."]
    intro: Annotated[str, StoryText(), "What it is about."]
    scenario: Annotated[str, text(), "The file of its scenario, beside this one."]
    parts: Annotated[
        tuple[LessonPart, ...],
        ListOf(StructOf(LessonPart, "key of a part"), "parts", alone=False),
        "Its parts, in order of time.",
    ]
    minutes: Annotated[int, Whole(1, 120), "How long it takes."] = 10
    partitions: Annotated[
        tuple[PartitionName, ...], ListOf(PARTITION, "partitions"), "Those whose logs are drawn."
    ] = (("orders", 0),)
    summary: Annotated[str, StoryText(), "What to remember."] = ""
    notes: Annotated[str, StoryText(), "What helps the teacher to tell it."] = ""
    script: Annotated[
        tuple[Sight, ...],
        ListOf(StructOf(Sight, "key of a sight"), "sights", alone=False),
        "What the class sees on the page, second by second, for teachers.",
    ] = ()


class Lesson(Struct, frozen=True):
    """A lesson, from `load_lesson`.  `number`: its place in the course, 0 for a teacher's own
    lesson."""

    number: int
    name: str
    keys: LessonKeys
    scenario: Scenario
    others: dict[str, Scenario] = {}
    """The scenarios of searches and of parts, by their files; "" is the lesson's own."""

    @property
    def title(self) -> str:
        return self.keys.title

    @property
    def parts(self) -> tuple[LessonPart, ...]:
        return self.keys.parts


def load_lesson(path: Path, number: int = 0, name: str = "") -> Lesson:
    """The lesson of a file, with its scenario.  ScenarioError lists every problem with its
    place."""
    keys = read_keys(path, LessonKeys, "lesson")
    problems = list(_problems(path, keys))
    scenario = Scenario.load(path.parent / keys.scenario)
    if keys.parts and keys.parts[-1].until_ms > scenario.duration_ms:
        text_ = f"the last part ends after the scenario, which takes {scenario.duration_ms} ms"
        problems.append(Problem(str(path), 0, 0, "parts", text_))
    if problems:
        raise ScenarioError(problems)
    parts = tuple(_with_drawn_order(part, scenario.first_seed()) for part in keys.parts)
    files = {part.scenario for part in parts}
    files |= {part.search.scenario for part in parts if part.search is not None}
    others = {file: Scenario.load(path.parent / file) for file in sorted(files - {""})}
    keys = replace(keys, parts=parts)
    return Lesson(number, name or path.parent.name, keys, scenario, {"": scenario, **others})


def _with_drawn_order(part: LessonPart, seed: int) -> LessonPart:
    """A part with its choices in an order that the seed draws, so that the place of a choice in the
    file does not give the right answer away."""
    if part.ask is None:
        return part

    def drawn(choice: Choice) -> bytes:
        text_ = f"{seed}\n{part.title}\n{choice.text}"
        return hashlib.sha256(text_.encode()).digest()

    choices = tuple(sorted(part.ask.choices, key=drawn))
    return replace(part, ask=replace(part.ask, choices=choices))


def read_keys(path: Path, struct: Any, word: str) -> Any:
    """The Struct of a YAML file; `word`: its name in messages.  ScenarioError lists every problem
    with its place."""
    file = FileKind(word, ScenarioError)
    _, node, problems = file.load(path)
    reading = TreeReader(str(path))
    reading.problems += problems
    keys = read_struct(reading, node, "", struct, f"key of {file.one}")
    if keys is None or reading.problems:
        raise ScenarioError(reading.problems)
    return keys


def _problems(path: Path, keys: LessonKeys) -> list[Problem]:
    """Problems that involve several keys."""
    found = []
    before_ms = 0
    for at, part in enumerate(keys.parts):
        where = f"parts[{at}]"
        if part.until_ms <= before_ms:
            found.append((f"{where}.until", "a part ends after the one above it"))
        before_ms = part.until_ms
        if part.ask is None:
            continue
        count = len(part.ask.choices)
        if not MIN_CHOICES <= count <= MAX_CHOICES:
            text_ = f"{count} choices; there must be {MIN_CHOICES} to {MAX_CHOICES}"
            found.append((f"{where}.ask.choices", text_))
        for number, choice in enumerate(part.ask.choices):
            ways = (bool(choice.when), choice.checks is not None, bool(choice.failing))
            if ways.count(True) != 1:
                text_ = f"{show(choice.text)} needs exactly one of when, checks and failing"
                found.append((f"{where}.ask.choices[{number}]", text_))
            elif choice.failing and part.search is None:
                text_ = "failing counts runs of a search, and this part has none"
                found.append((f"{where}.ask.choices[{number}].failing", text_))
    return [Problem(str(path), 0, 0, at, words) for at, words in found]
