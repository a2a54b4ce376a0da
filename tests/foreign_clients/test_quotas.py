"""Real clients under a quota: they learn their throttle time, and cannot exceed the quota."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.foreign_clients.real_clients import confluent_settings
from tests.foreign_clients.test_wire import ask
from tests.rig.patience import PATIENCE_S

RATE = 200_000
VALUE = bytes(10_000)
VALUES = 60
A = m.AlterClientQuotasRequest


def test_producer__cannot_send_faster_than_its_quota() -> None:
    # Two windows of a second: a burst of one second's records is allowed, not of ten.
    config = {"quota.window.num": 2}
    topology = Topology.of(brokers=1, profile="fast", topics={"orders": {}}, config=config)
    throttled: list[Any] = []
    with Cluster(topology) as running:
        entity = [A.EntityData("client-id", "greedy")]
        body = A([A.EntryData(entity, [A.OpData("producer_byte_rate", float(RATE))])])
        (result,) = ask(running, 1, ApiKey.ALTER_CLIENT_QUOTAS, 1, body).entries
        assert result.error_code == ErrorCode.NONE
        settings = confluent_settings(
            running.bootstrap, client_id="greedy", batch_size=20_000, linger_ms=1
        )
        begin_s = time.monotonic()
        producer = confluent_kafka.Producer({**settings, "throttle_cb": throttled.append})
        for _ in range(VALUES):
            producer.produce("orders", VALUE)
        assert producer.flush(PATIENCE_S) == 0
        took_s = time.monotonic() - begin_s
    # The throttle time of the last request is not waited for: it follows the response.
    least_s = (VALUES * len(VALUE) - 30_000) / RATE - 1
    assert took_s >= least_s * 0.95
    assert max(event.throttle_time for event in throttled) > 0
