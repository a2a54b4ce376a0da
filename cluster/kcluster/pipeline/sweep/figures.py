"""A sweep's figures by name, one row per cell: the content of cells.csv and cells.parquet.

Owns: the names of the figures and their units, those two files.  Never: sums over runs
(summary.py), has formulas (estimates.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.summary import PERCENTS, CellSummary

Row = dict[str, str | int | float | None]

COUNTS: Final = ("runs", "losses", "invalid", "sent", "acked", "lost", "unconfirmed")
STEPS: Final = ("noticed", "elected", "first_ack")


def figures_of(grid: Grid, sums: Sequence[CellSummary], mtbf_ms: float) -> list[Row]:
    """One row per cell, in the grid's order: its number from 1, its columns as text, its figures.
    Figures per year assume that each broker fails once in `mtbf_ms`."""
    return [_row(grid, at, cell, mtbf_ms) for at, cell in enumerate(sums)]


def write_figures(rows: Sequence[Row], out: str | os.PathLike[str]) -> list[Path]:
    """cells.csv and cells.parquet; returns the files."""
    import pyarrow
    from pyarrow import parquet

    csv_file, parquet_file = Path(out) / "cells.csv", Path(out) / "cells.parquet"
    with open(csv_file, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), _schema(rows[0])), parquet_file)
    return [csv_file, parquet_file]


def _schema(row: Row) -> object:
    """The types of the table, which a column of None alone would not show."""
    import pyarrow

    kinds = {str: pyarrow.string(), int: pyarrow.int64()}
    return pyarrow.schema(
        [(name, kinds.get(type(value), pyarrow.float64())) for name, value in row.items()]
    )


def _row(grid: Grid, at: int, cell: CellSummary, mtbf_ms: float) -> Row:
    brokers = grid.cells[at].brokers
    row: Row = {"number": at + 1, "cell": cell.cell, **grid.cells[at].columns()}
    row.update((name, getattr(cell, name)) for name in COUNTS)
    row["broker_failures"] = cell.failures
    row["loss"] = cell.loss
    row["loss_exact_low"], row["loss_exact_high"] = cell.loss_exact
    row["loss_wilson_low"], row["loss_wilson_high"] = cell.loss_wilson
    row["lost_per_billion"] = cell.lost_per_billion
    row["lost_per_billion_error"] = cell.lost_per_billion_error
    row["losses_a_year"] = cell.losses_per_year(brokers, mtbf_ms)
    for kind in ("writes", "reads"):
        row[f"no_{kind}_a_failure_s"] = cell.per_failure_s(kind)
        row[f"no_{kind}_a_year_s"] = cell.per_year_s(kind, brokers, mtbf_ms)
    for step in STEPS:
        times = getattr(cell, step)
        for number, percent in enumerate(PERCENTS):
            row[f"{step}_p{percent}_ms"] = times[number] if times else None
    row["ack_p50_ms"], row["ack_p99_ms"] = cell.ack_p50_ms, cell.ack_p99_ms
    row["ran_s"] = cell.ran_ms / 1_000
    row["wall_ms_a_run"] = cell.wall_ms / cell.runs if cell.runs else 0.0
    return row
