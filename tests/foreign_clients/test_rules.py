"""Real clients under protocol faults: how they react, and what is in the log afterwards."""

from __future__ import annotations

import time
from typing import Any

import kafka
import pytest

from kcluster import rule
from kcluster.events.network import RuleHit
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_producer,
    python_producer,
    python_read,
    until,
)

VALUES = [b"%d" % number for number in range(5)]


def send_one_by_one(cluster: Cluster, **settings: Any) -> list[int]:
    """Five records, each acked before the next; their offsets."""
    with python_producer(cluster.bootstrap, request_timeout_ms=2_000, **settings) as producer:
        return [producer.send("orders", x, partition=0).get(LIMIT_S).offset for x in VALUES]


def values_read(cluster: Cluster) -> list[bytes | None]:
    return [read.value for read in python_read(cluster.bootstrap, "orders")]


@pytest.mark.parametrize("close", [True, False])
@pytest.mark.parametrize("idempotent", [False, True])
def test_rules__a_reply_lost_after_the_append_makes_a_duplicate_unless_idempotent(
    own: Cluster, idempotent: bool, close: bool
) -> None:
    own.add_rule(rule(api="Produce", client="kafka-*", nth=3, drop="reply", close=close))
    send_one_by_one(own, acks="all", retries=5, enable_idempotence=idempotent)
    again = [] if idempotent else [VALUES[2]]
    assert values_read(own) == [*VALUES[:3], *again, *VALUES[3:]]
    (status,) = own.rules()
    assert status.hits == 1


def asked_after_the_error(cluster: Cluster) -> bool:
    """Whether a client has requested metadata since rule `a` applied."""
    rules = [x.event.rule for x in cluster.events() if isinstance(x.event, RuleHit)]
    return "a" in rules and "b" in rules[rules.index("a") :]


@pytest.mark.parametrize("library", ["kafka-python", "confluent-kafka"])
def test_rules__not_leader_from_the_leader_makes_clients_refresh_metadata(
    own: Cluster, library: str
) -> None:
    own.add_rule(rule(name="a", api="Produce", nth=3, answer="NOT_LEADER_OR_FOLLOWER"))
    own.add_rule(rule(name="b", api="Metadata", delay_ms=0))
    if library == "kafka-python":
        with python_producer(own.bootstrap, acks="all", retries=5) as producer:
            for value in VALUES:
                producer.send("orders", value, partition=0).get(LIMIT_S)
            # It waits 100 ms between two such requests.
            until(lambda: asked_after_the_error(own), "Metadata")
    else:
        with confluent_producer(own.bootstrap) as confluent:
            for value in VALUES:
                confluent.produce("orders", value, partition=0)
                assert confluent.flush(LIMIT_S) == 0
            until(lambda: asked_after_the_error(own), "Metadata")
    assert values_read(own) == VALUES


def test_rules__a_request_lost_before_the_append_is_sent_again_once(own: Cluster) -> None:
    own.add_rule(rule(api="Produce", nth=2, drop="request", close=True))
    send_one_by_one(own, acks="all", retries=5, enable_idempotence=False)
    assert values_read(own) == VALUES


def test_rules__a_throttled_client_waits(own: Cluster) -> None:
    own.add_rule(rule(api="Produce", nth=1, throttle_ms=400))
    began = time.monotonic()
    send_one_by_one(own, acks="all")
    assert time.monotonic() - began > 0.35
    assert values_read(own) == VALUES


def test_rules__an_outside_clients_error_is_raised_as_an_exception(own: Cluster) -> None:
    own.add_rule(rule(api="Produce", answer="TOPIC_AUTHORIZATION_FAILED"))
    with (
        python_producer(own.bootstrap, request_timeout_ms=2_000) as producer,
        pytest.raises(kafka.errors.TopicAuthorizationFailedError),
    ):
        producer.send("orders", b"x", partition=0).get(LIMIT_S)
    own.clear_rules()
    assert values_read(own) == []
    assert own.rules() == ()
