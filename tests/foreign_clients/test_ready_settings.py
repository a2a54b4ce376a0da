"""kafka-python and aiokafka with the settings that a cluster hands out, through a leader's death on
both clocks; in virtual time twice the same."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kafka")
pytest.importorskip("aiokafka")

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.world.trace import WireTrace
from tests.foreign_clients.aiokafka_clients import run_async
from tests.rig.patience import PATIENCE_S
from tests.world.rig import in_virtual_time

pytestmark = [pytest.mark.clients, pytest.mark.pure_python]

SECURED: dict[str, Any] = {
    "listeners": {"CLIENT": {"protocol": "SASL_SSL"}},
    "security": {"tls": "auto", "users": {"alice": "alice-secret"}},
    "topics": {"orders": {"partitions": 1, "replication_factor": 3}},
}


def through_a_leaders_death(cluster: Any) -> None:
    settings = cluster.client_config("kafka-python", user="alice")
    producer = KafkaProducer(**settings)
    producer.send("orders", b"python").get(PATIENCE_S)
    cluster.kill("leader(orders-0)")
    producer.send("orders", b"after").get(PATIENCE_S)
    producer.close()
    run_async(by_asyncio(cluster.client_config("aiokafka", user="alice")))
    consumer = KafkaConsumer("orders", auto_offset_reset="earliest", **settings)
    assert [next(consumer).value for _ in range(3)] == [b"python", b"after", b"asyncio"]
    consumer.close()


async def by_asyncio(settings: dict[str, Any]) -> None:
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait("orders", b"asyncio")
    async with AIOKafkaConsumer("orders", auto_offset_reset="earliest", **settings) as consumer:
        assert (await consumer.getone()).value == b"python"


def test_ready_settings__outlive_a_leader_live() -> None:
    with Cluster(Topology.of(brokers=3, profile="fast", **SECURED), seed=1) as cluster:
        through_a_leaders_death(cluster)


@pytest.mark.long
def test_ready_settings__outlive_a_leader_in_virtual_time_twice_the_same() -> None:
    traces = []
    for _ in range(2):
        lines: list[str] = []
        with in_virtual_time(seed=3, **SECURED) as cluster:
            trace = WireTrace(cluster.driver.now_us, lines.append)
            cluster.driver.network.packet_sinks = (trace.on_packet,)
            through_a_leaders_death(cluster)
        traces.append(lines)
    assert traces[0] == traces[1]
    assert traces[0]
