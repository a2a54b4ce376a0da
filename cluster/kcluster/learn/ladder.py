"""The requests of one client and their answers, as a ladder of lines.

Owns: the choice of requests, and the line of each.  Never: finds requests (evidence/). Kafka: no
counterpart; kafka.request.logger at every broker comes nearest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kcluster.events.render import offset_text
from kcluster.evidence.rows import ExchangeRow

MAX_RUNGS: Final = 14
_SILENT: Final = "ApiVersions"
"""APIs without a line: the first request of every connection."""


def rungs_of(rows: Iterable[ExchangeRow], client: str) -> list[ExchangeRow]:
    """The requests of a client that differ from their predecessors: errors, missing answers, new
    metadata, the first success at another broker."""
    rungs: list[ExchangeRow] = []
    before: dict[str, tuple[object, ...]] = {}
    for row in rows:
        if row.client != client or row.api == _SILENT:
            continue
        kind = (row.broker if row.leader < 0 else -1, row.error, row.answered_ms < 0, row.leader)
        if before.get(row.api) != kind:
            rungs.append(row)
        before[row.api] = kind
    return rungs


def ladder_lines(rungs: list[ExchangeRow], began_ms: int) -> Iterator[str]:
    """The lines of a ladder: `+10005 ms shop -> broker 1 Produce NOT_LEADER_OR_FOLLOWER; leader 2,
    epoch 1`."""
    for row in rungs[:MAX_RUNGS]:
        at = offset_text(row.at_ms, began_ms)
        yield f"{at}  {row.client} -> broker {row.broker}  {row.api:<10} {_answer(row)}"
    if len(rungs) > MAX_RUNGS:
        yield f"... and {len(rungs) - MAX_RUNGS} more requests"


def _answer(row: ExchangeRow) -> str:
    if row.answered_ms < 0:
        return "no answer"
    parts = [row.error] if row.error else []
    if row.leader >= 0:
        parts.append(f"leader {row.leader}, epoch {row.leader_epoch}")
    if row.first >= 0:
        parts.append(
            f"offset {row.first}" if row.first == row.last else f"offsets {row.first} to {row.last}"
        )
    return "; ".join(parts) or "ok"
