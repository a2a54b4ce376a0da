"""The page of a sweep in a real browser: nothing of its tables is cut off at any width."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.pipeline.sweep.grid import parse_grid
from kcluster.pipeline.sweep.report import write_report
from kcluster.pipeline.sweep.summary import CellSummary
from tests.runs.browser import IN_CHROMIUM, Browser

GRID = "grid: {acks: [1, all], min_insync_replicas: [1, 2], unclean_election: [true, false]}"

pytestmark = IN_CHROMIUM


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of eight cells with long figures."""
    grid, out = parse_grid(GRID), tmp_path_factory.mktemp("report")
    times = (7_900.0, 33_600.0, 125_300.0)
    sums = [
        CellSummary(
            cell.key,
            runs=5_000,
            losses=2_400,
            acked=2_900_000,
            lost=90_000,
            failures=24_370,
            ack_p50_ms=2_365.0,
            ack_p99_ms=35_365.0,
            noticed=times,
            elected=times,
            first_ack=times,
        )
        for cell in grid.cells
    ]
    losses = [(at, seed, 20) for at in range(8) for seed in (55, 56)]
    write_report(grid, sums, losses, "kcluster pipeline sweep " + "a_long_name_" * 20, out)
    return out / "report.html"


@pytest.mark.parametrize("width", [1_920, 1_280, 1_000, 480])
def test_report_in_chromium__no_column_is_cut_off(browser: Browser, page: Path, width: int) -> None:
    steps = """
    const wide = [...document.querySelectorAll("body *")]
      .filter((each) => each.getBoundingClientRect().right > innerWidth + 1
        || each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0);
    const last = [...document.querySelectorAll("td:last-child")].slice(-1)[0];
    return [wide.map((each) => each.outerHTML.slice(0, 80)), last.textContent];
    """
    wide, last = browser.look(page.as_uri(), steps, (width, 800, 1))
    assert wide == []
    assert last.startswith("kcluster pipeline replay")
