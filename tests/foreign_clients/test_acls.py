"""Real clients under ACLs: kafka-python and librdkafka see what their user may see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import TopicAuthorizationFailedError

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster

TOPOLOGY = """
brokers: 2
profile: fast
listeners: {CLIENT: {protocol: SASL_PLAINTEXT}}
topics: {orders: {partitions: 2}, secret: {}}
config: {sasl.enabled.mechanisms: PLAIN}
security:
  users: {alice: a, bob: b, admin: c}
  super_users: admin
  acls:
    - {allow: alice, to: [read, write], topic: orders}
    - {allow: alice, to: read, group: readers}
"""
PASSWORDS = {"alice": "a", "bob": "b", "admin": "c"}
LIMIT_S = 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.parse(TOPOLOGY)) as running:
        yield running


def of_python(cluster: Cluster, user: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": PASSWORDS[user],
    }


def of_librdkafka(cluster: Cluster, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
    }


def test_kafka_python__uses_its_topic_and_no_other(cluster: Cluster) -> None:
    producer = KafkaProducer(**of_python(cluster, "alice"))
    producer.send("orders", b"paid").get(LIMIT_S)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send("secret", b"x").get(LIMIT_S)
    producer.close()
    consumer = KafkaConsumer(
        "orders",
        group_id="readers",
        auto_offset_reset="earliest",
        consumer_timeout_ms=LIMIT_S * 1_000,
        **of_python(cluster, "alice"),
    )
    assert next(iter(consumer)).value == b"paid"
    assert consumer.topics() == {"orders"}
    consumer.close()


def test_librdkafka__a_right_is_given_and_taken_away(cluster: Cluster) -> None:
    admin = AdminClient(of_librdkafka(cluster, "admin"))
    bob = AdminClient(of_librdkafka(cluster, "bob"))
    wanted = (
        ResourceType.TOPIC, "sec", ResourcePatternType.PREFIXED, "User:bob", "*",
        AclOperation.DESCRIBE, AclPermissionType.ALLOW,
    )  # fmt: skip
    assert "secret" not in bob.list_topics(timeout=LIMIT_S).topics
    for future in admin.create_acls([AclBinding(*wanted)]).values():
        future.result(LIMIT_S)
    assert "secret" in bob.list_topics(timeout=LIMIT_S).topics
    found = admin.describe_acls(AclBindingFilter(*wanted)).result(LIMIT_S)
    assert found == [AclBinding(*wanted)]
    for future in admin.delete_acls([AclBindingFilter(*wanted)]).values():
        assert future.result(LIMIT_S) == [AclBinding(*wanted)]
    assert "secret" not in bob.list_topics(timeout=LIMIT_S).topics
    (refused,) = bob.create_acls([AclBinding(*wanted)]).values()
    with pytest.raises(confluent_kafka.KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        refused.result(LIMIT_S)
