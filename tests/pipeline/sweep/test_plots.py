"""The two plots: their texts, and that nothing overlaps."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kcluster.pipeline.sweep.grid import Grid, parse_grid
from kcluster.pipeline.sweep.plots import (
    format_numbers,
    heat_map,
    loss_label,
    trade_off,
    write_plots,
)
from kcluster.pipeline.sweep.summary import CellSummary

pytestmark = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="the extra plots is not installed"
)

GRID = """
grid:
  replication_factor: [2, 3]
  min_insync_replicas: [1, 2, 3]
  acks: [1, all]
  failures: 1
"""


def sums_of(grid: Grid) -> list[CellSummary]:
    """Some with losses and some without, two at the same point, one without a run."""
    sums = [
        CellSummary(
            cell.key,
            runs=200,
            losses=(0, 40, 3)[at % 3],
            failures=200,
            acked=1_000,
            lost=5,
            writes_ms=200 * 1_000 * (3 + at // 2),
            ack_p50_ms=5.0 + at % 2,
        )
        for at, cell in enumerate(grid.cells)
    ]
    sums[2] = CellSummary(grid.cells[2].key)
    sums[9] = sums[8]
    return sums


def texts_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_plots__a_cell_of_the_heat_map_shows_its_share_and_interval() -> None:
    grid = parse_grid(GRID)
    sums = sums_of(grid)
    assert len(grid.cells) == 10  # 3 in sync of 2 replicas cannot be
    figure = heat_map(grid, sums)
    axes = figure.axes[0]
    assert texts_of(axes) == [loss_label(cell) for cell in sums if cell.runs]
    assert loss_label(sums[0]) == "none\nbelow 1.8 %"
    assert loss_label(sums[1]) == "20 %\n15 to 26 %"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "all"]
    assert axes.get_yticklabels()[0].get_text() == "replication_factor=2  min_insync_replicas=1"


def test_plots__numbers_of_the_trade_off_do_not_overlap() -> None:
    grid = parse_grid(GRID)
    figure = trade_off(grid, sums_of(grid))
    axes = figure.axes[0]
    assert texts_of(axes) == ["1", "2", "4", "5", "6", "7", "8", "9, 10"]  # 3 has no run
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    for at, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[at + 1 :])
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names[0] == "1  replication_factor=2 min_insync_replicas=1 acks=1"
    assert len(names) == 9


def test_plots__cells_without_a_loss_are_drawn_at_their_upper_bound() -> None:
    grid = parse_grid("grid: {acks: [1, all]}")
    sums = [
        CellSummary(grid.cells[0].key, runs=100, losses=10, failures=100, writes_ms=1_000),
        CellSummary(grid.cells[1].key, runs=100, failures=100, writes_ms=2_000),
    ]
    lost: Any
    lossless: Any
    lost, lossless = trade_off(grid, sums).axes[0].collections[-2:]
    assert lost.get_offsets().tolist() == [[0.01, 0.1]]
    assert lossless.get_offsets().tolist() == [[0.02, sums[1].loss_exact[1]]]


def test_plots__one_cell_or_none_with_a_run(tmp_path: Path) -> None:
    grid = parse_grid("grid: {acks: all}")
    for sums in (
        [CellSummary(grid.cells[0].key)],
        [CellSummary(grid.cells[0].key, runs=5, losses=5)],
    ):
        places = write_plots(grid, sums, tmp_path)
        assert [place.read_bytes()[:4] for place in places] == [b"\x89PNG", b"\x89PNG"]


def test_plots__the_same_figures_are_the_same_file(tmp_path: Path) -> None:
    grid = parse_grid(GRID)
    first = [place.read_bytes() for place in write_plots(grid, sums_of(grid), tmp_path)]
    assert [place.read_bytes() for place in write_plots(grid, sums_of(grid), tmp_path)] == first


def test_plots__numbers_in_words() -> None:
    assert format_numbers([1, 2, 3, 5, 7, 8]) == "1-3, 5, 7, 8"
