"""librdkafka and kafka-python over TLS with certificates of clients, while a leader dies."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("kafka")

from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.rig.patience import PATIENCE_S

pytestmark = pytest.mark.clients

TOPOLOGY: dict[str, Any] = {
    "brokers": 3,
    "profile": "fast",
    "listeners": {"SECURE": {"protocol": "SSL"}},
    "security": {"tls": {"client_auth": "required"}},
    "topics": {"orders": {"partitions": 1, "replication_factor": 3}},
}


@pytest.mark.long
def test_tls__clients_go_on_when_a_leader_dies() -> None:
    with Cluster(Topology.of(**TOPOLOGY)) as cluster:
        folder = cluster.certificates
        files = folder.files_of("alice")
        librdkafka: dict[str, Any] = {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": files.authority,
            "ssl.certificate.location": files.certificate,
            "ssl.key.location": files.key,
            "log_level": 0,
        }
        failed: list[object] = []
        confluent = Producer(librdkafka)
        python = KafkaProducer(
            bootstrap_servers=cluster.bootstrap.split(","),
            security_protocol="SSL",
            ssl_cafile=files.authority,
            ssl_certfile=files.certificate,
        )
        for number in range(20):
            confluent.produce("orders", b"c%d" % number, callback=lambda e, _: failed.append(e))
            python.send("orders", b"p%d" % number).get(PATIENCE_S)
            if number == 10:
                cluster.kill("leader(orders-0)")
        assert confluent.flush(PATIENCE_S) == 0
        assert failed == [None] * 20
        python.close()
        consumer = Consumer(librdkafka | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        read: set[bytes] = set()
        while len(read) < 40:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, read
            if message.error() is None:
                read.add(message.value() or b"")
        consumer.close()
    assert not folder.folder.exists()
