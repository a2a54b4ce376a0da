"""The files of a report: text, tables of figures, and the command that replays each loss."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from kcluster.cli.verbs.pipeline import command as pipeline
from kcluster.pipeline.sweep.estimates import MS_PER_YEAR
from kcluster.pipeline.sweep.figures import figures_of
from kcluster.pipeline.sweep.report import comparison, write_report
from kcluster.pipeline.sweep.summary import losses_of, pair_of
from kcluster.scenario.language.scenario import Scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipeline.sweep.conftest import Swept

pytestmark = pytest.mark.timeout_s(240)
COMMAND = "kcluster pipeline sweep reference.yaml"


@pytest.fixture(scope="module")
def written(spark: SparkSession, swept: Swept, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    losses = list(losses_of(spark, swept.grid, swept.out))
    places = write_report(swept.grid, swept.sums, losses, COMMAND, out)
    assert [place.name for place in places] == [
        "cells.csv",
        "cells.parquet",
        "losses.csv",
        "heat_map.png",
        "trade_off.png",
        "report.md",
        "report.html",
    ]
    return out


def test_report__figures_as_csv_and_parquet(
    spark: SparkSession, swept: Swept, written: Path
) -> None:
    wanted = figures_of(swept.grid, swept.sums, MS_PER_YEAR)
    held = [row.asDict() for row in spark.read.parquet(str(written / "cells.parquet")).collect()]
    assert held == wanted
    with open(written / "cells.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["losses"] for row in rows] == [str(cell.losses) for cell in swept.sums]
    assert [row["acks"] for row in rows] == ["1", "1", "all", "all"]
    assert list(rows[0]) == list(wanted[0])


def test_report__every_loss_can_be_replayed(swept: Swept, written: Path) -> None:
    with open(written / "losses.csv", encoding="utf-8", newline="") as file:
        losses = list(csv.DictReader(file))
    assert len(losses) == sum(cell.losses for cell in swept.sums)
    assert sum(int(row["lost"]) for row in losses) == sum(cell.lost for cell in swept.sums)
    first = losses[0]
    words = first["replay"].removeprefix("kcluster pipeline ").split()
    text = CliRunner().invoke(pipeline, words).output
    assert re.search(rf"lost-write.*\b{first['lost']}\b", text), text
    files = sorted((written / "losses").glob("*.yaml"))
    assert len(files) == sum(min(5, cell.losses) for cell in swept.sums)
    assert Scenario.load(files[0]).name == files[0].stem


def test_report__markdown_has_every_cell_and_explains_its_year(written: Path) -> None:
    text = (written / "report.md").read_text("utf-8")
    for line in (
        "# reference",
        f"    {COMMAND}",
        "4 cells, 80 runs.",
        "![heat_map](heat_map.png)",
        "![trade_off](trade_off.png)",
    ):
        assert line in text.splitlines()
    assert text.count("acks=all min_insync_replicas=2") >= 2
    assert "each broker fails once in 365.25 days" in text
    rows = [line.count("|") for line in text.splitlines() if line.startswith("| ")]
    assert set(rows) == {10, 13, 6}  # durability, availability, losses


def test_report__the_page_needs_no_other_file(written: Path) -> None:
    page = (written / "report.html").read_text("utf-8")
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', page)
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert page.count("<tr>") == page.count("</tr>")
    assert "kcluster pipeline replay" in page


def test_report__two_settings_side_by_side(spark: SparkSession, swept: Swept) -> None:
    pair = pair_of(spark, swept.grid, swept.out, 0, 2)
    lines = comparison(swept.grid, swept.sums, 0, 2, pair)
    first = "## acks=1 min_insync_replicas=1 against acks=all min_insync_replicas=1"
    assert lines[0] == first
    assert f"| with a loss | {swept.sums[0].losses} | {swept.sums[2].losses} |" in lines
    both = f"Of 20 seeds, {pair.both} lose records with both cells, {pair.only_a} only"
    assert lines[-1].startswith(both)
