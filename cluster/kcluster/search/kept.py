"""A search as text, so that it goes on later.

Owns: the JSON of a search, and reading it.  Never: opens a file.  Kafka: no counterpart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct, structs

from kcluster.config.files.problems import Place
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import from_python
from kcluster.json_types import JsonObject
from kcluster.scenario.language.loader import Claims, read_steps
from kcluster.scenario.language.writing import step_values, text_of_scenario
from kcluster.search.findings import SearchFinding
from kcluster.search.loop import Entry, FindingGroup, ScheduleSearch, SwarmYield
from kcluster.search.schedule import Planned, Schedule, Space
from kcluster.search.trial import Trial

FORMAT: Final = 3


class KeptError(ValueError):
    """The error for a file that holds no search, or a search for something else."""


class _KeptStep(Struct, frozen=True):
    step: JsonObject
    source: int
    kind: int


class _KeptSchedule(Struct, frozen=True):
    seed: int
    steps: list[_KeptStep]
    swarm: int
    space: int


class _KeptEntry(Struct, frozen=True):
    schedule: _KeptSchedule
    moments: dict[str, list[int]]
    novel: dict[int, int]
    chosen: int


class _KeptFound(Struct, frozen=True):
    finding: SearchFinding
    schedule: _KeptSchedule
    findings: list[SearchFinding]
    run: int
    times: int


class _KeptSearch(Struct, frozen=True):
    format: int
    spaces: str
    seed: int
    guided: bool
    runs: int
    chosen: int
    seen: dict[int, int]
    swarms: list[SwarmYield]
    corpus: list[_KeptEntry]
    found: list[_KeptFound]


def text_of(search: ScheduleSearch) -> bytes:
    """The JSON of a search."""
    return msgspec.json.encode(
        _KeptSearch(
            FORMAT,
            _hash_of(search.spaces),
            search.seed,
            search.guided,
            search.runs,
            search.chosen,
            search.seen,
            search.swarms,
            [
                _KeptEntry(_kept(one.schedule), dict_of(one.moments), dict(one.novel), one.chosen)
                for one in search.corpus
            ],
            [
                _KeptFound(
                    one.finding,
                    _kept(one.example.schedule),
                    list(one.example.findings),
                    one.run,
                    one.times,
                )
                for one in search.found.values()
            ],
        )
    )


def read_into(search: ScheduleSearch, text: bytes) -> None:
    """Go on with a kept search.  KeptError if it is none of this scenario, seed and way."""
    try:
        kept = msgspec.json.decode(text, type=_KeptSearch)
    except msgspec.DecodeError as error:
        raise KeptError(f"no search is kept here: {error}") from None
    if kept.format != FORMAT or kept.spaces != _hash_of(search.spaces):
        raise KeptError("the search that is kept here is one of another scenario")
    if (kept.seed, kept.guided) != (search.seed, search.guided):
        raise KeptError(f"the search that is kept here has seed {kept.seed}, or another way")
    search.runs, search.chosen = kept.runs, kept.chosen
    search.seen = kept.seen
    search.swarms = kept.swarms
    search.corpus = [
        Entry(_read(each.schedule), each.moments, each.novel, each.chosen) for each in kept.corpus
    ]
    for one in kept.found:
        schedule = _read(one.schedule)
        example = Trial(schedule, tuple(one.findings), {}, {}, "")
        search.found[one.finding.group] = FindingGroup(one.finding, example, one.run, one.times)


def dict_of(moments: object) -> dict[str, list[int]]:
    """Moments as plain values."""
    return msgspec.convert(moments, dict[str, list[int]])


def _hash_of(spaces: Sequence[Space]) -> str:
    texts = "".join(text_of_scenario(space.scenario) for space in spaces)
    return hashlib.sha256(texts.encode()).hexdigest()[:16]


def _kept(schedule: Schedule) -> _KeptSchedule:
    steps = [_KeptStep(step_values(one.step), one.source, one.kind) for one in schedule.steps]
    return _KeptSchedule(schedule.seed, steps, schedule.swarm, schedule.space)


def _read(kept: _KeptSchedule) -> Schedule:
    reading = TreeReader("")
    values = [from_python([one.step]) for one in kept.steps]
    steps = [step for value in values for step in read_steps(reading, value, Claims())]
    if reading.problems or len(steps) != len(kept.steps):
        raise KeptError("the steps that are kept here are those of another version of kcluster")
    planned = [
        Planned(structs.replace(step, place=Place(0, 0), path=""), one.source, one.kind)
        for step, one in zip(steps, kept.steps, strict=True)
    ]
    return Schedule(kept.seed, tuple(planned), kept.swarm, kept.space)
