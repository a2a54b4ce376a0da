"""`kcluster up` and the verbs against it, as other processes see them."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kcluster.cli.directory import running_clusters
from kcluster.cli.remote import Remote
from tests.cli.conftest import CODE
from tests.rig.patience import PATIENCE_S

Start = Callable[..., Any]
Verb = Callable[..., tuple[int, str, str]]

TOPOLOGY = """\
name: lab
profile: fast
brokers: [{id: 1}, {id: 2}, {id: 3}]
topics:
  orders: {assignment: [[1, 2, 3], [2, 3, 1]]}
"""


@pytest.fixture
def lab(start_up: Start, tmp_path: Path) -> Any:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    return start_up()


def metadata_v0(bootstrap: str) -> int:
    """Ask for Metadata v0 by hand; the number of brokers in the answer."""
    host, port = bootstrap.split(",")[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), 5) as connection:
        body = struct.pack(">hhih", 3, 0, 7, 1) + b"n" + struct.pack(">i", 0)
        connection.sendall(struct.pack(">i", len(body)) + body)
        header = connection.recv(12, socket.MSG_WAITALL)
    _, correlation_id, brokers = struct.unpack(">iii", header)
    assert correlation_id == 7
    return int(brokers)


def test_up__names_once_what_has_no_effect(start_up: Start, tmp_path: Path) -> None:
    config = "config: {num.io.threads: 16, log.retention.hours: 1, num.network.threads: 8}\n"
    (tmp_path / "topology.yaml").write_text(TOPOLOGY + config)
    code, _, err = start_up().stop()
    assert code == 0
    assert err == "kcluster: no effect here: num.io.threads, num.network.threads\n"


def test_up__serves_once_ready_and_stops_cleanly_on_sigterm(start_up: Start) -> None:
    up = start_up("--brokers", "3", "--base-port", "0", "--profile", "fast")
    assert up.ready.startswith("ready: 127.0.0.1:")
    assert metadata_v0(up.bootstrap) == 3
    assert running_clusters() == ["kcluster"]
    code, _, err = up.stop()
    assert (code, err) == (0, "")
    assert running_clusters() == []


def test_up__stops_cleanly_on_ctrl_c(start_up: Start) -> None:
    code, _, err = start_up("--brokers", "1", "--base-port", "0").stop(signal.SIGINT)
    assert (code, err) == (0, "")


def test_up__json_prints_one_object_per_line(start_up: Start, kcluster: Verb) -> None:
    up = start_up("--brokers", "2", "--base-port", "0", "--profile", "fast", "--json")
    ready = json.loads(up.ready)
    assert ready["ready"] is True
    assert [broker["id"] for broker in ready["brokers"]] == [1, 2]
    kcluster("kill", "2")
    assert json.loads(up.line())["event"]["kind"] == "broker_down"


def test_up__a_second_one_without_a_name_gets_a_number(start_up: Start) -> None:
    for _ in range(2):
        start_up("--brokers", "1", "--base-port", "0")
    assert running_clusters() == ["kcluster", "kcluster-2"]


def test_up__a_chosen_name_that_is_taken_is_refused(start_up: Start) -> None:
    start_up("--brokers", "1", "--base-port", "0", "--name", "lab")
    second = start_up("--brokers", "1", "--base-port", "0", "--name", "lab")
    code, out, err = second.stop()
    assert (code, out) == (1, "")
    assert "a cluster called lab is already running" in err


def test_up__a_wrong_topology_reports_every_problem_with_exit_code_2(
    start_up: Start, tmp_path: Path
) -> None:
    (tmp_path / "topology.yaml").write_text("brokers: 3\nnme: x\nprofile: quick\n")
    up = start_up()
    assert up.process.wait(PATIENCE_S) == 2
    err = up.process.stderr.read().splitlines()
    assert up.ready == ""
    assert any(line.startswith("topology.yaml:2:1 nme: ") and "name" in line for line in err)
    assert any(line.startswith("topology.yaml:3:") and " profile: " in line for line in err)


def test_up__prints_the_directory_of_certificates_and_removes_it(
    start_up: Start, tmp_path: Path
) -> None:
    secured = "listeners: {SSL: {}}\nsecurity: {tls: {client_auth: required}}\n"
    (tmp_path / "topology.yaml").write_text(TOPOLOGY + secured)
    up = start_up()
    folder = Path(up.line().split()[1])
    assert {"ca.pem", "truststore.p12", "client.pem"} <= {each.name for each in folder.iterdir()}
    code, _, err = up.stop()
    assert (code, err) == (0, "")
    assert not folder.exists()


def test_up__a_wrong_keystore_is_reported_with_its_place(start_up: Start, tmp_path: Path) -> None:
    secured = "listeners: {SSL: {}}\nsecurity: {tls: {keystore: none.pem}}\n"
    (tmp_path / "topology.yaml").write_text(TOPOLOGY + secured)
    up = start_up()
    assert up.process.wait(PATIENCE_S) == 2
    err = up.process.stderr.read()
    assert "topology.yaml:7:28 security.tls.keystore: none.pem: No such file" in err


def test_up__a_port_in_use_is_reported_with_its_place(start_up: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "topology.yaml").write_text(f"brokers:\n  - {{id: 1, port: {port}}}\n")
        up = start_up()
        assert up.process.wait(PATIENCE_S) == 2
        assert up.process.stderr.read() == (
            f"topology.yaml:2:19 brokers[0].port: {port}: in use by another process; "
            "set another or leave it out for a free one\n"
        )


def test_up__prints_events_with_their_reason(lab: Any, kcluster: Verb) -> None:
    kcluster("kill", "1")
    lines = [lab.line() for _ in range(5)]
    kinds = [line.split()[2] for line in lines]
    assert kinds[:2] == ["broker_down", "broker_fenced"]
    assert sorted(kinds[2:]) == ["isr_shrunk", "isr_shrunk", "leader_elected"]
    elected = next(line for line in lines if "leader_elected" in line)
    assert "orders-0" in elected
    assert "leader 1 -> 2, epoch 1: broker 1 fenced" in elected


def test_up__prints_one_line_per_traced_request(start_up: Start) -> None:
    up = start_up("--brokers", "1", "--base-port", "0", "--trace-requests")
    metadata_v0(up.bootstrap)
    line = up.line()
    assert "broker 1  Metadata v0" in line
    assert "  n  " in line
    assert "  ok  " in line


def test_status__shows_brokers_and_partitions(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("status")
    assert code == 0
    assert out.startswith(f"cluster lab  {lab.bootstrap}\n")
    lines = [line.split() for line in out.splitlines()]
    assert ["orders-0", "1", "0", "1,2,3", "1,2,3", "0", "0", "0"] in lines
    assert any(line[:1] == ["1"] and "up" in line for line in lines)


def test_status__json_has_every_field(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("status", "--json")
    status = json.loads(out)
    assert code == 0
    assert status["name"] == "lab"
    assert status["partitions"][0]["isr"] == [1, 2, 3]


def test_kill_start__a_killed_broker_is_started_again(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("kill", "1")
    assert code == 0
    assert "leader 1 -> 2" in out
    assert out.endswith("broker 1 is down\n")
    _, status, _ = kcluster("status")
    assert ["orders-0", "2", "1", "1,2,3", "2,3", "0", "0", "0"] in [
        line.split() for line in status.splitlines()
    ]
    code, out, _ = kcluster("start", "1", "--json")
    assert json.loads(out)["states"] == [{"id": 1, "state": "up"}]
    assert Remote().get()["partitions"][0]["isr"] == [1, 2, 3]


def test_elect__restores_the_preferred_leader(lab: Any, kcluster: Verb) -> None:
    _, out, _ = kcluster("elect", "orders-0", "--to", "3")
    assert "leader 1 -> 3" in out
    _, out, _ = kcluster("elect", "orders-0")
    assert "leader 3 -> 1" in out
    code, out, _ = kcluster("elect", "orders-0")
    assert (code, out) == (0, "orders-0: its preferred leader leads it already\n")


class Following:
    """A verb that goes on until the cluster stops, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self._out = process.stdout

    def line(self) -> str:
        """The next line."""
        return self._out.readline()

    def has_more(self) -> bool:
        """Whether something was printed."""
        return bool(select.select([self._out], [], [], 0.1)[0])

    def rest(self) -> tuple[int, str]:
        """Its exit code, and what else it has printed."""
        out, _ = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, out


@contextmanager
def following(*words: str) -> Iterator[Following]:
    """`kcluster` with these words; it is killed if it still runs at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "kcluster", *words],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": CODE},
        text=True,
    ) as process:
        try:
            yield Following(process)
        finally:
            process.kill()


MISTYPED = (
    ("kill broker-1", 2, "broker-1: no such node; did you mean 1?"),
    ("kill 7", 2, "there is no broker 7; the brokers are 1, 2, 3"),
    ("start 1", 1, "broker 1 is already up"),
    ("resume 1", 1, "broker 1 is not paused; pause it: kcluster pause 1"),
    ("elect orders", 2, "orders: not a partition; one is written like orders-0"),
    ("elect order-1", 2, "there is no topic order; did you mean orders-1?"),
    ("elect orders:1", 2, "orders:1: a partition is written with a dash: orders-1"),
    ("elect orders-9", 2, "there is no partition 9 of orders, which has 2"),
    ("elect orders-0 --to 9", 2, "there is no broker 9"),
)
"""Verbs that change nothing: one cluster is asked them all."""


def test_verbs__suggest_the_right_word_for_a_mistyped_one(lab: Any, kcluster: Verb) -> None:
    for words, code, answer in MISTYPED:
        exit_code, out, err = kcluster(*words.split())
        assert (exit_code, out) == (code, ""), words
        assert err.startswith(f"kcluster: {answer}"), words


def test_verbs__are_refused_if_the_brokers_state_does_not_allow_them(
    lab: Any, kcluster: Verb
) -> None:
    kcluster("kill", "1", "--how", "pause")
    assert "broker 1 is already paused" in kcluster("kill", "1", "--how", "pause")[2]
    assert "broker 1 is paused, not down" in kcluster("start", "1")[2]
    assert "cannot shut down cleanly" in kcluster("kill", "1", "--how", "clean")[2]
    assert kcluster("resume", "1")[1].endswith("broker 1 is up\n")
    kcluster("kill", "2", "--how", "power")
    assert "broker 2 is already down; start it" in kcluster("kill", "2")[2]
    assert "broker 2 is down, not paused" in kcluster("resume", "2")[2]
    assert "not in the ISR of orders-0" in kcluster("elect", "orders-0", "--to", "2")[2]


def test_kill__in_every_way_another_leader_is_elected(lab: Any, kcluster: Verb) -> None:
    for how in ("kill", "clean", "power", "wipe"):
        code, _, err = kcluster("kill", "1", "--how", how)
        assert (code, err) == (0, "")
        assert Remote().get()["partitions"][0]["leader"] in (2, 3)
        assert kcluster("start", "1")[0] == 0
        assert kcluster("elect", "orders-0")[0] == 0


def test_events__shows_all_past_events(lab: Any, kcluster: Verb) -> None:
    kcluster("kill", "1")
    _, out, _ = kcluster("events")
    assert "broker_started" in out.splitlines()[0]
    assert "became_leader" in out
    _, out, _ = kcluster("events", "--json")
    kinds = [json.loads(line)["kind"] for line in out.splitlines()]
    assert "broker_fenced" in kinds


def test_events__follow_ends_with_the_cluster(lab: Any) -> None:
    with following("events", "--follow", "--since", "1") as follow:
        assert "broker_started" in follow.line()
        Remote().ask("DELETE")
        exit_code, _ = follow.rest()
        assert exit_code == 0


def test_events__the_newest_those_since_a_time_and_those_of_a_kind(
    lab: Any, kcluster: Verb
) -> None:
    kcluster("kill", "1")
    everything = kcluster("events")[1].splitlines()
    assert kcluster("events", "-n", "2")[1].splitlines() == everything[-2:]
    assert kcluster("events", "--since", "1h")[1].splitlines() == everything
    assert kcluster("events", "--since", "now")[1] == ""
    numbered = [json.loads(line) for line in kcluster("events", "--json")[1].splitlines()]
    fenced = next(event for event in numbered if event["kind"] == "broker_fenced")
    later = kcluster("events", "--since", str(fenced["sequence"]), "-n", "1000")[1].splitlines()
    assert "broker_fenced" in later[0]
    only = kcluster("events", "--kind", "leader_elected")[1].splitlines()
    assert only
    assert all("leader_elected" in line for line in only)


def test_events__a_wrong_time_and_a_wrong_kind_are_explained(lab: Any, kcluster: Verb) -> None:
    code, _, err = kcluster("events", "--since", "soon")
    assert (code, err) == (
        2,
        "kcluster: --since soon is not a time back (10s), an event's number (17), or now\n",
    )
    code, _, err = kcluster("events", "--kind", "leader_electd")
    assert (code, err) == (
        2,
        "kcluster: --kind leader_electd: no such kind of event; did you mean leader_elected?\n",
    )


def test_events__follow_begins_now(lab: Any) -> None:
    with following("events", "--follow") as follow:
        while not follow.has_more():
            Remote().post("actions", {"isolate": 3}, {"wait": "no"})
            Remote().post("actions", {"heal": None}, {"wait": "no"})
        assert "broker_started" not in follow.line()
        Remote().ask("DELETE")
        code, out = follow.rest()
        assert (code, "broker_started" in out) == (0, False)


def test_status__an_unknown_topic_is_an_error(lab: Any, kcluster: Verb) -> None:
    known = "--topic oders: no such topic; did you mean orders?"
    assert kcluster("status", "--topic", "oders") == (2, "", f"kcluster: {known}\n")
    code, out, err = kcluster("status", "--topic", "oders", "--json")
    assert (code, out, json.loads(err)) == (2, "", {"error": known})


def test_status__shows_cuts_slow_links_rules_and_pauses(lab: Any, kcluster: Verb) -> None:
    kcluster("fault", "slow: {nodes: 3, others: 1, latency: 40ms}")
    kcluster("fault", "isolate: {nodes: 1, others: 2}")
    kcluster("fault", "rule: {api: Metadata, answer: NOT_CONTROLLER}")
    kcluster("kill", "3", "--how", "pause")
    lines = kcluster("status")[1].splitlines()
    assert "cut: 1-2" in lines
    assert "slow: 1-3: latency 40 ms" in lines
    assert "paused: broker 3" in lines
    assert any(line.startswith("rule rule-1: answers NOT_CONTROLLER") for line in lines)


def test_status__watch_shows_each_change_until_the_cluster_stops(lab: Any) -> None:
    with following("status", "--watch") as follow:
        assert follow.line().startswith("cluster lab ")
        Remote().ask("DELETE")
        code, out = follow.rest()
        assert (code, out.splitlines()[-1]) == (0, "the cluster has stopped")


def test_log__watch_draws_it_again_when_it_changes(lab: Any) -> None:
    with following("log", "orders-0", "--watch") as follow:
        assert follow.line() == "orders-0  leader 1, epoch 0, ISR 1,2,3\n"
        Remote().post("actions", {"kill": 1})
        while follow.line() != "orders-0  leader 2, epoch 1, ISR 2,3\n":
            pass
        Remote().ask("DELETE")
        code, out = follow.rest()
        assert (code, out.splitlines()[-1]) == (0, "the cluster has stopped")


def test_log__draws_each_replica_of_a_partition(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("log", "orders-0")
    assert code == 0
    assert out.splitlines()[:2] == [
        "orders-0  leader 1, epoch 0, ISR 1,2,3",
        "♛ broker 1  leader   |  end 0, hw 0",
    ]
    logs = json.loads(kcluster("log", "orders-0", "--json")[1])
    assert [found["standing"] for found in logs["replicas"]] == ["leader", "in sync", "in sync"]
    assert kcluster("log", "order-0") == (
        2,
        "",
        "kcluster: there is no topic order; did you mean orders-0?\n",
    )


def test_down__returns_when_the_cluster_has_stopped(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("down")
    assert (code, out) == (0, "cluster lab has stopped\n")
    assert lab.process.wait(PATIENCE_S) == 0
    assert kcluster("status")[0] == 1


def test_two_clusters__a_verb_needs_a_name(start_up: Start, kcluster: Verb) -> None:
    for name in ("one", "two"):
        start_up("--brokers", "1", "--base-port", "0", "--name", name)
    code, _, err = kcluster("status")
    assert code == 2
    assert "several clusters are running: one, two; choose one: --name NAME" in err
    assert kcluster("status", "--name", "two")[1].startswith("cluster two ")
