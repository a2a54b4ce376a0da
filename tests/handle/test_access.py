"""Ready settings of client libraries; real clients with them are in foreign_clients/."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.errors import ClusterError
from kcluster.security.client_settings import SETTINGS_OF

TOPOLOGY: dict[str, Any] = {
    "brokers": 2,
    "listeners": {
        "CLIENT": {"protocol": "SASL_SSL"},
        "MUTUAL": {"protocol": "SSL"},
        "INTERNAL": {"protocol": "PLAINTEXT"},
    },
    "security": {
        "tls": {"client_auth": "required"},
        "users": {
            "alice": "alice-secret",
            "bob": {"password": "bob-secret", "mechanisms": ["PLAIN"]},
        },
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[WorldCluster]:
    cluster = WorldCluster(Topology.of(**TOPOLOGY), 1, record=False)
    cluster.open()
    yield cluster
    cluster.close()


def test_client_config__without_a_user_is_plain(cluster: WorldCluster) -> None:
    assert cluster.client_config("librdkafka") == {
        "bootstrap.servers": cluster.bootstrap_of("internal"),
        "security.protocol": "PLAINTEXT",
    }


def test_client_config__a_user_logs_in_by_the_strongest_mechanism(cluster: WorldCluster) -> None:
    alice = cluster.client_config("kafka-python", user="alice")
    assert alice["bootstrap_servers"] == cluster.bootstrap_of("CLIENT")
    assert alice["sasl_mechanism"] == "SCRAM-SHA-512"
    assert "BEGIN CERTIFICATE" in Path(str(alice["ssl_cafile"])).read_text()
    assert cluster.client_config("java", user="bob")["sasl.mechanism"] == "PLAIN"


def test_client_config__a_certificate_where_brokers_ask_for_one(cluster: WorldCluster) -> None:
    mutual = cluster.client_config("librdkafka", user="alice", listener="MUTUAL")
    assert mutual["security.protocol"] == "SSL"
    assert "PRIVATE KEY" in Path(str(mutual["ssl.key.location"])).read_text()
    assert "ssl.key.location" not in cluster.client_config("librdkafka", user="alice")


@pytest.mark.parametrize("library", SETTINGS_OF)
def test_client_config__each_library_has_the_password(cluster: WorldCluster, library: str) -> None:
    config = cluster.client_config(library, user="alice")
    assert "alice-secret" in str(config)
    context = config.get("ssl_context")
    assert (library == "aiokafka") == isinstance(context, ssl.SSLContext)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"library": "jafa"}, "java"),
        ({"library": "java", "user": "alise"}, "alice"),
        ({"library": "java", "listener": "CLEINT"}, "CLIENT"),
        ({"library": "java", "user": "alice", "listener": "INTERNAL"}, "is PLAINTEXT"),
    ],
)
def test_client_config__a_wrong_word_is_refused(
    cluster: WorldCluster, keys: dict[str, str], problem: str
) -> None:
    with pytest.raises(ClusterError, match=problem):
        cluster.client_config(**keys)
