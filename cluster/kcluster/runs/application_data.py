"""What the timeline page shows of the application: what it processed, committed, missed.

Owns: these rows.  Never: draws, judges (checks/processing.py does).
Kafka: no counterpart.

Times are whole ms since the run began.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from kcluster.clients.ledger import Partition
from kcluster.json_types import JsonObject
from kcluster.runs.record import RunRecord

MISSED = "missed"


def application_lanes(record: RunRecord, began_ms: int, cell_ms: int) -> list[JsonObject]:
    """A lane per topic of which processing was reported, or problems found.  `processed`: (ms,
    count), `commits`: (ms, group, offsets in words, error), `counts`: records by problem."""
    topics = sorted({x.topic for x in record.processed} | {x.topic for x in record.problems})
    return [_lane(record, topic, began_ms, cell_ms) for topic in topics]


def _lane(record: RunRecord, topic: str, began_ms: int, cell_ms: int) -> dict[str, object]:
    processed: dict[int, int] = {}
    for entry in record.processed:
        if entry.topic == topic:
            at = (entry.at_ms - began_ms) // cell_ms * cell_ms
            processed[at] = processed.get(at, 0) + 1
    commits: dict[tuple[int, str, str], dict[int, int]] = {}
    for commit in record.commits:
        if commit.topic == topic:
            at = (commit.at_ms - began_ms) // cell_ms * cell_ms
            offsets = commits.setdefault((at, commit.group, commit.error), {})
            offsets[commit.partition] = commit.offset
    counts: dict[str, int] = {}
    for problem in record.problems:
        if problem.topic == topic:
            counts[problem.problem] = counts.get(problem.problem, 0) + problem.count
    return {
        "topic": topic,
        "processed": sorted(processed.items()),
        "commits": [
            (at, group, ", ".join(f"{topic}-{n}: {to}" for n, to in sorted(offsets.items())), error)
            for (at, group, error), offsets in sorted(commits.items())
        ],
        "counts": counts,
    }


def application_counts(record: RunRecord) -> dict[str, int]:
    """Records by problem: missed, repeated, out_of_order."""
    counts: dict[str, int] = {}
    for problem in record.problems:
        counts[problem.problem] = counts.get(problem.problem, 0) + problem.count
    return counts


def marks_in_logs(record: RunRecord, began_ms: int) -> dict[Partition, list[tuple[Any, ...]]]:
    """By partition: (problem, first offset, when it was appended, last offset, when, in words).
    Problems of records whose append was not recorded are left out."""
    if not record.problems:
        return {}
    appends: dict[Partition, list[tuple[int, int, int]]] = {}
    for append in record.appends:
        row = (append.base_offset, append.last_offset, append.at_ms - began_ms)
        appends.setdefault((append.topic, append.partition), []).append(row)
    for rows in appends.values():
        rows.sort()
    marks: dict[Partition, list[tuple[object, ...]]] = {}
    for problem in record.problems:
        partition = (problem.topic, problem.partition)
        times = [_appended(appends.get(partition, []), x) for x in (problem.first, problem.last)]
        if None not in times:
            mark = (problem.problem, problem.first, times[0], problem.last, times[1], problem.text)
            marks.setdefault(partition, []).append(mark)
    return marks


def _appended(appends: list[tuple[int, int, int]], offset: int) -> int | None:
    """When the record at this offset was appended, for the last time."""
    at = bisect_right(appends, offset, key=lambda row: row[0])
    if not at:
        return None
    _, last, at_ms = appends[at - 1]
    return at_ms if offset <= last else None
