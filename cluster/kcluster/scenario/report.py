"""A run's report: lines for a terminal, and JSON.

Owns: the layout.  Never: judges (checks/, outcome.py), prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from kcluster.contract import Note
from kcluster.events.clients import (
    GroupAssigned,
    GroupMemberJoined,
    GroupMemberLeft,
    GroupRebalanced,
)
from kcluster.events.render import ECHOES, fold, folded_line, note_values, plain
from kcluster.json_types import JsonObject
from kcluster.scenario.play.phases import RunCrash, RunResult

MAX_ERROR: Final = 200
"""The number of characters of an error that a line shows; the traceback has all of them."""
REBALANCES: Final = (GroupMemberJoined, GroupMemberLeft, GroupRebalanced, GroupAssigned)
"""Events of every rebalance, whatever caused it.  A scenario's timeline leaves them out."""


def timeline_lines(result: RunResult) -> Iterator[str]:
    """The events of the run, one per line, without internal topics and repetitions."""
    notes = result.notes[result.first_note :]
    shown = [note for note in notes if not isinstance(note.event, REBALANCES)]
    return (line for _, line in noted_lines(shown, result.began_ms))


def noted_lines(notes: Iterable[Note], began_ms: int) -> Iterator[tuple[Note, str]]:
    """The events since `began_ms` as (note, line), without internal topics and repetitions.  A line
    that stands for many notes comes with the first of them."""
    shown = [
        note
        for note in notes
        if note.at_ms >= began_ms
        and not isinstance(note.event, ECHOES)
        and not note.event.is_internal
    ]
    for entry in fold(shown):
        first = entry if isinstance(entry, Note) else entry.notes[0]
        yield first, folded_line(entry, began_ms)


def head_line(result: RunResult) -> str:
    """The head of a report: `leader_dies: valid, as expected (virtual, seed 17, 60.0 s in 0.21
    s)`."""
    spent = f"{result.duration_ms / 1000:.1f} s in {result.wall_s:.2f} s"
    passed = "as expected" if result.passed else "NOT as expected"
    return (
        f"{result.scenario.name}: {result.verdict.outcome}, {passed}"
        f"  ({result.clock}, seed {result.seed}, {spent})"
    )


def result_lines(result: RunResult, verbose: bool = False, quiet: bool = False) -> Iterator[str]:
    """The report of one run, the answer last: at most a screen, unless it failed in many ways.
    `verbose`: with the timeline, and the long form of the verdict; `quiet`: without either."""
    if verbose:
        yield from timeline_lines(result)
        yield ""
    if not quiet:
        yield from (f"  {line}" for line in result.verdict.lines(verbose=verbose))
    yield from (f"  FAILED {failure}" for failure in result.failures)
    if result.not_judged:
        yield f"  not judged, only the inside of brokers shows it: {', '.join(result.not_judged)}"
    if not result.passed:
        yield f"  replay: {result.replay}{'' if verbose else ' -v'}"
    yield head_line(result)


def crash_line(crash: RunCrash) -> str:
    """The head of the report of a run that a bug ended: `leader_dies: CRASHED (virtual, seed 17):
    AssertionError: no end`."""
    head = f"{crash.scenario.name}: CRASHED  ({crash.clock}, seed {crash.seed})"
    error = crash.error.splitlines()[0]
    return f"{head}: {error[:MAX_ERROR]}{'...' if len(error) > MAX_ERROR else ''}"


def crash_lines(crash: RunCrash) -> Iterator[str]:
    """The whole report of a run that a bug ended."""
    yield crash_line(crash)
    yield from (f"  {line}" for line in crash.traceback.splitlines())
    yield "  this is a bug in kcluster, not in your scenario"
    yield f"  replay: {crash.replay}"


def _run_values(run: RunCrash | RunResult) -> dict[str, object]:
    """The values that identify a run: scenario, clock, seed."""
    return {
        "scenario": run.scenario.name,
        "file": run.scenario.source,
        "clock": run.clock,
        "seed": run.seed,
    }


def crash_values(crash: RunCrash) -> JsonObject:
    """The report of a run that a bug ended, for JSON."""
    return {
        **_run_values(crash),
        "passed": False,
        "crash": crash.error,
        "traceback": crash.traceback,
        "replay": crash.replay,
    }


def result_values(result: RunResult) -> JsonObject:
    """The report of one run, for JSON."""
    return {
        **_run_values(result),
        "passed": result.passed,
        "failures": result.failures,
        "verdict": json.loads(result.verdict.to_json()),
        "duration_ms": result.duration_ms,
        "wall_s": round(result.wall_s, 3),
        "trace_hash": result.trace_hash,
        "replay": result.replay,
        "timeline": [note_values(note) for note in result.notes],
        "steps": plain(result.played),
    }
