"""Where Java and Kafka's jars are, and what is said where they are missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kcluster import Topology
from kcluster.apache_kafka.installation import find_installation, version_for
from kcluster.operations.errors import ClusterError


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing but Java 21; its programs are in bin/."""
    program(tmp_path / "bin", "java", "echo 'openjdk version \"21.0.1\" 2023-10-17' >&2")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("KCLUSTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def home_with(folder: Path, *jars: str) -> Path:
    (folder / "libs").mkdir(parents=True)
    for jar in jars:
        (folder / "libs" / jar).touch()
    return folder


def why_not(version: str | None = None, home: Path | None = None) -> str:
    with pytest.raises(ClusterError) as raised:
        find_installation(version, home)
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_installation__java_is_missing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "bin/java").unlink()
    needs = "a real Kafka needs Java 17 or later"
    assert why_not() == f"{needs}: there is no `java` in PATH"
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert why_not() == f"{needs}: JAVA_HOME (/nowhere) has no bin/java"


def test_installation__java_is_too_old(machine: Path) -> None:
    program(machine / "bin", "java", "echo 'openjdk version \"11.0.2\"' >&2")
    java = machine / "bin/java"
    assert why_not("4.3.1") == f"Kafka 4.3.1 needs Java 17 or later; {java} is Java 11"


def test_installation__maven_is_missing(machine: Path) -> None:
    assert why_not("4.3.1") == (
        "Maven fetches the jars of Kafka 4.3.1, and there is no `mvn` in PATH; or name an unpacked"
        " Kafka with --kafka-home DIR"
    )


def test_installation__maven_fails(machine: Path) -> None:
    program(machine / "bin", "mvn", "echo '[ERROR] no such artifact'; exit 1")
    assert why_not("4.3.7") == "Maven could not fetch Kafka 4.3.7: no such artifact"
    assert [file.name for file in (machine / "cache").iterdir()] == [".lock"]


def test_installation__two_processes_fetch_one_after_the_other(machine: Path) -> None:
    """Maven's local repository is no place for two: each removes the other's partial files."""
    program(
        machine / "bin",
        "mvn",
        f"mkdir {machine}/busy || exit 1; echo once >> {machine}/times; /bin/sleep 0.2\n"
        'for last; do :; done; mkdir -p "${last#*=}"; : > "${last#*=}/kafka_2.13-4.3.1.jar"\n'
        f"rmdir {machine}/busy",
    )
    for name in ("mkdir", "rmdir"):
        (machine / "bin" / name).symlink_to(f"/bin/{name}")
    fetch = (
        "from kcluster.apache_kafka.installation import fetched_jars\n"
        "print(fetched_jars('4.3.1', lambda line: None)[0].name)"
    )
    command = [sys.executable, "-c", fetch]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["kafka_2.13-4.3.1.jar\n"] * 2
    assert (machine / "times").read_text() == "once\n"


@pytest.mark.parametrize("version", ["2.8.0", "nonsense", "", "4.4.0/..", "99.1.0"])
def test_installation__no_such_version(machine: Path, version: str) -> None:
    assert why_not(version or "-") == (
        f"Kafka {version or '-'} cannot be started; the releases are 4.0, 4.1, 4.2, 4.3, 4.4"
    )


def test_installation__of_a_directory_without_kafka(machine: Path) -> None:
    assert why_not(None, machine) == (
        f"{machine} is not an unpacked Kafka: it has no libs/kafka_2.13-*.jar"
    )
    assert why_not(None, machine / "none") == f"{machine / 'none'}: no such directory"


def test_installation__of_a_directory(machine: Path) -> None:
    home = home_with(machine / "kafka", "kafka_2.13-4.3.1.jar", "slf4j.jar")
    assert why_not("4.4.0", home) == f"{home} has Kafka 4.3.1, not 4.4.0"
    said: list[str] = []
    found = find_installation(None, home, said.append)
    assert (found.version, found.archive) == ("4.3.1", None)  # this Java makes none
    assert found.class_path == f"{home}/libs/kafka_2.13-4.3.1.jar:{home}/libs/slf4j.jar"
    assert re.match("no archive, so that each node starts more slowly", said[-1])


def test_version__is_the_topology_s() -> None:
    assert version_for(Topology.of(brokers=1)) == "4.4.0"
    assert version_for(Topology.of(brokers=1, kafka_version="4.3")) == "4.3.1"
    with pytest.raises(ClusterError, match=r"Kafka 2.8 cannot be started"):
        version_for(Topology.of(brokers=1, kafka_version="2.8"))
    with pytest.raises(ClusterError, match=r"brokers of 4.3 and 4.4: on the real ground all"):
        version_for(Topology.of(brokers=[{"id": 1, "kafka_version": "4.3"}, {"id": 2}]))


def test_version__an_era_that_no_setting_brings_about_is_refused() -> None:
    assert version_for(Topology.of(brokers=1, era="before KIP-966")) == version_for(Topology.of())
    with pytest.raises(ClusterError, match="before KIP-101: a real Kafka has the fix"):
        version_for(Topology.of(brokers=1, era="before KIP-101"))
