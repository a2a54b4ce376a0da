"""Passwords and keys are in nothing that a cluster writes down, shows or answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from bench.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.rig.patience import PATIENCE_S

SECRETS = ("alice-5ecret", "wrong-5ecret", "keystore-5ecret")
TOPOLOGY = f"""
brokers: 1
profile: fast
listeners: {{CLIENT: {{protocol: SASL_PLAINTEXT}}, PLAINTEXT: {{}}}}
config:
  sasl.enabled.mechanisms: "PLAIN,SCRAM-SHA-256"
  listener.name.other.ssl.keystore.password: {SECRETS[2]}
security: {{users: {{alice: {SECRETS[0]}}}}}
topics: {{orders: {{}}}}
"""


class Heard:
    """A cluster that was recorded while clients logged in, and the lines of its log."""

    def __init__(self, cluster: Cluster, lines: list[str], folder: Path) -> None:
        self.cluster, self.lines, self.folder = cluster, lines, folder


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heard]:
    lines: list[str] = []
    with Cluster(Topology.parse(TOPOLOGY), log=lines.append) as cluster:
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            log_in(cluster, mechanism, SECRETS[0])
            with pytest.raises(KafkaError):
                log_in(cluster, mechanism, SECRETS[1])
        folder = Path(cluster.save(tmp_path_factory.mktemp("runs") / "run"))
        yield Heard(cluster, lines, folder)


def log_in(cluster: Cluster, mechanism: str, password: str) -> None:
    """Send a record as alice."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=password,
        max_block_ms=2_000,
        api_version=(2, 8),
    )
    try:
        producer.send("orders", b"a record").get(PATIENCE_S)
    finally:
        producer.close()


def assert_silent(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text


def test_secrets__a_run_directory_has_none(heard: Heard) -> None:
    files = [path for path in heard.folder.rglob("*") if path.is_file()]
    texts = [path.read_bytes().decode("latin-1") for path in files]
    assert any("alice" in text for text in texts), "the logins are in the record"
    assert any("a record" in text or "YSByZWNvcmQ" in text for text in texts)
    for text in texts:
        assert_silent(text)


def test_secrets__events_log_status_verdict_and_reprs_have_none(heard: Heard) -> None:
    cluster = heard.cluster
    assert_silent("\n".join(map(str, cluster.events())))
    assert_silent("\n".join(heard.lines))
    assert_silent(repr(cluster.status()))
    assert_silent(repr(cluster.topology) + repr(cluster.plan) + repr(cluster.topology.security))
    assert_silent("\n".join(cluster.verdict().lines()))
    assert_silent(json.dumps([thread.name for thread in threading.enumerate()]))


def test_secrets__described_configs_have_none(heard: Heard) -> None:
    asked = m.DescribeConfigsRequest.DescribeConfigsResource(4, "1", None)
    with Wire(("127.0.0.1", heard.cluster.driver.ports[1][1].port)) as wire:
        answer = wire.ask(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            m.DescribeConfigsRequest([asked], include_synonyms=True, include_documentation=True),
        )
    assert len(answer.results[0].configs) > 100
    assert_silent(repr(answer))
