"""`kcluster proxy`: its options, its files, its output, its end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner

from kcluster.cli.errors import CommandError
from kcluster.cli.verbs.proxy import command
from kcluster.cli.work.command_config import read_command_config
from kcluster.cli.work.proxy_options import bootstrap_of, client_tls
from kcluster.cli.work.proxy_rules import read_rules
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.runs.directory import read_run
from kcluster.scenario.language.loader import ScenarioError
from tests.cli.conftest import CODE
from tests.rig.patience import PATIENCE_S
from tests.rig.proxied import PlainClient

pytestmark = pytest.mark.usefixtures("base")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=1, profile="fast")) as running:
        yield running


class Proxy:
    """A `kcluster proxy` in its own process; `ready` is its first line."""

    def __init__(self, bootstrap: str, *arguments: str) -> None:
        words = ["--bootstrap", bootstrap, "--base-port", "0", "--json", *arguments]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kcluster", "proxy", *words],
            env={**os.environ, "PYTHONPATH": CODE},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ready = self.line()
        assert self.ready["ready"], self.process.communicate()

    def line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        found: dict[str, object] = json.loads(self.process.stdout.readline() or "{}")
        return found

    def said(self, key: str) -> object:
        """The value of the next line with this key."""
        while key not in (found := self.line()):
            assert found, self.process.communicate()
        return found[key]

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


def test_proxy__runs_until_ctrl_c_and_leaves_its_record(cluster: Cluster, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("- rule: {api: ListGroups, nth: 1, answer: COORDINATOR_LOAD_IN_PROGRESS}\n")
    proxy = Proxy(cluster.bootstrap, "--out", str(tmp_path), "--page", "--rules", str(rules))
    with PlainClient(str(proxy.ready["bootstrap"]), "asking") as client:
        assert client.ask(m.ListGroupsRequest()).error_code == 14
        assert client.ask(m.ListGroupsRequest()).error_code == 0
        client.ask(m.MetadataRequest(topics=None))
    page = Path(unquote(urlsplit(str(proxy.said("page"))).path))
    assert "<html" in page.read_text("utf-8")
    assert proxy.stop(signal.SIGINT) == 0
    record, problems = read_run(tmp_path / "latest")
    assert problems == []
    assert [(x.api, x.error, x.broker) for x in record.exchanges if x.client == "asking"] == [
        ("ListGroups", "COORDINATOR_LOAD_IN_PROGRESS", 1),
        ("ListGroups", "", 1),
        ("Metadata", "", 1),
    ]
    assert [note.event.__struct_config__.tag for note in record.notes] == ["rule_added", "rule_hit"]
    assert record.info.clock == "proxy"
    assert [each["id"] for each in record.info.topology["brokers"]] == [1]
    assert "<html" in page.read_text("utf-8")


def test_proxy__a_killed_one_leaves_no_port_and_a_readable_record(
    cluster: Cluster, tmp_path: Path
) -> None:
    proxy = Proxy(cluster.bootstrap, "--out", str(tmp_path))
    place = str(proxy.ready["bootstrap"])
    proxy.stop(signal.SIGKILL)
    with pytest.raises(ConnectionRefusedError):
        PlainClient(place)
    record, problems = read_run(tmp_path / "latest")
    assert problems == []
    assert record.verdict["outcome"] == "unknown"


def kcluster(*words: str) -> tuple[int, str]:
    """A verb in its own process; its exit code and its output."""
    done = subprocess.run(
        [sys.executable, "-m", "kcluster", *words],
        env={**os.environ, "PYTHONPATH": CODE},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stdout + done.stderr


def test_proxy__verbs_reach_it_by_its_name(cluster: Cluster, base: Path) -> None:
    cluster.create_topic("orders", partitions=1, replication_factor=1)
    proxy = Proxy(cluster.bootstrap, "--name", "before")
    code, output = kcluster("fault", "rule: {api: ListGroups, close: before, times: 1}")
    assert (code, "closes the connection" in output) == (0, True), output
    with PlainClient(str(proxy.ready["bootstrap"])) as client:
        client.send(m.ListGroupsRequest())
        assert client.is_closed()
    code, output = kcluster("status")
    assert code == 0, output
    assert "cluster before" in output
    assert "orders-0" in output
    assert "applied to 1 of 1 requests" in output
    code, output = kcluster("events")
    assert [line.split()[2] for line in output.splitlines()] == ["rule_added", "rule_hit"]
    assert kcluster("fault", "clear_rules")[0] == 0
    code, output = kcluster("fault", "kill: 1")
    assert (code, "a proxy has rule, clear_rules" in output) == (2, True), output
    code, output = kcluster("fault", "evict: {group: billing, member: all}")
    assert (code, "there is no group billing" in output) == (1, True), output
    code, output = kcluster("fault", "delete_group: billing")
    assert (code, "there is no group billing" in output) == (1, True), output
    code, output = kcluster("reset-offsets", "billing", "orders", "earliest")
    assert (code, "there is no group billing" in output) == (1, True), output
    code, output = kcluster("fault", "rebalance: billing", "--for", "3s")
    assert (code, "rebalance takes no for" in output) == (2, True), output
    code, output = kcluster("fault", "rule: {api: Fetc, close: before}")
    assert (code, "did you mean Fetch?" in output) == (2, True), output
    code, output = kcluster("log", "orders-0")
    assert (code, "it has status, events, fault" in output) == (2, True), output
    assert kcluster("down") == (0, "cluster before has stopped\n")
    assert proxy.process.wait(PATIENCE_S) == 0
    proxy.process.communicate()


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(words))
    return result.exit_code, result.output


def refusal(*words: str) -> str:
    """What a proxy that cannot start prints."""
    finished = subprocess.run(
        [sys.executable, "-m", "kcluster", "proxy", *words],
        env={**os.environ, "PYTHONPATH": CODE},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert finished.returncode == 1
    return finished.stderr


def test_proxy__an_unreachable_cluster_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
    said = refusal("--bootstrap", place, "--base-port", "0")
    assert said == f"kcluster: {place}: Connection refused\n"


def test_proxy__a_port_that_is_taken_is_one_line(cluster: Cluster) -> None:
    port = cluster.bootstrap.rpartition(":")[2]
    said = refusal("--bootstrap", "127.0.0.1:1", "--base-port", port)
    assert said.startswith(f"kcluster: cannot listen on 127.0.0.1:{port}: ")
    assert said.endswith("; --base-port chooses another port\n")


def test_proxy__a_key_without_a_certificate_is_refused() -> None:
    code, output = run("--bootstrap", "127.0.0.1:1", "--tls-key", "key.pem")
    assert code == 2
    assert "--tls-key goes with --tls-cert" in output
    code, output = run("--bootstrap", "127.0.0.1:1", "--page")
    assert (code, "add --out DIR" in output) == (2, True)


@pytest.mark.parametrize("text", ["", "host", "host:", ":9092", "host:0", "host:70000", "a:1,b"])
def test_options__addresses_need_a_host_and_a_port(text: str) -> None:
    with pytest.raises(CommandError, match="not HOST:PORT"):
        bootstrap_of(text)


def test_options__addresses_of_ipv6_have_brackets() -> None:
    assert bootstrap_of("[::1]:9092, kafka:1") == (("::1", 9092), ("kafka", 1))


def test_options__a_certificate_needs_its_key(tmp_path: Path) -> None:
    none, text, lone = (tmp_path / name for name in ("none.pem", "text.pem", "lone.pem"))
    text.write_text("no PEM")
    lone.write_text("-----BEGIN CERTIFICATE-----")
    for files, problem in {
        (none, text): f"--tls-cert {none}: No such file or directory",
        (lone, none): f"--tls-key {none}: No such file or directory",
        (text, text): f"--tls-cert {text}: not a PEM file of certificates",
        (lone, lone): f"--tls-cert {lone} has no private key: add --tls-key FILE",
        (lone, text): f"--tls-key {text}: not a PEM file with a private key",
    }.items():
        with pytest.raises(CommandError, match=re.escape(problem)):
            client_tls(files)


RULES = """\
- rule: {api: Produce, nth: 2, answer: NOT_ENOUGH_REPLICAS}
- rule: {api: Fetc, close: before}
- kill: 1
- rule: {api: Fetch, broker: leader(orders-0), delay: 20ms}
- {at: 3s, rule: {close: before}}
- rule: {close: before, delay: 5ms}
- rule: {stale: true}
"""


def test_rules__every_problem_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    with pytest.raises(ScenarioError) as caught:
        read_rules(path)
    text = str(caught.value).replace(str(path), "rules.yaml")
    assert [line.partition(": ")[0] for line in text.splitlines()] == [
        "rules.yaml:2:15 rules[1].rule.api",
        "rules.yaml:3:3 rules[2]",
        "rules.yaml:4:3 rules[3]",
        "rules.yaml:5:3 rules[4]",
        "rules.yaml:6:3 rules[5]",
        "rules.yaml:7:3 rules[6]",
    ]
    assert "did you mean Fetch?" in text
    assert "a file of rules has only rule" in text
    assert "which a proxy does not have" in text


@pytest.mark.parametrize("text", ["", "rule: {close: before}", "- [", "- 3"])
def test_rules__what_is_no_list_of_rules_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=re.escape("rules.yaml")):
        read_rules(path)


def test_rules__brokers_are_ids(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("- rule: {broker: '1,2', client: 'shop*', delay: 20ms}\n")
    (made,) = read_rules(path)
    assert (made.brokers, made.client) == ((1, 2), "shop*")


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_command_config__a_login_and_tls_are_read(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} required username="alice" \\\n  password="secret";\n'
        "ssl.endpoint.identification.algorithm=\nrequest.timeout.ms=5\n"
    )
    security = read_command_config(path)
    assert security.login is not None
    assert (security.login.user, security.login.password) == ("alice", "secret")
    assert isinstance(security.tls, ssl.SSLContext)
    assert not security.tls.check_hostname


def test_command_config__without_a_login_module_clients_log_in(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n")
    assert read_command_config(path).login is None


WRONG = {
    "security.protocol=SSLL": "client.properties:1:1: security.protocol=SSLL: there are PLAINTEXT",
    "sasl.mechanisms=PLAIN": "did you mean sasl.mechanism?",
    "securty.protocol=SSL": "did you mean security.protocol?",
    f"security.protocol=SASL_SSL\nsasl.jaas.config={PLAIN} required;": "client.properties:2:1",
    "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/none.pem": (
        "client.properties:3:1: ssl.truststore.location: /none.pem: No such file"
    ),
    f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN} required;": (
        "sasl.jaas.config has no username"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_command_config__problems_have_their_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(CommandError, match=re.escape(WRONG[text])):
        read_command_config(path)
