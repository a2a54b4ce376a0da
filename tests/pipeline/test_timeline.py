from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cluster.cli import pipeline_audit, pipeline_timeline
from cluster.pipeline.charts import write_page
from cluster.pipeline.tables import Tables, find_runs
from cluster.pipeline.timeline import timeline, write
from cluster.runs.directory import write_run
from cluster.scenario.model import Scenario
from cluster.scenario.running import run_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INCIDENTS = Path(__file__).parents[2] / "scenarios/incidents"

pytestmark = pytest.mark.timeout_s(200)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("runs")
    for name in ("acks_one_crash", "isr_thrashing"):
        scenario = Scenario.load(INCIDENTS / f"{name}.yaml")
        write_run(parent, run_scenario(scenario, "virtual").record())
    return parent


def test_timeline__tables_hold_what_the_runs_do(
    spark: SparkSession, runs: Path, tmp_path: Path
) -> None:
    found, _ = find_runs([runs])
    tables = Tables(spark, found)
    made = timeline(tables)
    windows = made.windows.collect()
    verdicts = [json.loads((run.path / "verdict.json").read_text()) for run in found]
    wanted = [each for verdict in verdicts for each in verdict["windows"]]
    assert [row["duration_ms"] for row in windows] == [w["to_ms"] - w["from_ms"] for w in wanted]
    (failover,) = [row for row in made.failovers.collect() if row["topic"] == "orders"]
    assert (failover["old"], failover["new"], failover["clean"]) == (1, 2, True)
    assert 0 < failover["noticed_ms"] <= failover["elected_ms"] <= failover["acked_ms"] < 1_000
    times = {row["step"]: row for row in made.failover_times.collect()}
    assert sorted(times) == ["acked", "elected", "noticed"]
    errors = {
        (row["client"], row["api"], row["error"]): row["times"] for row in made.errors.collect()
    }
    counted: dict[tuple[str, str, str], int] = {}
    for verdict in verdicts:
        for each in verdict["errors"]:
            key = (each["client"], each["api"], each["error"])
            counted[key] = counted.get(key, 0) + each["count"]
    assert errors == counted
    thrashing = [r for r in made.isr.collect() if r["run"].startswith("isr_thrashing")]
    assert sum(row["shrinks"] for row in thrashing) > 1
    acked = sum(row["acked"] for row in made.latencies.collect())
    assert acked == sum(verdict["acked"] for verdict in verdicts)
    for place in write(made, tmp_path):
        assert spark.read.parquet(str(place)).count() >= 1
    page = write_page(made, tmp_path, len(found)).read_text()
    assert page.count("<svg") == 5
    assert "2 runs" in page
    assert "REQUEST_TIMED_OUT" in page
    tables.close()


def test_pipeline__what_cannot_be_read_is_one_line_and_exit_2(tmp_path: Path) -> None:
    for command in (pipeline_audit.command, pipeline_timeline.command):
        result = CliRunner().invoke(command, [str(tmp_path / "nowhere")])
        assert result.exit_code == 2
        assert result.stderr.endswith("nowhere: no such directory\n")
        assert result.stderr.count("\n") == 1
