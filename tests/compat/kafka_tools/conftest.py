"""Kafka's own tools, and the cluster that they work on.

Owns: the way to run a tool or a program, one cluster and one JVM for all tests of tools.  Never:
fetches the jars (`make tools` does); without them and Java, these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("kafka")  # tests of programs count with a real client
pytest.importorskip("confluent_kafka")

from kcluster import Cluster, Topology

ROOT = Path(__file__).parents[3]
LIBS = Path(os.environ.get("KCLUSTER_KAFKA_LIBS") or ROOT / "build" / "kafka-libs")
NEWEST_CLIENTS = ROOT / "build" / "kafka-clients"
"""Of a later release than the tools."""
TOOL_TIMEOUT_S = 60


def jvm(archive: str) -> tuple[str, ...]:
    """A tool lives for a second: it had better not compile much.  `archive`: of its classes, loaded
    already; it then starts in half the CPU time."""
    path = ROOT / "build" / "archives" / archive
    return (
        *("java", "-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-Xshare:auto", *([f"-XX:SharedArchiveFile={path}"] if path.exists() else [])),
        "-Xlog:disable",
    )


JVM = jvm("kafka-tools.jsa")
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


def java_with_newest_clients(program: str, *arguments: object) -> list[str]:
    """The same with the newest clients, as far as the program itself can do with them."""
    if reason := missing():
        pytest.skip(reason)
    if not any(NEWEST_CLIENTS.glob("kafka-clients-*.jar")):
        pytest.skip(f"no jars of Kafka's clients in {NEWEST_CLIENTS.name} (make jars fetches them)")
    class_path = f"{NEWEST_CLIENTS}/*:{LIBS}/*"
    return [*jvm("kafka-programs.jsa"), "-cp", class_path, program, *map(str, arguments)]


class ToolHost:
    """A JVM that runs tools one after the other (ToolHost.java).  After a tool that did not end,
    the next one gets another JVM."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, tool: str, words: Sequence[str], text: str = "") -> tuple[int, str]:
        """(exit code, what it printed) of a tool with `text` as its input."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = None
        try:
            process.stdin.write(_utf(tool) + struct.pack(">i", len(words)))
            data = text.encode()
            process.stdin.write(b"".join(map(_utf, words)) + struct.pack(">i", len(data)) + data)
            process.stdin.flush()
            code, size = struct.unpack(">ii", process.stdout.read(8))
            printed = process.stdout.read(size).decode()
            self._process = process
        finally:
            if self._process is None:
                _end(process)
        return code, printed

    def close(self) -> None:
        """End the JVM."""
        if self._process is not None:
            _end(self._process)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [*JVM, "-cp", f"{LIBS}/*", str(Path(__file__).with_name("ToolHost.java"))]
        return subprocess.Popen(
            command, cwd=self._directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )


def _utf(text: str) -> bytes:
    """As Java's DataInput reads it."""
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


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
def kafka(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """Run a tool by its class; returns its output if it ended with exit code `code`."""
    where = tmp_path_factory.mktemp("tools")
    host = ToolHost(where)

    def in_a_process(tool: str, words: Sequence[str], text: str) -> tuple[int, str]:
        ended = subprocess.run(
            java(tool, *words),
            input=text,
            cwd=where,
            text=True,
            timeout=TOOL_TIMEOUT_S,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return ended.returncode, ended.stdout

    def run(tool: str, *arguments: str, text: str = "", code: int = 0) -> str:
        where_to = ("--bootstrap-server", cluster.bootstrap)
        words = (*arguments, *where_to) if tool.endswith("ClusterTool") else (*where_to, *arguments)
        if "Verifiable" in tool:  # it prints when the JVM ends
            ended, printed = in_a_process(tool, words, text)
        else:
            ended, printed = host.run(tool, words, text)
        assert ended == code, printed
        return "\n".join(line for line in printed.splitlines() if "SLF4J" not in line)

    yield run
    host.close()
