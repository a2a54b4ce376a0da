"""A sweep's figures by name, a row for each cell: what cells.csv and cells.parquet hold.

Owns: the names of the figures and their units, those two files.  Never: sums (summary.py),
formulas (estimates.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.summary import PERCENTS, Summed

Row = dict[str, str | int | float | None]

COUNTS: Final = ("runs", "losses", "invalid", "sent", "acked", "lost", "unconfirmed")
STEPS: Final = ("noticed", "elected", "first_ack")


def figures_of(grid: Grid, sums: Sequence[Summed], mtbf_ms: float) -> list[Row]:
    """By cell, in the grid's order: its number from 1, each column as words, then the figures.
    Times say their unit; a year is of brokers that each fail once in `mtbf_ms`."""
    return [_row(grid, at, cell, mtbf_ms) for at, cell in enumerate(sums)]


def write_figures(rows: Sequence[Row], out: str | os.PathLike[str]) -> list[Path]:
    """cells.csv and cells.parquet; returns the files."""
    import pyarrow
    from pyarrow import parquet

    told, held = Path(out) / "cells.csv", Path(out) / "cells.parquet"
    with open(told, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), _schema(rows[0])), held)
    return [told, held]


def _schema(row: Row) -> Any:
    """Without it, a column of nothing but None would have no type."""
    import pyarrow

    kinds = {str: pyarrow.string(), int: pyarrow.int64()}
    return pyarrow.schema(
        [(name, kinds.get(type(value), pyarrow.float64())) for name, value in row.items()]
    )


def _row(grid: Grid, at: int, cell: Summed, mtbf_ms: float) -> Row:
    brokers = grid.cells[at].brokers
    row: Row = {"number": at + 1, "cell": cell.cell, **grid.cells[at].columns()}
    row.update((name, getattr(cell, name)) for name in COUNTS)
    row["broker_failures"] = cell.failures
    row["loss"] = cell.loss
    row["loss_exact_low"], row["loss_exact_high"] = cell.loss_exact
    row["loss_wilson_low"], row["loss_wilson_high"] = cell.loss_wilson
    row["lost_per_billion"] = cell.lost_per_billion
    row["lost_per_billion_error"] = cell.lost_per_billion_error
    row["losses_a_year"] = cell.losses_a_year(brokers, mtbf_ms)
    for kind in ("writes", "reads"):
        row[f"no_{kind}_a_failure_s"] = cell.a_failure_s(kind)
        row[f"no_{kind}_a_year_s"] = cell.a_year_s(kind, brokers, mtbf_ms)
    for step in STEPS:
        found = getattr(cell, step)
        for number, percent in enumerate(PERCENTS):
            row[f"{step}_p{percent}_ms"] = found[number] if found else None
    row["ack_p50_ms"], row["ack_p99_ms"] = cell.ack_p50_ms, cell.ack_p99_ms
    row["ran_s"] = cell.ran_ms / 1_000
    row["wall_ms_a_run"] = cell.wall_ms / cell.runs if cell.runs else 0.0
    return row
