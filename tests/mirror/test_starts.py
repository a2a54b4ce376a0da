"""The start of a real Kafka that fails, with a program in place of Java."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kcluster import ClusterError, Topology
from kcluster.apache_kafka.installation import Installation
from kcluster.mirror.cluster import KafkaCluster

ONE = Topology.of(brokers=1)


def kafka_whose_java(tmp_path: Path, program: str) -> KafkaCluster:
    java = tmp_path / "java"
    java.write_text(f"#!{sys.executable} -IS\nimport sys, time\n{program}")
    java.chmod(0o755)
    installation = Installation("4.4.0", java, "kafka.jar")
    return KafkaCluster(ONE, installation=installation, with_network=False, record=False)


def why_not(cluster: KafkaCluster) -> str:
    began_s = time.monotonic()
    with pytest.raises(ClusterError) as raised:
        cluster.open()
    assert time.monotonic() - began_s < 15
    pids = cluster.driver.real.pids.values()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    return str(raised.value)


def test_start__of_a_java_that_refuses_its_options(tmp_path: Path) -> None:
    says = "print(\"Unrecognized VM option 'Nope'\\nError: Could not create the Java Virtual"
    cluster = kafka_whose_java(tmp_path, f'{says} Machine.")\nsys.exit(1)\n')
    assert why_not(cluster) in (
        "the controller ended with exit code 1: Unrecognized VM option 'Nope'",
        "broker 1 ended with exit code 1: Unrecognized VM option 'Nope'",
    )


def test_start__of_a_broker_that_dies_while_the_others_start(tmp_path: Path) -> None:
    """The last error of its log is the reason; the other processes are gone, too."""
    error = "[2026-11-23 20:41:04,100] ERROR the disk is full (kafka.Log)"
    program = f"""
if sys.argv[-1].endswith("node-1/server.properties"):
    print("{error}", flush=True)
    sys.exit(3)
time.sleep(60)
"""
    cluster = kafka_whose_java(tmp_path, program)
    assert why_not(cluster) == "broker 1 ended with exit code 3: the disk is full"


def test_start__of_a_process_that_is_killed(tmp_path: Path) -> None:
    program = "import os\nos.kill(os.getpid(), 9)\n"
    assert "was ended by SIGKILL: it has logged no error" in why_not(
        kafka_whose_java(tmp_path, program)
    )


def test_start__where_no_directory_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = kafka_whose_java(tmp_path, "time.sleep(60)")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    reason = why_not(cluster)
    assert reason.startswith(f"{tmp_path}/none/kcluster-kafka-")
    assert reason.endswith(": No such file or directory")
