"""`kcluster conform`: its options, its files, its exit codes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kcluster.cli.verbs.conform import RELEASES, command
from kcluster.config.topology.model import Topology
from kcluster.conform.references import REFERENCES
from kcluster.handle.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=1, profile="kafka")) as running:
        yield running


def conform(*words: str) -> Result:
    return CliRunner().invoke(command, words)


def test_conform__prints_and_writes_what_it_found(cluster: Cluster, tmp_path: Path) -> None:
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    files = ("--json", str(report), "--page", str(page))
    ran = conform("--bootstrap", cluster.bootstrap, "--only", "describe_cluster", *files)
    assert ran.exit_code == 1, ran.output
    assert 'v0: answer is "closed"; Kafka 4.4.0 says' in ran.stdout
    values = json.loads(report.read_text())
    assert values["format"] == 1
    assert values["against"] == "4.4.0"
    assert [one["cases"] for one in values["differences"]] == [["wire: client id that is no utf-8"]]
    assert values["same"] > 5
    assert values["stopped"] == ""
    assert values["left_behind"] == []
    html = page.read_text()
    assert "<td>DescribeCluster<td>v0-2" in html
    assert "wire: client id that is no utf-8" in html


def test_conform__without_a_difference_the_exit_code_is_0(cluster: Cluster) -> None:
    words = ("--only", "DescribeCluster", "--skip", "wire: *", "-q", "--against", "4.3.1")
    ran = conform("--bootstrap", cluster.bootstrap, *words)
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.count("\n") == 1
    assert " are those of Apache Kafka 4.3.1, 0 are not" in ran.stdout


def test_conform__the_releases_are_those_with_recorded_answers() -> None:
    assert [one.version for one in REFERENCES] == list(RELEASES)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--bootstrap", "kafka-1"), "not HOST:PORT"),
        (("--bootstrap", "kafka.test.example:9092"), "add --allow kafka.test.example"),
        (("--bootstrap", "127.0.0.1:9", "--only", "Fecth"), "did you mean Fetch?"),
        (("--bootstrap", "127.0.0.1:9", "--page", "/nosuch/page.html"), "/nosuch"),
        (("--bootstrap", "127.0.0.1:9", "--command-config", "/nosuch.properties"), "/nosuch"),
    ],
)
def test_conform__a_wrong_command_line_is_refused_in_one_line(
    words: tuple[str, ...], text: str
) -> None:
    ran = conform(*words)
    assert ran.exit_code == 2
    assert text in ran.stderr


def test_conform__where_nothing_listens_the_exit_code_is_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    ran = conform("--bootstrap", f"127.0.0.1:{port}")
    assert ran.exit_code == 2
    assert "Connection refused" in ran.stderr
