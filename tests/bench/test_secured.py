from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from bench.__main__ import options_of
from bench.processes import BenchError, run_to_end
from bench.secured import (
    SECURED,
    Material,
    SecuredKafka,
    SecuredKcluster,
    perf_test_mb_s,
    secured_bootstrap,
)
from bench.systems import Running
from kcluster.config.topology.model import Topology


@pytest.fixture
def material(tmp_path: Path) -> Material:
    return Material(tmp_path)


def test_secured__both_systems_get_the_same_security(material: Material, tmp_path: Path) -> None:
    text, first_port, _ = SecuredKcluster(material).topology_text()
    ours = yaml.safe_load(text)["config"]
    theirs = SecuredKafka(material).node_config(first_port, 1, tmp_path)
    assert ours.items() <= theirs.items()
    assert ours["ssl.keystore.location"] == str(tmp_path / "broker.pem")


def test_secured__our_brokers_have_both_listeners(material: Material, tmp_path: Path) -> None:
    text, first_port, brokers = SecuredKcluster(material).topology_text()
    topology = Topology.parse(text, "topology.yaml")
    ports = [[each.port for each in broker.all_listeners] for broker in topology.brokers]
    assert ports == [[first_port + at, first_port + 50 + at] for at in range(brokers)]
    running = Running(tmp_path)
    running.bootstrap = f"127.0.0.1:{first_port}"
    assert secured_bootstrap(running).startswith(f"127.0.0.1:{first_port + 50},")


def test_secured__each_node_of_kafka_has_its_own_ports(material: Material, tmp_path: Path) -> None:
    system = SecuredKafka(material)
    nodes = [system.node_config(9_000, node, tmp_path) for node in (1, 2, 3)]
    assert len({node["listeners"] for node in nodes}) == 3
    assert nodes[2]["listeners"].endswith(":9052,CONTROLLER://127.0.0.1:9103")


def test_secured__only_their_owner_reads_the_files(material: Material) -> None:
    material.write_clients("127.0.0.1:1")
    files = (material.keystore, material.librdkafka, material.java)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert material.password in material.java.read_text()


def test_secured__its_figures_are_a_group() -> None:
    figures = options_of(["--figures", "secured"]).figures
    assert {"secured_produce", "plain_consume_client_ms_mb"} <= {each.key for each in figures}
    assert not any(each.is_for_peers for each in figures)
    assert set(SECURED) == {"kcluster", "kafka"}


def test_perf_test__the_steady_state_is_read() -> None:
    text = (
        "200 records sent, 34764.4 records/sec (33.15 MB/sec), 671.65 ms avg latency\n"
        "100 steady state records sent, 46882.3 records/sec (44.71 MB/sec), 492.52 ms avg latency\n"
    )
    assert perf_test_mb_s(text) == pytest.approx(46.8823)
    with pytest.raises(BenchError, match="no result"):
        perf_test_mb_s("Exception in thread main")


def test_processes__a_failed_program_is_reported_by_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"^formatting failed: no space$"):
        run_to_end("formatting", ["sh", "-c", "echo no space; exit 1"], tmp_path / "log", 10)
