"""librdkafka pushes the metrics that a broker subscribes to (KIP-714)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster.events import kind
from kcluster.events.clients import TelemetryPushed
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.foreign_clients.conftest import three_brokers
from tests.foreign_clients.real_clients import LIMIT_S, confluent_producer
from tests.foreign_clients.test_wire import ask

REQUEST = m.IncrementalAlterConfigsRequest
CLIENT_METRICS = 16


@pytest.fixture
def watched() -> Iterator[Cluster]:
    with Cluster(three_brokers()) as running:
        yield running


def subscribe(cluster: Cluster, **configs: str) -> None:
    changes = [
        REQUEST.AlterableConfig(name=name.replace("_", "."), value=text)
        for name, text in configs.items()
    ]
    resource = REQUEST.AlterConfigsResource(CLIENT_METRICS, "everything", changes)
    answer = ask(cluster, 1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, REQUEST(resources=[resource]))
    assert not answer.responses[0].error_code, answer


def test_telemetry__librdkafka_pushes_the_subscribed_metrics(watched: Cluster) -> None:
    subscribe(
        watched,
        metrics="org.apache.kafka.producer.",
        interval_ms="200",
        match="client_software_name=confluent.*,client_id=watched",
    )
    settings = {"client_id": "watched", "enable_metrics_push": True}
    with confluent_producer(watched.bootstrap, **settings) as producer:
        producer.produce("watched", b"v")
        producer.flush(LIMIT_S)
        watched.wait_for(event=kind(TelemetryPushed), since=0, timeout_s=LIMIT_S)
    pushes = [e.event for e in watched.events() if isinstance(e.event, TelemetryPushed)]
    assert pushes[0].subject == "watched"
    assert pushes[0].size_bytes > 0
