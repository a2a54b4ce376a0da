"""The life of the processes, with a program in place of Java that sleeps."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kcluster import Topology
from kcluster.apache_kafka.installation import Installation
from kcluster.apache_kafka.processes import KafkaProcesses, wait_until
from kcluster.node_ids import CONTROLLER_ID
from kcluster.operations.errors import ClusterError

JAVA = f"""#!{sys.executable} -IS
import os, sys, time
words = sys.argv[1:]
if "kafka.tools.StorageTool" in words:
    path = words[words.index("--config") + 1]
    lines = open(path).read().splitlines()
    logs = next(line.partition("=")[2] for line in lines if line.startswith("log.dirs="))
    if any(line.startswith("num.io.threads=7") for line in lines):
        print("Cannot format with 7 threads")
        sys.exit(1)
    os.makedirs(logs)
    open(logs + "/meta.properties", "w").close()
else:
    print("[2026-11-23 20:41:03,182] INFO started (kafka.Kafka)", flush=True)
    time.sleep(600)
"""
Start = Callable[..., KafkaProcesses]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the nodes of a topology, without networks of their own."""
    java = tmp_path / "java"
    java.write_text(JAVA)
    java.chmod(0o755)
    installation = Installation("4.4.0", java, "kafka.jar")
    started: list[KafkaProcesses] = []

    def starting(topology: Topology, directory: Path | None = None) -> KafkaProcesses:
        nodes = KafkaProcesses(installation, topology, directory, with_network=False)
        started.append(nodes)
        nodes.open()
        return nodes

    yield starting
    for nodes in started:
        nodes.close()


def until(holds: Callable[[], bool]) -> None:
    assert wait_until(holds, 30)


def serves(nodes: KafkaProcesses, node_id: int, times: int = 1) -> bool:
    output = nodes.output(node_id)
    return output.exists() and output.read_text().count("INFO started") >= times


def is_paused(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


def test_processes__of_a_topology(start: Start) -> None:
    """A broker's directories are formatted at once, the controller's by Kafka's tool."""
    nodes = start(Topology.of(brokers=2))
    until(lambda: all(serves(nodes, node_id) for node_id in (1, 2, CONTROLLER_ID)))
    assert sorted(nodes.pids) == [1, 2, CONTROLLER_ID]
    (directory,) = nodes.log_directories(1)
    meta = (directory / "meta.properties").read_text().splitlines()
    assert {f"cluster.id={nodes.cluster_id}", "node.id=1"} < set(meta)
    place = nodes.output(1).parents[1]
    assert (place / "node-1/server.properties").stat().st_mode & 0o077 == 0
    nodes.close()
    nodes.close()
    assert not place.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in nodes.pids.values())


def test_processes__one_broker_s_life(start: Start) -> None:
    nodes = start(Topology.of(brokers=1))
    exits: list[tuple[int, int]] = []
    nodes.on_exit = lambda node_id, code: exits.append((node_id, code))
    until(lambda: serves(nodes, 1))
    with pytest.raises(ClusterError, match="node 1 is running; its directories are in use"):
        nodes.wipe(1)
    with pytest.raises(ClusterError, match="node 1 is running"):
        nodes.start(1)
    nodes.pause(1)
    until(lambda: is_paused(nodes.pids[1]))
    nodes.resume(1)
    until(lambda: not is_paused(nodes.pids[1]))
    nodes.pause(1)
    nodes.kill(1)
    assert exits == [(1, -signal.SIGKILL)]
    (directory,) = nodes.log_directories(1)
    (directory / "orders-0").mkdir()
    nodes.start(1)
    until(lambda: serves(nodes, 1, 2))
    nodes.shut_down(1)
    until(lambda: exits[1:] == [(1, -signal.SIGTERM)])
    assert (directory / "orders-0").exists()
    nodes.wipe(1)
    assert [one.name for one in directory.iterdir()] == ["meta.properties"]
    for verb in (nodes.kill, nodes.pause, nodes.resume, nodes.shut_down):
        with pytest.raises(ClusterError, match="node 1 is not running"):
            verb(1)


def test_processes__a_wiped_controller_is_formatted_again(start: Start) -> None:
    nodes = start(Topology.of(brokers=1))
    until(lambda: serves(nodes, CONTROLLER_ID))
    nodes.kill(CONTROLLER_ID)
    nodes.wipe(CONTROLLER_ID)
    (directory,) = nodes.log_directories(CONTROLLER_ID)
    assert not directory.exists()
    nodes.start(CONTROLLER_ID)
    until(lambda: serves(nodes, CONTROLLER_ID, 2))
    assert (directory / "meta.properties").exists()


def test_processes__a_controller_that_cannot_be_formatted_says_why(start: Start) -> None:
    nodes = start(Topology.of(brokers=1, config={"num.io.threads": 7}))
    exits: list[str] = []
    nodes.on_exit = lambda node_id, code: exits.append(nodes.why_ended(node_id, code))
    until(lambda: bool(exits))
    assert exits == ["the controller ended with exit code 1: Cannot format with 7 threads"]


def test_processes__a_port_is_taken(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ClusterError) as raised:
            start(Topology.of(brokers=[{"id": 5, "port": port}]))
    expected = f"broker 5 cannot listen on 127.0.0.1:{port}: Address already in use"
    assert str(raised.value) == expected


def test_processes__a_directory_of_the_user_stays(start: Start, tmp_path: Path) -> None:
    nodes = start(Topology.of(brokers=1), tmp_path / "kept")
    until(lambda: serves(nodes, 1))
    nodes.close()
    assert serves(nodes, 1)


def test_processes__links_cannot_be_slow_without_networks(start: Start) -> None:
    with pytest.raises(ClusterError, match=r"the topology's `network`: the nodes have no networks"):
        start(Topology.of(brokers=2, network={"default_latency_ms": 5}))


def test_processes__passwords_are_in_no_command_line(start: Start) -> None:
    secrets = {"alice": "alice-secret", "bob": "bob-secret"}
    nodes = start(
        Topology.of(
            brokers=1,
            listeners={"IN": {"protocol": "SASL_PLAINTEXT"}},
            security={"users": secrets, "super_users": ["alice"]},
        )
    )
    until(lambda: serves(nodes, 1))
    words = [Path(f"/proc/{pid}/cmdline").read_text() for pid in nodes.pids.values()]
    assert not any(secret in json.dumps(words) for secret in secrets.values())
    assert nodes.inner_login is not None
    assert nodes.inner_login[1] not in json.dumps(words)
