"""Tables over many runs, compared with a run made by hand and with verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from kcluster.cli.pipeline import audit as pipeline_audit
from kcluster.cli.pipeline import timeline as pipeline_timeline
from kcluster.contract import CONTROLLER_ID
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown, BrokerFenced, BrokerStarted, BrokerUnfenced
from kcluster.events.network import LinkCut, LinkHealed
from kcluster.events.partitions import (
    IsrChange,
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    PartitionOffline,
)
from kcluster.events.reasons import ElectionKind, Fencing, Requested
from kcluster.pipeline.charts import write_page
from kcluster.pipeline.tables import Tables, find_runs
from kcluster.pipeline.timeline import read, timeline, write
from kcluster.runs.directory import write_run
from kcluster.runs.record import ErrorRow, NoteRow, RequestRow, RunInfo, RunRecord, SendRow
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INCIDENTS = Path(__file__).parents[2] / "scenarios/incidents"

FENCED = BrokerFenced(1, Fencing.SESSION_EXPIRED, 1_000)

pytestmark = pytest.mark.timeout_s(200)


def by_hand() -> RunRecord:
    """Ten seconds: broker 1 is killed at 1,000 and fenced at 2,000: orders-0 goes to broker 2,
    orders-1 to nobody; its new process is let in at 5,000 and leads both again, orders-0
    because an operator wants it.  At 6,000 it is cut off, for the second time: the first did not
    matter; broker 2 leads at 7,500.  Kafka's own topic counts for its ISR alone."""
    record = RunRecord(RunInfo("by hand", "virtual", 1, 0, 10_000))
    record.notes = [
        note(500, LinkCut(1, CONTROLLER_ID)),
        note(600, LinkHealed(1, CONTROLLER_ID)),
        note(1_000, BrokerDown(1, DeathKind.KILL)),
        note(1_200, BrokerStarted(1, restarted=True)),
        note(2_000, FENCED),
        change(2_000, 0, 1, 2, 1),
        change(2_000, 1, 1, -1, 1),
        change(2_000, 0, 1, 2, 1, topic="__consumer_offsets"),
        *(isr_change(2_000, IsrShrunk, "orders") for _ in range(2)),
        isr_change(2_000, IsrShrunk, "__consumer_offsets"),
        note(5_000, BrokerUnfenced(1, 9)),
        change(5_000, 1, -1, 1, 2),
        isr_change(5_500, IsrExpanded, "orders"),
        change(5_600, 0, 2, 1, 2),
        note(6_000, LinkCut(1, CONTROLLER_ID)),
        note(7_500, FENCED),
        change(7_500, 0, 1, 2, 3, clean=False),
    ]
    acks = (
        (0, 900, 910),
        (0, 1_500, 2_050),
        (0, 7_400, 7_700),
        (1, 1_100, 5_200),
        (0, 7_550, 7_600),
    )
    record.sends = [
        SendRow("shop", "orders", partition, f"v{at}", -1, True, "acked", at, sent, ended, 1, "")
        for at, (partition, sent, ended) in enumerate(acks)
    ]
    failed = (("shop", "Produce"), ("shop", "Produce"), ("reader", "Fetch"))
    record.errors = [
        ErrorRow(client, api, "NOT_LEADER_OR_FOLLOWER", "orders", 0, 2_000)
        for client, api in failed
    ]
    record.requests = [
        RequestRow("Produce", "client-1", 1, 2, 98),
        RequestRow("Produce", "client-1", 2, 300, 2),
    ]
    window = {
        "kind": "writes",
        "partition": ["orders", 0],
        "from_ms": 1_000,
        "to_ms": 2_050,
        "is_over": True,
        "clients": ["shop"],
        "errors": ["NOT_LEADER_OR_FOLLOWER"],
        "reasons": [{"at_ms": 1_000, "text": "broker 1 was killed", "note_id": None}],
    }
    record.verdict = {"windows": [window], "acked": 5, "errors": []}
    return record


def note(at_ms: int, event: Any) -> NoteRow:
    return NoteRow((0, 0), at_ms, event)


def change(
    at_ms: int,
    partition: int,
    old: int,
    new: int,
    epoch: int,
    clean: bool = True,
    topic: str = "orders",
) -> NoteRow:
    about = (topic, partition, old, new, epoch, clean, Requested())
    elected = ElectionKind.PREFERRED if clean else ElectionKind.UNCLEAN
    return note(
        at_ms, LeaderElected(*about, elected) if new >= 0 else PartitionOffline(*about, (), ())
    )


def isr_change(at_ms: int, kind: type[IsrChange], topic: str) -> NoteRow:
    return note(at_ms, kind(topic, 0, (1, 2), (2,), (1,), (), (), 1, Requested()))


def test_timeline__tables_have_the_facts_of_the_runs(spark: SparkSession, tmp_path: Path) -> None:
    scenario = Scenario.load(INCIDENTS / "isr_thrashing.yaml")
    played = write_run(tmp_path / "runs", run_scenario(scenario, "virtual").record())
    hand = write_run(tmp_path / "runs", by_hand()).name
    found, _ = find_runs([tmp_path / "runs"])
    tables = Tables(spark, found)
    made = timeline(tables)
    places = write(made, tmp_path)
    held = {place.name: spark.read.parquet(str(place)).collect() for place in places}
    page = write_page(read(spark, tmp_path), tmp_path, len(found)).read_text()
    assert tables.problems == []
    tables.close()

    verdict = json.loads((played / "verdict.json").read_text())
    assert [
        (row["run"], row["from_ms"], row["duration_ms"], row["cause"])
        for row in held["windows"]
        if row["run"] == hand
    ] == [(hand, 1_000, 1_050, "broker 1 was killed")]
    assert sorted(row["duration_ms"] for row in held["windows"] if row["run"] != hand) == sorted(
        window["to_ms"] - window["from_ms"] for window in verdict["windows"]
    )
    columns = (
        "partition",
        "epoch",
        "old",
        "new",
        "clean",
        "down_ms",
        "noticed_ms",
        "elected_ms",
        "acked_ms",
    )
    rows = [tuple(row[name] for name in columns) for row in held["failovers"] if row["run"] == hand]
    assert sorted(rows) == [
        (0, 1, 1, 2, True, 1_000, 1_000, 1_000, 1_050),
        (0, 3, 1, 2, False, 6_000, 1_500, 1_500, 1_700),
        (1, 2, 1, 1, True, 1_000, 1_000, 4_000, 4_200),
    ]
    assert {
        (row["step"], row["failovers"], row["p50"], row["max"]) for row in held["failover_times"]
    } == {("noticed", 3, 1_000, 1_500), ("elected", 3, 1_500, 4_000), ("acked", 3, 1_700, 4_200)}
    seconds = sum(run.info.ended_ms - run.info.began_ms for run in found) / 1_000
    errors = {(row["client"], row["api"], row["error"]): row for row in held["errors"]}
    counted = {
        ("reader", "Fetch", "NOT_LEADER_OR_FOLLOWER"): 1,
        ("shop", "Produce", "NOT_LEADER_OR_FOLLOWER"): 2,
    }
    for each in verdict["errors"]:
        key = (each["client"], each["api"], each["error"])
        counted[key] = counted.get(key, 0) + each["count"]
    assert {key: row["times"] for key, row in errors.items()} == counted
    for row in errors.values():
        assert row["per_second"] == pytest.approx(row["times"] / seconds)
    churn = {
        row["topic"]: (row["shrinks"], row["expands"]) for row in held["isr"] if row["run"] == hand
    }
    assert churn == {"orders": (2, 1), "__consumer_offsets": (1, 0)}
    assert sum(row["shrinks"] for row in held["isr"] if row["run"] != hand) > 1
    (latency,) = [row for row in held["latencies"] if row["run"] == hand]
    assert (latency["acked"], latency["p50"], latency["max"]) == (5, 300, 4_100)
    assert sum(row["acked"] for row in held["latencies"]) == 5 + verdict["acked"]
    (produce,) = [row for row in held["requests"] if row["client"] == "client-1"]
    assert (produce["api"], produce["requests"], produce["runs"]) == ("Produce", 100, 1)
    assert (produce["p50"], produce["p95"], produce["p99"], produce["max"]) == (2, 2, 300, 300)
    assert page.count("<svg") == 6
    assert "2 runs" in page
    assert "REQUEST_TIMED_OUT" in page


def test_pipeline__unreadable_input_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for command in (pipeline_audit.command, pipeline_timeline.command):
        result = CliRunner().invoke(command, [str(tmp_path / "nowhere")])
        assert result.exit_code == 2
        assert result.stderr.endswith("nowhere: no such directory\n")
        assert result.stderr.count("\n") == 1


def test_pipeline__an_invalid_table_is_one_line_and_exit_code_2(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "runs", by_hand())
    spark.range(3).write.parquet(str(tmp_path / "wrong"))
    for table, reason in (
        ("wrong", "wrong: no column topic; it has id, run"),
        ("nowhere", "nowhere: no such directory"),
    ):
        words = [str(run), "--table", str(tmp_path / table), "--master", "local[2]"]
        result = CliRunner().invoke(pipeline_audit.command, words)
        assert result.exit_code == 2
        assert result.stderr == f"kcluster: {tmp_path}/{reason}\n"
