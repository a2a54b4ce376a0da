"""Kafka's own tools as processes, and the cluster that they work on.

Owns: the way to run a tool or a program, one cluster for all tests of tools.  Never: fetches the
jars (`make tools` does); without them and Java, these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("kafka")  # tests of programs count with a real client
pytest.importorskip("confluent_kafka")

from kcluster import Cluster, Topology

ROOT = Path(__file__).parents[3]
LIBS = Path(os.environ.get("KCLUSTER_KAFKA_LIBS") or ROOT / "build" / "kafka-libs")
TOOL_TIMEOUT_S = 60
ARCHIVE = ROOT / "build/archives/kafka-tools.jsa"
"""The classes of the tools, loaded already: a tool then starts in half the CPU time."""
JVM = (
    *("java", "-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"),
    *([f"-XX:SharedArchiveFile={ARCHIVE}"] if ARCHIVE.exists() else []),
    "-Xlog:disable",
)
"""A tool lives for a second: it had better not compile much."""
TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"

Tool = Callable[..., str]

LONG = pytest.mark.skipif(
    not os.environ.get("KCLUSTER_LONG_PROGRAMS"), reason="takes long: make tools"
)
"""A test that only `make tools` runs, so that `make test` takes minutes."""


def missing() -> str:
    """The missing requirements of these tests; empty if there are none."""
    if shutil.which("java") is None:
        return "no Java"
    if not any(LIBS.glob("kafka-tools-*.jar")):
        return f"no jars of Kafka's tools in {LIBS.name} (make tools fetches them)"
    return ""


def java(program: str, *arguments: object) -> list[str]:
    """The command that runs a class of Kafka's; skips where it cannot run."""
    if reason := missing():
        pytest.skip(reason)
    return [*JVM, "-cp", f"{LIBS}/*", program, *map(str, arguments)]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three brokers, Kafka's time constants, free ports."""
    if reason := missing():
        pytest.skip(reason)
    topics = {"orders": {"partitions": 3, "replication_factor": 3}}
    config = {
        "default.replication.factor": 3,
        "num.partitions": 3,
        "group.initial.rebalance.delay.ms": 0,
    }
    with Cluster(Topology.of(brokers=3, topics=topics, config=config)) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """Run a tool by its class; returns its output if it ended with exit code `code`."""
    where = tmp_path_factory.mktemp("tools")

    def run(tool: str, *arguments: str, text: str = "", code: int = 0) -> str:
        where_to = ("--bootstrap-server", cluster.bootstrap)
        words = (*arguments, *where_to) if tool.endswith("ClusterTool") else (*where_to, *arguments)
        ended = subprocess.run(
            [*JVM, "-cp", f"{LIBS}/*", tool, *words],
            input=text,
            cwd=where,
            text=True,
            timeout=TOOL_TIMEOUT_S,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert ended.returncode == code, ended.stdout
        return "\n".join(line for line in ended.stdout.splitlines() if "SLF4J" not in line)

    return run
