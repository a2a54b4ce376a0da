"""The grids of scenarios/sweeps load, and a short run of each cell can be played."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from kcluster.pipeline.sweep.grid import load_grid
from kcluster.pipeline.sweep.runs import play

GRIDS = sorted((Path(__file__).parents[3] / "scenarios/sweeps").glob("*.yaml"))


@pytest.mark.parametrize("file", GRIDS, ids=lambda file: file.stem)
def test_examples__grids_load_and_their_cells_play(file: Path) -> None:
    grid = load_grid(file)
    assert grid.story
    assert grid.varied
    assert len(grid.seeds) >= 100
    for cell in (grid.cells[0], grid.cells[-1]):
        short = structs.replace(cell, duration_ms=cell.first_failure_ms + 3_000)
        row = play(short, 1)
        assert (row.error, row.sent > 0) == ("", True)


def test_examples__there_are_some() -> None:
    assert len(GRIDS) >= 2
