"""What is known of a cluster: replicas, the past, verdicts, what applications processed, forks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from bench.wire import Wire, address_of, produce_body
from kcluster.config.files.problems import show
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Record
from kcluster.runs.directory import read_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.played import PlayedRun
from kcluster.scenario.play.virtual import run_virtual
from kcluster.web.held import HeldCluster
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import batch_with_wrong_lengths
from tests.web.api_client import Api, serving
from tests.web.test_streams import next_event

RECORDS = [Record(0, 1_000_000, b"k", b"v%d" % at) for at in range(12)]


def send(api: Api, cluster: str, count: int, bootstrap: str = "") -> None:
    """Send records to orders-0 and wait for their acks."""
    servers = bootstrap or api.ok("GET", cluster)["bootstrap"]
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for number in range(count):
        producer.produce("orders", b"%d" % number, partition=0)
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.clients
def test_evidence__replicas_verdict_and_saved_run(api: Api, cluster: str, runs: Path) -> None:
    send(api, cluster, 5)
    api.ok("POST", f"{cluster}/wait", {"until": "high_watermark(orders-0) = 5"})
    found = api.ok("GET", f"{cluster}/replicas/orders-0")
    assert [replica["log_end_offset"] for replica in found["replicas"]] == [5, 5, 5]
    assert api.ask("GET", f"{cluster}/replicas/orders-9").status == 404
    verdict = api.ok("GET", f"{cluster}/verdict")
    assert (verdict["outcome"], verdict["acked"]) == ("valid", 5)
    api.ok("POST", f"{cluster}/processed", {"topic": "orders", "offsets": [[0, 0], [0, 1]]})
    saved = api.ok("POST", f"{cluster}/save", {"directory": str(runs)})
    record, problems = read_run(saved["run"])
    assert not problems
    assert [row.offset for row in record.processed] == [0, 1]
    assert b"<html" in api.ask("GET", f"{cluster}/timeline.html").body
    deleted = api.ok("DELETE", f"{cluster}?out=ci/last")
    assert Path(deleted["run"]).parent == runs / "ci" / "last"
    assert deleted["outcome"] == "valid"


def test_evidence__of_records_that_nobody_can_read(api: Api, cluster: str) -> None:
    answers = []
    for address in api.ok("GET", cluster)["bootstrap"].split(","):
        with Wire(address_of(address)) as wire:
            body = produce_body("orders", 0, batch_with_wrong_lengths(RECORDS))
            (topic,) = wire.ask(ApiKey.PRODUCE, 7, body).responses
            answers.append(topic.partition_responses[0].error_code)
    assert answers.count(ErrorCode.NONE) == 1
    verdict = api.ok("GET", f"{cluster}/verdict")
    assert verdict["outcome"] == "unknown"
    assert [(found["first"], found["last"]) for found in verdict["unreadable"]] == [(0, 11)]
    assert b"<html" in api.ask("GET", f"{cluster}/timeline.html").body
    api.ok("POST", f"{cluster}/processed", {"topic": "orders", "offsets": [[0, 0]]})
    assert api.ask("GET", f"{cluster}/processed?topic=orders").status == 200
    assert api.ok("DELETE", f"{cluster}?out=unreadable")["outcome"] == "unknown"


def test_evidence__runs_are_written_below_one_directory_only(
    api: Api, cluster: str, runs: Path, tmp_path: Path
) -> None:
    (runs / "link").symlink_to(tmp_path)
    for wrong in (str(tmp_path), "..", f"{runs}/../x", "link", "link/below", "\0", "x" * 5_000):
        answer = api.ask("POST", f"{cluster}/save", {"directory": wrong})
        assert answer.status == 422, wrong
        assert answer.value["problems"][0]["path"] == "directory"
    answer = api.ask("DELETE", f"{cluster}?out={tmp_path}")
    hint = f"not below {runs}, where this server writes runs (kcluster serve --runs DIR)"
    assert (answer.status, answer.value["detail"]) == (422, f"out: {show(str(tmp_path))}: {hint}")
    assert list(tmp_path.iterdir()) == []
    assert api.ask("GET", cluster).status == 200


def test_evidence__the_token_of_a_page_writes_nothing(tmp_path: Path) -> None:
    """`up --page` and `learn --page` create no clusters, and show their token in an address."""
    with serving() as (server, api):
        cluster = api.cluster()
        for method, path, body in (
            ("POST", f"{cluster}/save", {"directory": str(tmp_path)}),
            ("DELETE", f"{cluster}?out={tmp_path}", None),
        ):
            answer = api.ask(method, path, body)
            assert answer.status == 403
            assert "kcluster save DIR" in answer.value["detail"]
        assert len(server.clusters.all()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clients
def test_evidence__what_was_processed_in_any_language(api: Api, cluster: str) -> None:
    send(api, cluster, 4)
    path, report = f"{cluster}/processed", {"topic": "orders", "by": "node-1"}
    reported = api.ok("POST", path, {**report, "offsets": [[0, 0], [0, 1], [0, 1]]})
    assert reported == {"topic": "orders", "reported": 3}
    judged = api.ok("GET", f"{path}?topic=orders")
    assert not judged["valid"]
    assert {(x["problem"], x["first"], x["last"]) for x in judged["problems"]} == {
        ("missed", 2, 3),
        ("repeated", 1, 1),
    }
    answer = api.ask("GET", f"{path}?topic=order")
    assert (answer.status, answer.value["detail"]) == (
        404,
        "order: no such topic; did you mean orders?",
    )


def test_evidence__a_verdict_since_a_moment_judges_a_test(api: Api, cluster: str) -> None:
    """What an earlier test has lost is no matter of the next one."""
    sent = {"producer": {"topic": "orders", "rate": "200/s"}}
    name = api.ok("POST", f"{cluster}/clients", sent)["client"]
    api.ok("POST", f"{cluster}/wait", {"until": "high_watermark(orders-0) >= 3"})
    api.ok("DELETE", f"{cluster}/clients/{name}")
    whole = api.ok("GET", f"{cluster}/verdict")
    assert whole["sent"] >= 3
    mark = f"@{api.ok('GET', cluster)['at_ms']}"
    api.ok("POST", f"{cluster}/wait", {"until": "settled"})
    later = api.ok("GET", f"{cluster}/verdict?since={mark}")
    assert (later["outcome"], later["reason"], later["sent"]) == ("unknown", "nothing was sent", 0)
    assert api.ok("GET", f"{cluster}/verdict?since=1")["sent"] == whole["sent"]
    assert api.ok("GET", f"{cluster}/verdict?since=10m")["sent"] == whole["sent"]
    for wrong, why in (
        ("soon", "since: soon is not a time back (30s), an event's number (17), or a moment"),
        ("9999", "since: there is no event 9999; 1 to "),
    ):
        answer = api.ask("GET", f"{cluster}/verdict?since={wrong}")
        assert (answer.status, answer.value["detail"][: len(why)]) == (409, why)


def test_evidence__an_event_names_its_subject_once(api: Api, cluster: str) -> None:
    events = api.ok("GET", f"{cluster}/events")["events"]
    sentences = [event["sentence"] for event in events if event["subject"] == "broker 1"]
    assert sentences
    assert all(sentence.count("broker 1") == 1 for sentence in sentences), sentences


def test_evidence__a_moment_of_the_past(api: Api, cluster: str) -> None:
    before_ms = api.ok("GET", f"{cluster}/clock")["now_ms"]
    killed = api.ok("POST", f"{cluster}/actions", {"kill": "leader(orders-0)"})
    then = api.ok("GET", f"{cluster}/at?ms={before_ms}")
    now = api.ok("GET", f"{cluster}/at?ms=0")
    assert then["partitions"][0]["leader"] == killed["brokers"][0]
    assert now["partitions"][0]["leader"] != killed["brokers"][0]


def test_evidence__clients_without_code(api: Api, cluster: str) -> None:
    body = {"producer": {"topic": "orders", "rate": "200/s"}}
    name = api.ok("POST", f"{cluster}/clients", body)["client"]
    api.ok("POST", f"{cluster}/wait", {"until": "high_watermark(orders-0) >= 3"})
    assert api.ok("GET", f"{cluster}/clients")["clients"][0]["name"] == name
    api.ok("DELETE", f"{cluster}/clients/{name}")
    assert api.ask("DELETE", f"{cluster}/clients/producer-9").status == 404
    wrong = api.ask("POST", f"{cluster}/clients", {"producer": {"topik": "orders"}})
    assert wrong.status == 422
    assert "did you mean topic?" in wrong.value["detail"]


def test_evidence__the_clock(api: Api, cluster: str) -> None:
    paused = api.ok("POST", f"{cluster}/clock", {"pause": True})
    assert paused["paused"]
    api.ok("POST", f"{cluster}/actions", {"kill": "leader(orders-0)"})
    stepped = api.ok("POST", f"{cluster}/clock", {"step": "leader_elected"})
    assert (stepped["event"]["kind"], stepped["paused"]) == ("leader_elected", True)
    assert api.ok("POST", f"{cluster}/clock", {"speed": 0.5})["speed"] == 0.5
    assert not api.ok("POST", f"{cluster}/clock", {"resume": True})["paused"]
    both = api.ask("POST", f"{cluster}/clock", {"resume": True, "pause": True})
    assert (both.status, both.value["detail"]) == (422, "give one of pause, resume, speed, step")


def test_evidence__predictions_come_true(api: Api, cluster: str) -> None:
    path = f"{cluster}/predictions?action=kill:%20leader(orders-0)"
    hidden = api.ok("GET", path)["questions"]
    assert hidden
    assert not any("answer" in question for question in hidden)
    shown = api.ok("GET", f"{path}&answers=true")["questions"]
    answers = {question["kind"]: question["answer"] for question in shown}
    api.ok("POST", f"{cluster}/actions", {"kill": "leader(orders-0)"})
    assert api.ok("GET", cluster)["partitions"][0]["leader"] == answers["leader"]


def test_evidence__a_live_cluster_is_forked(api: Api, cluster: str) -> None:
    body = {"actions": ["kill: leader(orders-0)"], "for": "1s"}
    futures = api.ok("POST", f"{cluster}/forks", body)
    kinds = {note["kind"] for note in futures["there"]["rows"]["notes"]}
    assert {"broker_down", "leader_elected"} <= kinds
    assert all(broker["state"] == "up" for broker in api.ok("GET", cluster)["brokers"])


@pytest.fixture(scope="module")
def played() -> Iterator[Api]:
    """A server with a run that is over."""
    text = "topology: {brokers: 3, topics: {orders: {}}, profile: fast}\nduration: 5s\n"
    workload = "workload: {producers: {topic: orders, rate: 20/s}}\n"
    scenario = Scenario.parse(text + workload)
    run = PlayedRun(run_virtual(scenario, 1, lambda *_: None))
    with serving() as (server, api):
        server.clusters.add(HeldCluster("play", run, stop=lambda: None))
        yield api


def test_evidence__the_past_of_a_run_with_other_values(played: Api) -> None:
    path = "/v1/clusters/play/parameters"
    found = played.ok("GET", f"{path}?partition=orders-0")["parameters"]
    values = {each["name"]: each["value"] for each in found}
    assert {"broker.session.timeout.ms", "acks", "min.insync.replicas", "latency"} == set(values)
    body = {"partition": "orders-0", "values": {"latency": 10}}
    answer = played.ok("POST", path, body)
    assert answer["difference"].startswith("With a latency of 10 ms, an ack takes ")
    assert answer["facts"]["here"]["ack_ms"] < answer["facts"]["there"]["ack_ms"]
    refused = played.ask("POST", path, body | {"values": {"latency": 500, "ack": 1}})
    assert refused.status == 422
    assert [each["path"] for each in refused.value["problems"]] == ["latency", "ack"]
    for wrong in ({"partition": "orders-9", "values": {}}, {"partition": "orders", "values": {}}):
        assert played.ask("POST", path, wrong).status == 409
    assert played.ask("POST", path, {"partition": "orders-0", "values": {"acks": []}}).status == 422
    assert played.ask("GET", path).status == 400


def test_evidence__a_played_run_is_streamed_and_forked(played: Api) -> None:
    with played.asked("GET", "/v1/clusters/play/stream") as stream:
        rows = next_event(stream, "rows")["data"]
        clock = next_event(stream, "clock")["data"]
    assert clock["complete"]
    assert rows["until_ms"] == clock["now_ms"]
    refused = played.ask("POST", "/v1/clusters/play/actions", {"kill": 1})
    assert refused.status == 409
    began_ms = rows["rows"]["notes"][0]["at_ms"]
    futures: dict[str, Any] = played.ok(
        "POST",
        "/v1/clusters/play/forks",
        {"at_ms": began_ms + 1_000, "actions": [{"kill": "leader(orders-0)"}], "for": "2s"},
    )
    here, there = (
        {note["kind"] for note in futures[side]["rows"].get("notes", [])}
        for side in ("here", "there")
    )
    assert "broker_down" in there - here
    assert (
        futures["here"]["verdict"]["outcome"] == futures["there"]["verdict"]["outcome"] == "valid"
    )
    query = f"action=kill:%20leader(orders-0)&at_ms={began_ms + 1_000}"
    assert played.ok("GET", f"/v1/clusters/play/predictions?{query}")["questions"]
    wrong = played.ask("POST", "/v1/clusters/play/forks", {"actions": [{"kil": 1}]})
    assert wrong.value["problems"][0]["path"] == "actions[0].kil"
