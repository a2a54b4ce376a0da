"""The record of a live cluster: verdict, save, --out, and what a killed process leaves."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kcluster.runs.directory import read_run
from tests.rig.patience import PATIENCE_S

Start = Callable[..., Any]
Verb = Callable[..., tuple[int, str, str]]

UP = ("--base-port", "0", "--profile", "fast", "--name", "lab")
TOPOLOGY = """\
name: lab
profile: fast
brokers: [{id: 1}, {id: 2}]
config: {unclean.leader.election.enable: true}
topics: {orders: {assignment: [[1, 2]]}}
"""


def produce(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "client.id": "writer"})
    for number in range(count):
        producer.produce("orders", b"%d" % number, partition=0)
    assert producer.flush(PATIENCE_S) == 0


@pytest.fixture
def lab(start_up: Start, tmp_path: Path) -> Any:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    return start_up("--out", "runs")


def test_verdict__of_a_live_cluster_is_valid_unknown_or_invalid(
    lab: Any, kcluster: Verb, tmp_path: Path
) -> None:
    assert kcluster("verdict")[:2] == (
        1,
        "sent 0  acked 0  failed 0  unknown 0  read 0\nunknown: nothing was sent\n",
    )
    produce(lab.bootstrap, 20)
    code, out, _ = kcluster("verdict")
    assert (code, out.splitlines()[-2][:17]) == (0, "sent 20  acked 20")
    assert kcluster("verdict", "--quiet")[1].startswith("valid: no anomaly")
    assert kcluster("verdict", "--since", "10m")[0] == 0
    code, _, err = kcluster("verdict", "--since", "soon")
    assert (code, err[:32]) == (1, "kcluster: since: soon is not a t")
    # Broker 2 lacks what only broker 1 has acked, and is elected unclean.
    kcluster("kill", "2")
    out = kcluster("verdict", "-q")[1]
    assert out.endswith("broker 2 is down; first: kcluster start down\n"), out
    produce(lab.bootstrap, 5)
    kcluster("kill", "1")
    kcluster("start", "2")
    kcluster("start", "1")
    code, out, _ = kcluster("verdict", "--json")
    verdict = json.loads(out)
    assert (code, verdict["outcome"]) == (1, "invalid")
    assert [(x["name"], x["count"]) for x in verdict["anomalies"]] == [("lost-write", 5)]
    assert "unclean-election" in verdict["anomalies"][0]["causes"]

    code, out, _ = kcluster("save", str(tmp_path / "saved"))
    assert (code, out.splitlines()[0]) == (0, "verdict: invalid: 5 lost-write")
    code, out, _ = kcluster("explain", str(tmp_path / "saved"), "--no-colour")
    assert code == 0
    assert "at the end, orders-0:" in out

    code, out, err = lab.stop()
    assert (code, err) == (0, "")
    record, problems = read_run(tmp_path / "runs")
    assert (record.info.name, record.info.outcome, problems) == ("lab", "invalid", [])
    assert len(record.sends) == 25
    assert (tmp_path / "runs" / "latest" / "timeline.html").exists()


def test_status_at__shows_the_past_of_a_live_cluster_and_of_a_run(
    lab: Any, kcluster: Verb, tmp_path: Path
) -> None:
    kcluster("verdict")  # returns once the cluster is recorded
    produce(lab.bootstrap, 20)
    kcluster("kill", "2")
    code, out, _ = kcluster("status", "--at", "0s", "--json")
    assert (code, {x["state"] for x in json.loads(out)["brokers"]}) == (0, {"up"})
    code, out, _ = kcluster("status", "--at", "-0s", "--json")
    now = json.loads(out)
    assert [x["state"] for x in now["brokers"]] == ["up", "down"]
    writer = next(x for x in now["clients"] if x["name"] == "writer")
    assert (writer["last"]["api"], writer["last"]["last"]) == ("Produce", 19)
    assert [(x["leader"], x["leader_epoch"]) for x in writer["beliefs"]] == [(1, 0)]
    kcluster("save", str(tmp_path / "saved"))
    code, out, _ = kcluster("status", "--at", "-0s", "--run", str(tmp_path / "saved"))
    assert code == 0
    assert out.splitlines()[0] == "cluster lab"
    assert out.splitlines()[-1].split() == ["orders-0", "1", "0", "1,2", "1", "20", "20", "0"]
    assert kcluster("status", "--at", "9h")[0] == 2
    assert kcluster("status", "--run", str(tmp_path / "saved"))[0] == 2


def test_up__out_of_a_process_that_was_killed_can_be_explained(
    lab: Any, kcluster: Verb, tmp_path: Path
) -> None:
    kcluster("verdict")  # returns once the cluster is recorded, a moment after it serves clients
    produce(lab.bootstrap, 20)
    kcluster("kill", "2")
    appends = tmp_path / "runs" / "latest" / "appends.jsonl"
    events = tmp_path / "runs" / "latest" / "events.jsonl"
    pause, until_s = threading.Event(), time.monotonic() + PATIENCE_S
    while not (appends.read_bytes() and b"isr_shrunk" in events.read_bytes()):
        assert time.monotonic() < until_s, "the run directory is not kept current"
        pause.wait(0.05)
    lab.stop(signal.SIGKILL)
    record, problems = read_run(tmp_path / "runs")
    assert (record.info.outcome, problems) == ("unknown", [])
    assert [row.broker for row in record.appends][:1] == [1]
    code, out, _ = kcluster("explain", str(tmp_path / "runs"), "--no-colour")
    assert (code, "isr_shrunk  orders-0: ISR [1, 2] -> [1]" in out) == (0, True)


def test_down__out_writes_the_run_before_it_stops(
    start_up: Start, kcluster: Verb, tmp_path: Path
) -> None:
    start_up("--brokers", "1", *UP)
    code, out, _ = kcluster("down", "--out", str(tmp_path / "runs"))
    assert (code, out.splitlines()[-1]) == (0, "cluster lab has stopped")
    assert read_run(tmp_path / "runs")[0].info.name == "lab"


def test_down__completes_the_run_directory_of_up_and_makes_no_other(
    lab: Any, kcluster: Verb, tmp_path: Path
) -> None:
    kcluster("verdict")  # returns once the cluster is recorded, a moment after it serves clients
    produce(lab.bootstrap, 20)
    code, out, err = kcluster("down", "--out", str(tmp_path / "others"))
    assert (code, out) == (2, "")
    assert err.startswith(
        f"kcluster: up --out writes this run to {tmp_path / 'runs' / 'lab-live-'}"
    )
    code, out, _ = kcluster("down", "--out", str(tmp_path / "runs"))
    assert (code, out.splitlines()[0]) == (0, "verdict: valid: no anomaly")
    (run,) = [path for path in (tmp_path / "runs").iterdir() if path.name != "latest"]
    assert out.splitlines()[1] == f"run directory: {run}  (kcluster explain {run})"
    assert not (tmp_path / "others").exists()
    record, problems = read_run(tmp_path / "runs")
    assert (len(record.sends), record.info.outcome, problems) == (20, "valid", [])


def test_down__says_where_the_run_of_up_is(lab: Any, kcluster: Verb, tmp_path: Path) -> None:
    code, out, _ = kcluster("down")
    (run,) = [path for path in (tmp_path / "runs").iterdir() if path.name != "latest"]
    assert (code, out.splitlines()) == (
        0,
        [
            "verdict: unknown: nothing was sent",
            f"run directory: {run}  (kcluster explain {run})",
            "cluster lab has stopped",
        ],
    )


def test_up__no_record_has_no_verdict(start_up: Start, kcluster: Verb) -> None:
    start_up("--brokers", "1", *UP, "--no-record")
    code, out, err = kcluster("verdict")
    assert (code, out) == (1, "")
    assert err == "kcluster: this cluster is not recorded, by --no-record or record=False\n"


def test_up__out_needs_a_record(start_up: Start) -> None:
    up = start_up("--brokers", "1", *UP, "--no-record", "--out", "runs")
    assert up.process.wait(PATIENCE_S) == 2
    assert up.process.stderr.read() == "kcluster: --out needs a record; leave out --no-record\n"


def test_record__what_was_done_to_a_live_cluster_runs_as_a_scenario(
    start_up: Start, kcluster: Verb, tmp_path: Path
) -> None:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    up = start_up("--record", "lesson.yaml")
    kcluster("kill", "2")
    kcluster("start", "2")
    saved = tmp_path / "now.yaml"
    code, out, _ = kcluster("save", "--scenario", str(saved))
    assert (code, out) == (0, f"scenario: {saved}  (kcluster scenario run {saved})\n")
    code, out, err = up.stop()
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "scenario: lesson.yaml  (kcluster scenario run lesson.yaml)"
    text = (tmp_path / "lesson.yaml").read_text()
    assert [line.split('"')[5] for line in text.splitlines() if '"at"' in line] == ["kill", "start"]
    code, out, _ = kcluster("scenario", "run", str(tmp_path / "lesson.yaml"), "-v")
    assert (code, "broker_down" in out) == (0, True)
    lesson = str(tmp_path / "lesson.yaml")
    code, out, _ = kcluster("scenario", "run", lesson, "-v", "--clock", "live")
    assert (code, "broker_down" in out) == (0, True)
