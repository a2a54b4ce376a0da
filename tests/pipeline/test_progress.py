"""A bar on a terminal shows the progress of a job; elsewhere lines do, for a job that asks."""

from __future__ import annotations

from io import StringIO
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from kcluster.pipeline.progress import Progress, tasks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_progress__a_terminal_shows_a_bar_that_is_erased_at_the_end(spark: SparkSession) -> None:
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with Progress("runs", spark, done=2, total=10, unit="runs", console=console) as progress:
        progress.part("last runs")
        progress.update(9, 10)
    text = out.getvalue()
    assert "2 of 10 runs" in text
    assert "9 of 10 runs" in text
    assert "last runs" in text
    assert text.endswith("\x1b[2K")  # the line is erased


def test_progress__without_a_terminal_nothing_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Progress("runs", total=10) as progress:
        progress.update(3, 10)
    assert capsys.readouterr() == ("", "")


def test_progress__without_a_terminal_a_long_job_prints_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now_s = 100.0
    with Progress("runs", line_every_s=10, clock=lambda: now_s) as progress:
        for now_s in (100.0, 109.0, 110.0, 111.0, 119.0, 121.0):
            progress.update(int(now_s), 2_000, "1.0 runs/s")
    assert capsys.readouterr().err == (
        "kcluster: runs: 110 of 2,000, 1.0 runs/s\nkcluster: runs: 121 of 2,000, 1.0 runs/s\n"
    )


def test_progress__tasks_are_counted_while_they_run(spark: SparkSession) -> None:
    job = Thread(target=spark.range(400_000, numPartitions=7).selectExpr("max(id)").collect)
    job.start()
    seen = set()
    while job.is_alive():
        seen.add(tasks_of(spark))
        job.join(0.01)
    assert any(tasks == 7 and done < 7 for done, tasks in seen)
    assert tasks_of(spark) == (0, 0)
