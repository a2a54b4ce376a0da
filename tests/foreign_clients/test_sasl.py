"""Real clients log in by each mechanism, also when a leader dies, when their session ends, and with
a wrong password."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from kcluster.config.topology.model import Topology
from kcluster.events import SessionsEnded
from kcluster.handle.cluster import Cluster
from kcluster.principals import SecurityProtocol
from kcluster.scenario.perform import do
from kcluster.security.client_settings import SETTINGS_OF, Login
from kcluster.security.sasl.mechanisms import MECHANISMS, OAUTHBEARER
from kcluster.security.sasl.oauthbearer import unsecured_token
from tests.foreign_clients.conftest import SESSIONS
from tests.foreign_clients.real_clients import (
    LOADS,
    READERS,
    Load,
    check,
    confluent_settings,
    until,
)

SESSION_MS = 2_500
"""Sessions of PLAIN: clients log in again after 85 % of it, which must be well above the second in
which Kafka allows no other login, also on a busy machine."""
CONFIG = {
    **SESSIONS,
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "listener.name.client.plain.connections.max.reauth.ms": SESSION_MS,
}
LIBRARIES = {"kafka-python": "kafka-python", "confluent-kafka": "librdkafka"}


@pytest.fixture
def own() -> Iterator[Cluster]:
    topology = Topology.of(
        brokers=3,
        profile="fast",
        listeners={"CLIENT": {"protocol": "SASL_PLAINTEXT"}, "INSIDE": {"protocol": "PLAINTEXT"}},
        topics={key: {"assignment": [[1, 2, 3]], "min.insync.replicas": 2} for key in MECHANISMS},
        security={"users": {"alice": "alice-secret"}},
        config=CONFIG,
    )
    with Cluster(topology) as running:
        yield running


def addresses(cluster: Cluster, at: int) -> str:
    """The bootstrap servers of a listener."""
    endpoints = [each[at] for each in cluster.plan.endpoints.values()]
    return ",".join(f"{one.host}:{one.port}" for one in endpoints)


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """A token provider of kafka-python."""

    def token(self) -> str:
        return unsecured_token("alice", round(time.time() * 1000), 60_000)


def settings(library: str, mechanism: str, password: str = "alice-secret") -> dict[str, Any]:
    """How a client of a library logs in."""
    protocol = SecurityProtocol.SASL_PLAINTEXT
    login = Login("", protocol, mechanism, "alice", password)
    found: dict[str, Any] = dict(SETTINGS_OF[LIBRARIES[library]](login))
    del found["bootstrap.servers" if library == "confluent-kafka" else "bootstrap_servers"]
    if mechanism == OAUTHBEARER and library == "kafka-python":
        found["sasl_oauth_token_provider"] = Tokens()
    return found


def load_of(library: str, mechanism: str, cluster: Cluster, topic: str = "") -> Load:
    more: dict[str, Any] = {"acks": "all", "enable_idempotence": True}
    more |= settings(library, mechanism)
    return LOADS[library](addresses(cluster, 0), topic or mechanism, **more)


@pytest.mark.parametrize("library", LIBRARIES)
def test_sasl__a_leader_dies_and_clients_of_each_mechanism_lose_nothing(
    own: Cluster, library: str
) -> None:
    with ExitStack() as stack:
        loads = [stack.enter_context(load_of(library, one, own)) for one in MECHANISMS]
        for load in loads:
            load.wait_acked(50)
        own.kill(1)
        for load in loads:
            load.wait_acked(50)
    for load in loads:
        assert not load.failed
        check(load, READERS[library](addresses(own, 1), load.topic))


def test_sasl__sessions_and_tokens_end_at_once_and_nothing_is_lost(own: Cluster) -> None:
    with load_of("kafka-python", OAUTHBEARER, own) as load:
        load.wait_acked(50)
        do(own, "end_sessions", "all")
        load.wait_acked(50)
        do(own, "expire_token", "alice")
        load.wait_acked(50)
    assert not load.failed
    check(load, READERS["kafka-python"](addresses(own, 1), OAUTHBEARER))
    events = [entry.note.event for entry in own.events()]
    ended = [one for one in events if isinstance(one, SessionsEnded) and one.sessions]
    assert {one.mechanism for one in ended} == {"", OAUTHBEARER}


@pytest.mark.long
def test_sasl__a_session_ends_and_the_client_logs_in_again(own: Cluster) -> None:
    ends_s = time.monotonic() + 1.1 * SESSION_MS / 1000
    with ExitStack() as stack:
        loads = {
            library: stack.enter_context(load_of(library, "PLAIN", own, topic))
            for library, topic in zip(LIBRARIES, MECHANISMS, strict=False)
        }
        while time.monotonic() < ends_s:
            for load in loads.values():
                load.wait_acked(20)
    for library, load in loads.items():
        assert not load.failed
        check(load, READERS[library](addresses(own, 1), load.topic))


def test_sasl__a_wrong_password_is_no_reason_to_try_again(own: Cluster) -> None:
    problems: list[KafkaError] = []
    wrong = settings("confluent-kafka", "SCRAM-SHA-256", "wrong")
    more = confluent_settings(addresses(own, 0), **wrong) | {"error_cb": problems.append}
    producer = confluent_kafka.Producer(more)

    def refusals() -> list[str]:
        producer.poll(0.05)
        return [each.str() for each in problems if each.code() == KafkaError._AUTHENTICATION]

    (text, *_) = until(refusals, "refusal")
    assert "due to invalid credentials with SASL mechanism SCRAM-SHA-256" in text
