"""`kcluster log` as text: the log of each replica of a partition as a bar, by leader epoch.

Owns: its lines.  Never: asks the cluster (cli/verbs/log.py does), prints.  Colours are rich markup.
Kafka: no counterpart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from kcluster.json_types import JsonObject
from kcluster.runs.bars import Glyph, bar, block, legend, offsets_per_cell

CROWN: Final = "♛"
"""The mark of the leader."""

Logs = JsonObject
"""The answer to a log request."""


def drawing_of(logs: Logs, glyph: Glyph = block) -> list[str]:
    """A head, a line for each replica, and the legend."""
    leader = "none" if logs["leader"] is None else str(logs["leader"])
    isr = ",".join(map(str, logs["isr"])) or "-"
    name = f"{logs['topic']}-{logs['partition']}"
    lines = [f"{name}  leader {leader}, epoch {logs['leader_epoch']}, ISR {isr}"]
    replicas = logs["replicas"]
    start = min((replica["log_start_offset"] for replica in replicas), default=0)
    end = max((replica["log_end_offset"] for replica in replicas), default=0)
    per_cell = offsets_per_cell(start, end)
    brokers = max((len(str(replica["broker"])) for replica in replicas), default=1)
    standings = max((len(replica["standing"]) for replica in replicas), default=0)
    for replica in replicas:
        crown = CROWN if replica["broker"] == logs["leader"] else " "
        ends = (start, replica["log_end_offset"], end)
        epoch_of = partial(_epoch_at, replica["epochs"])
        cells = list(bar(ends, replica["high_watermark"], per_cell, epoch_of, glyph))
        has_mark = "|" in cells
        lines.append(
            f"{crown} broker {replica['broker']:<{brokers}}  {replica['standing']:<{standings}}  "
            f"{''.join(cells)}{'' if has_mark else ' '}  {_offsets(replica)}"
        )
    known = sorted({epoch for replica in replicas for epoch, _ in replica["epochs"]})
    if known:
        each = "1 offset" if per_cell == 1 else f"{per_cell:,} offsets"
        lines.append(f"  {legend(known, glyph)}   a cell is {each}")
    return lines


def _offsets(replica: Mapping[str, object]) -> str:
    start = f"start {replica['log_start_offset']}, " if replica["log_start_offset"] else ""
    watermark = replica["high_watermark"]
    mark = "" if watermark is None else f", hw {watermark}"
    return f"{start}end {replica['log_end_offset']}{mark}"


def _epoch_at(epochs: Sequence[Sequence[int]], offset: int) -> int:
    at = bisect_right(epochs, offset, key=lambda entry: entry[1])
    return epochs[max(0, at - 1)][0] if epochs else 0
