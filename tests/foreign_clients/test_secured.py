"""Real clients by TLS, with a password, a token or a certificate, under ACLs, while a leader dies.

Each user has one way to log in and one topic, so `client_config` finds the way by the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("aiokafka")

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.aiokafka_clients import AiokafkaLoad, aiokafka_read
from tests.foreign_clients.conftest import SESSIONS
from tests.foreign_clients.real_clients import (
    ConfluentLoad,
    Load,
    PythonLoad,
    Read,
    check,
    confluent_read,
    python_read,
)

MECHANISMS = {"plain": "PLAIN", "sha256": "SCRAM-SHA-256", "sha512": "SCRAM-SHA-512"}
"""By the user who logs in by it."""
TOKEN = "token"
"""Logs in by OAUTHBEARER."""
CERTIFICATE = "certificate"
"""Comes by the listener that asks for certificates."""
USERS = (*MECHANISMS, TOKEN, CERTIFICATE)

Reader = Callable[[str, dict[str, Any]], list[Read]]
LIBRARIES: dict[str, tuple[type[Load], Reader]] = {
    "librdkafka": (ConfluentLoad, lambda topic, more: confluent_read("", topic, **more)),
    "kafka-python": (PythonLoad, lambda topic, more: python_read("", topic, **more)),
    "aiokafka": (AiokafkaLoad, lambda topic, more: aiokafka_read(topic, **more)),
}


def secured() -> Topology:
    """Three brokers that let in nobody without TLS and a name, and each user to its topic only."""
    rights = ["read", "write", "describe"]
    named = {user: f"CN={user}" if user == CERTIFICATE else user for user in USERS}
    return Topology.of(
        brokers=3,
        profile="fast",
        listeners={"PASSWORD": {"protocol": "SASL_SSL"}, "MUTUAL": {"protocol": "SSL"}},
        topics={user: {"assignment": [[1, 2, 3]], "min.insync.replicas": 2} for user in USERS},
        security={
            "tls": "auto",
            "users": {
                user: {"password": f"{user}-secret", "mechanisms": [mechanism]}
                for user, mechanism in MECHANISMS.items()
            },
            "acls": [{"allow": named[user], "to": rights, "topic": user} for user in USERS],
        },
        config={
            **SESSIONS,
            "sasl.enabled.mechanisms": ",".join([*MECHANISMS.values(), "OAUTHBEARER"]),
            "listener.name.mutual.ssl.client.auth": "required",
        },
    )


@pytest.fixture
def own() -> Iterator[Cluster]:
    with Cluster(secured()) as running:
        yield running


def settings(cluster: Cluster, library: str, user: str) -> dict[str, Any]:
    """As `client_config` hands them out."""
    return cluster.client_config(library, user, "MUTUAL" if user == CERTIFICATE else "PASSWORD")


@pytest.mark.parametrize("library", LIBRARIES)
def test_secured__a_leader_dies_and_no_user_loses_anything(own: Cluster, library: str) -> None:
    make, read = LIBRARIES[library]
    logins = {user: settings(own, library, user) for user in USERS}
    with ExitStack() as stack:
        loads = [
            stack.enter_context(make("", user, acks="all", enable_idempotence=True, **login))
            for user, login in logins.items()
        ]
        for load in loads:
            load.wait_acked(50)
        own.kill(1)
        for load in loads:
            load.wait_acked(50)
    for load in loads:
        assert not load.failed
        check(load, read(load.topic, logins[load.topic]))
