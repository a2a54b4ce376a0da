"""Ready settings of client libraries; real clients with them are in foreign_clients/."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.perform import do
from kcluster.security.client_settings import SETTINGS_OF
from kcluster.security.sasl.mechanisms import OAUTHBEARER

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


KAFKAS: dict[str, Any] = {
    "brokers": 1,
    "listeners": {"CLIENT": {"protocol": "SASL_PLAINTEXT"}, "INSIDE": {"protocol": "PLAINTEXT"}},
    "security": {"users": {"alice": "old"}},
    "config": {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.client.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            ' user_carol="c" user_alice="old";'
        ),
    },
}


@pytest.fixture
def kafkas() -> Iterator[WorldCluster]:
    cluster = WorldCluster(Topology.of(**KAFKAS), 1, record=False)
    cluster.open()
    yield cluster
    cluster.close()


def login(cluster: WorldCluster, *who: Any, **how: Any) -> tuple[str | None, str]:
    found = cluster.access.login(*who, **how)
    return found.mechanism, found.password


def test_login__hands_out_the_password_that_an_action_gave(kafkas: WorldCluster) -> None:
    undo = do(kafkas, "password", user="alice", to="new")
    assert login(kafkas, "alice") == ("SCRAM-SHA-512", "new")
    assert login(kafkas, "alice", mechanism="plain") == ("PLAIN", "old"), "it is no SCRAM"
    do(kafkas, "password", user="dave", to="d")
    assert login(kafkas, "dave") == ("SCRAM-SHA-512", "d")
    undo()
    assert login(kafkas, "alice") == ("SCRAM-SHA-512", "old")


def test_login__a_password_of_kafka_configs_is_known_to_its_client_only(
    kafkas: WorldCluster,
) -> None:
    kafkas.verbs.admin.set_password("alice", "hidden", "SCRAM-SHA-512", Random(1), lambda _: None)
    with pytest.raises(ClusterError, match="password of alice for SCRAM-SHA-512 was set by a clie"):
        kafkas.client_config("java", user="alice")
    assert login(kafkas, "alice", mechanism="SCRAM-SHA-256") == ("SCRAM-SHA-256", "old")


def test_login__users_of_a_jaas_config(kafkas: WorldCluster) -> None:
    assert login(kafkas, "carol") == ("PLAIN", "c")
    with pytest.raises(ClusterError, match="carol does not log in by SCRAM-SHA-256"):
        login(kafkas, "carol", mechanism="SCRAM-SHA-256")


@pytest.mark.parametrize(
    ("who", "problem"),
    [
        ({"user": "alice", "mechanism": "SCRAM-SHA-265"}, "SCRAM-SHA-256"),
        ({"listener": "INSIDE", "mechanism": "PLAIN"}, "the listener INSIDE has no SASL"),
        ({"user": 5}, "user=5: must be text"),
        ({"mechanism": b"PLAIN"}, "mechanism"),
    ],
)
def test_login__refuses_wrong_mechanisms_and_types(
    kafkas: WorldCluster, who: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ClusterError, match=problem):
        kafkas.client_config("java", **who)


def test_login__by_a_token_of_a_user_that_has_a_password_too(kafkas: WorldCluster) -> None:
    assert login(kafkas, "alice", mechanism=OAUTHBEARER) == (OAUTHBEARER, "")
