"""The records that producers waited with, over a finished run, as its page draws them.

Owns: their numbers at times on a grid.  Never: judges; the outcome of each record is the run's.
Kafka: RecordAccumulator and the in-flight requests of a producer, which have no history.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from kcluster.evidence.rows import WaitingRow
from kcluster.runs.record import RunRecord, SendRow

LEAST_MS: Final = 300
"""The shortest wait that is drawn, as on the page of a running cluster (waiting.js)."""
STEP_MS: Final = 100
MAX_ROWS: Final = 10_000
"""The most rows, about; with longer waits, the grid is coarser."""

Sender = tuple[str, str, int]
"""A producer's name, a topic and a partition."""
Span = tuple[int, int]
"""A time from which, and one up to which."""


def waiting_rows(record: RunRecord) -> list[WaitingRow]:
    """The waiting records at each time of the grid at which some have waited for LEAST_MS, in
    order of time.  After a wait there is a row without records."""
    spans: dict[Sender, list[Span]] = {}
    for send in record.sends:
        if send.sent_ms >= 0:
            sender = (send.producer, send.topic, send.partition)
            spans.setdefault(sender, []).append(_span(send, record.info.ended_ms))
    waits = {sender: _waits(found) for sender, found in spans.items()}
    length_ms = sum(until - since for found in waits.values() for since, until in found)
    step_ms = max(STEP_MS, length_ms // MAX_ROWS)
    rows = [
        row
        for sender, found in waits.items()
        for row in _rows(sender, found, sorted(spans[sender]), step_ms)
    ]
    return sorted(rows, key=lambda row: row.at_ms)


def _span(send: SendRow, ended_ms: int) -> Span:
    return send.sent_ms, send.ended_ms if send.ended_ms >= 0 else ended_ms


def _waits(spans: list[Span]) -> list[Span]:
    """The times in which a record waits that is to wait for LEAST_MS, joined where they meet."""
    waits: list[Span] = []
    for since, until in sorted(span for span in spans if span[1] - span[0] >= LEAST_MS):
        if waits and since <= waits[-1][1]:
            waits[-1] = (waits[-1][0], max(until, waits[-1][1]))
        else:
            waits.append((since, until))
    return waits


def _rows(
    sender: Sender, waits: list[Span], spans: list[Span], step_ms: int
) -> Iterator[WaitingRow]:
    sent = [since for since, _ in spans]
    ended = sorted(until for _, until in spans)
    oldest: list[Span] = []
    pushed = 0
    for since, until in waits:
        for at_ms in range(-(-since // step_ms) * step_ms, until, step_ms):
            begun = bisect_right(sent, at_ms)
            for span in spans[pushed:begun]:
                heapq.heappush(oldest, span)
            pushed = begun
            while oldest and oldest[0][1] <= at_ms:
                heapq.heappop(oldest)
            count = begun - bisect_right(ended, at_ms)
            if count:
                yield WaitingRow(at_ms, *sender, count, oldest[0][0])
        end_ms = -(-until // step_ms) * step_ms
        yield WaitingRow(end_ms, *sender, 0, end_ms)
