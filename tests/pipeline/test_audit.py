from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cluster.pipeline.audit import ANOMALY_OF, audit
from cluster.pipeline.tables import Tables, find_runs
from cluster.runs.directory import RunError, write_run
from cluster.scenario.model import Scenario
from cluster.scenario.running import run_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INCIDENTS = sorted((Path(__file__).parents[2] / "scenarios/incidents").glob("*.yaml"))

pytestmark = pytest.mark.timeout_s(250)

LOSSY = "acks_one_planned_move"


@pytest.fixture(scope="module")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("incidents")
    for path in INCIDENTS:
        write_run(parent, run_scenario(Scenario.load(path), "virtual").record())
    return parent


def one(parent: Path, name: str) -> Path:
    return next(path for path in parent.glob(f"{name}-virtual-*") if not path.is_symlink())


def told_by(verdict: dict[str, Any]) -> dict[tuple[str, int, str], int]:
    """Counts of the verdict's anomalies by partition and name."""
    counts: dict[tuple[str, int, str], int] = {}
    for each in verdict["anomalies"]:
        if each["name"] in ANOMALY_OF.values():
            key = (*each["partition"], each["name"])
            counts[key] = counts.get(key, 0) + each["count"]
    return counts


def test_audit__agrees_with_the_verdict_of_every_incident(
    spark: SparkSession, incidents: Path
) -> None:
    runs, problems = find_runs([incidents])
    assert len(runs) == len(INCIDENTS) > 0
    assert problems == []
    tables = Tables(spark, runs)
    found = audit(tables)
    counted: dict[str, dict[tuple[str, int, str], int]] = {run.name: {} for run in runs}
    sums = {run.name: [0, 0, 0, 0] for run in runs}
    for row in found.totals.collect():
        for fate, name in ANOMALY_OF.items():
            if row[fate]:
                counted[row["run"]][row["topic"], row["partition"], name] = row[fate]
        for at, column in enumerate(("sent", "acked", "failed", "unknown")):
            sums[row["run"]][at] += row[column]
    assert counted == {run.name: told_by(run.verdict) for run in runs}
    assert sums == {
        run.name: [run.verdict[name] for name in ("sent", "acked", "failed", "unknown")]
        for run in runs
    }
    assert tables.problems == []
    lost = [row for row in found.summary.collect() if row["fate"] == "lost"]
    assert all(row["cause"].startswith("leader ") and row["epoch"] == 0 for row in lost)
    assert sum("UNCLEAN" in row["cause"] for row in lost) == 2
    tables.close()


def test_audit__a_line_cut_short_is_told_with_its_place_and_the_rest_is_used(
    spark: SparkSession, incidents: Path, tmp_path: Path
) -> None:
    source = one(incidents, LOSSY)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in source.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    sends = (copy / "sends.jsonl").read_bytes().splitlines(keepends=True)
    sends[2] = b'{"producer": 7}\n'
    sends[-1] = sends[-1][:40]
    (copy / "sends.jsonl").write_bytes(b"".join(sends))
    (copy / "reads.jsonl").unlink()
    tables = Tables(spark, find_runs([copy])[0])
    (total,) = audit(tables).totals.collect()
    assert total["sent"] == len(sends) - 2
    assert total["lost"] == 27
    places = [problem.split(": ")[0] for problem in tables.problems]
    assert places == [f"{copy}/sends.jsonl:3", f"{copy}/sends.jsonl:{len(sends)}",
                      f"{copy}/reads.jsonl"]  # fmt: skip
    tables.close()


def test_audit__what_a_topic_holds_is_believed(spark: SparkSession, incidents: Path) -> None:
    run = one(incidents, "min_insync_two")
    sent = [json.loads(line) for line in (run / "sends.jsonl").read_text().splitlines()]
    held = [
        (run.name, each["topic"], each["partition"], each["offset"], each["value"])
        for each in sent
        if each["outcome"] == "acked"
    ]
    held[5] = (*held[5][:4], held[6][4])
    schema = "run string, topic string, partition bigint, offset bigint, value string"
    tables = Tables(spark, find_runs([run])[0])
    (total,) = audit(tables, contents=spark.createDataFrame(held, schema)).totals.collect()
    assert (total["lost"], total["duplicated"]) == (1, 1)
    tables.close()


def test_audit__runs_that_cannot_be_used(incidents: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such directory"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(RunError, match=r"no run: it has no run\.json"):
        find_runs([tmp_path])
    (tmp_path / "new").mkdir()
    text = (one(incidents, LOSSY) / "run.json").read_text()
    (tmp_path / "new" / "run.json").write_text(text.replace('"format": 1', '"format": 9'))
    with pytest.raises(RunError, match=r"run\.json: a run directory of format 9"):
        find_runs([tmp_path])
