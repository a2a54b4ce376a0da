"""Events and rows as they come."""

from __future__ import annotations

import json
from http.client import HTTPResponse
from typing import Any

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.scenario.started import start_client, waiting_records
from kcluster.web.api.stream import COLUMNS, Feed
from kcluster.web.held import HeldCluster
from tests.web.api_client import Api


def test_events__as_json_and_as_lines(api: Api, cluster: str) -> None:
    events = api.ok("GET", f"{cluster}/events")["events"]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    lines = api.ask("GET", f"{cluster}/events?since=2", Accept="application/x-ndjson").body
    assert [json.loads(line) for line in lines.splitlines()] == events[2:]
    answer = api.ask("GET", f"{cluster}/events?kind=leader_electd")
    assert (answer.status, answer.value["problems"][0]["path"]) == (400, "kind")


def test_events__followed(api: Api, cluster: str) -> None:
    path = f"{cluster}/events?follow=true&kind=broker_down"
    with api.asked("GET", path) as followed:
        api.ok("POST", f"{cluster}/actions?wait=no", {"kill": 1})
        assert next_line(followed)["subject"] == "broker 1"
    with api.asked("GET", path, Accept="text/event-stream") as followed:
        assert next_event(followed)["event"] == "broker_down"


def test_stream__first_all_so_far_then_what_is_new(api: Api, cluster: str) -> None:
    with api.asked("GET", f"{cluster}/stream?token={api.token}", Authorization="") as stream:
        first = next_event(stream)
        kinds = [note["kind"] for note in first["data"]["rows"]["notes"]]
        assert kinds.count("broker_started") == 3
        assert first["data"]["rows"]["leaders"]
        killed = api.ok("POST", f"{cluster}/actions", {"kill": 1})
        seen: list[dict[str, Any]] = []
        while not any(note["kind"] == "broker_fenced" for note in seen):
            seen += next_event(stream, "rows")["data"]["rows"].get("notes", [])
        assert seen[0]["id"] == killed["events"][0]["id"]
        assert seen[0]["text"] == "process killed; written data survives"
        verdict = api.ok("GET", f"{cluster}/verdict")
        assert next_event(stream, "verdict")["data"] == verdict
        # It ends with the cluster.
        api.ok("DELETE", cluster)
        assert all(line.startswith((b"id", b"event", b"data", b"\n")) for line in stream)


def test_stream__tables_as_columns(api: Api, cluster: str) -> None:
    # A stream ends before the present millisecond, in which all brokers may have sent their first
    # heartbeats.  Streams from the beginning share readings, so this one begins at another time.
    with api.asked("GET", f"{cluster}/stream?after_ms=0") as stream:
        while "sessions" not in next_event(stream, "rows")["data"]["rows"]:
            pass
    api.ok("POST", f"{cluster}/clock", {"pause": True})
    with (
        api.asked("GET", f"{cluster}/stream") as rows,
        api.asked("GET", f"{cluster}/stream?columns=true") as columns,
    ):
        as_rows = next_event(rows, "rows")["data"]["rows"]
        tables = next_event(columns, "rows")["data"]["rows"]
    assert set(tables) == set(as_rows) >= {"notes", "leaders", "sessions"}
    for name, table in tables.items():
        values = zip(*table.values(), strict=True)
        assert [dict(zip(table, each, strict=True)) for each in values] == as_rows[name], name


def test_stream__goes_on_after_a_pause_in_which_records_wait() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 1, "assignment": [[1]]}}
    # Broker 2 tells of the topic: without any broker a producer begins anew, and holds no records.
    with Cluster(Topology.of(brokers=2, topics=topics, profile="fast")) as cluster:
        start_client(cluster, {"producer": {"topic": "orders", "rate": "200/s"}})
        cluster.wait_for("high_watermark(orders-0) >= 1")
        cluster.kill(1, wait=False)
        feed = Feed(HeldCluster("k", cluster, stop=cluster.close))
        waits = feed.read(-1, COLUMNS)
        while b'"waiting"' not in (waits.text or b""):
            waits = feed.read(waits.until_ms, COLUMNS)
        cluster.pause_clock()
        frozen = feed.read(waits.until_ms, COLUMNS)
        assert feed.read(frozen.until_ms, COLUMNS).text is None, "nothing happens"
        cluster.resume_clock()
        cluster.start(1)
        later = feed.read(frozen.until_ms, COLUMNS)
        assert later.until_ms > frozen.until_ms
        assert later.text


def test_waiting_records__of_a_send_that_blocks_because_no_broker_is_known() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 1}}
    with Cluster(Topology.of(brokers=1, topics=topics, profile="fast")) as cluster:
        cluster.kill(1)
        start_client(cluster, {"producer": {"topic": "orders", "rate": "200/s"}})
        while not (waiting := cluster.call(lambda: waiting_records(cluster))):
            pass
        (row,) = waiting
        assert (row.topic, row.partition, row.count) == ("orders", -1, 1)


def next_line(response: HTTPResponse) -> Any:
    """The next line of JSON that is not empty."""
    while not (line := response.readline().strip()):
        pass
    return json.loads(line)


def next_event(response: HTTPResponse, kind: str = "") -> dict[str, Any]:
    """The next server-sent event, of this kind: id, event, data."""
    fields: dict[str, Any] = {}
    while line := response.readline():
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = json.loads(value) if name == "data" else value
        elif "data" in fields and kind in ("", fields["event"]):
            return fields
        else:
            fields = {}
    raise AssertionError("the stream has ended")
