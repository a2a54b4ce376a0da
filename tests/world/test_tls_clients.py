"""kafka-python and aiokafka by TLS in virtual time, while a leader dies: twice the same run."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kafka")
pytest.importorskip("aiokafka")

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from kafka import KafkaConsumer, KafkaProducer

from kcluster.drivers.tls.certificate_folder import CertificateFolder
from kcluster.handle.world_cluster import WorldCluster
from kcluster.principals import Principal
from kcluster.world.trace import WireTrace
from tests.world.rig import in_virtual_time

pytestmark = [pytest.mark.clients, pytest.mark.pure_python]

SECURED: dict[str, Any] = {
    "listeners": {"SECURE": {"protocol": "SSL"}},
    "security": {"tls": {"client_auth": "required"}},
}


def folder_of(cluster: WorldCluster, path: Path) -> CertificateFolder:
    assert cluster.driver.tls is not None
    return CertificateFolder(path, cluster.driver.tls.authority)


def run(path: Path, seed: int) -> list[str]:
    """The trace of a run."""
    lines: list[str] = []
    with in_virtual_time(seed=seed, **SECURED) as cluster:
        trace = WireTrace(cluster.driver.now_us, lines.append)
        cluster.driver.network.packet_sinks = (trace.on_packet,)
        files = folder_of(cluster, path).files_of("alice")
        settings: dict[str, Any] = {
            "bootstrap_servers": cluster.bootstrap.split(","),
            "security_protocol": "SSL",
            "ssl_cafile": files.authority,
            "ssl_certfile": files.certificate,
        }
        producer = KafkaProducer(**settings)
        for number in range(20):
            producer.send("orders", b"%d" % number).get(30)
            if number == 10:
                cluster.kill("leader(orders-0)")
        listeners = cluster.driver.open_listeners()
        names = {
            each.channel.identity_of(connection).principal
            for each in listeners
            for connection in each.connections
        }
        assert names == {Principal("User", "CN=alice")}
        producer.close()
        asyncio.run(produce(settings["bootstrap_servers"], files))
        consumer = KafkaConsumer(
            "orders", auto_offset_reset="earliest", consumer_timeout_ms=2_000, **settings
        )
        assert len(list(consumer)) == 21
        consumer.close()
    return lines


async def produce(bootstrap: list[str], files: Any) -> None:
    context = ssl.create_default_context(cafile=files.authority)
    context.load_cert_chain(files.certificate)
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, security_protocol="SSL", ssl_context=context
    )
    async with producer:
        await producer.send_and_wait("orders", b"by asyncio")


@pytest.mark.long
def test_tls_clients__run_the_same_twice(tmp_path: Path) -> None:
    first = run(tmp_path / "1", 7)
    assert run(tmp_path / "2", 7) == first
    assert any("Produce v" in line and "aiokafka" in line for line in first)
    assert run(tmp_path / "3", 8) != first


def test_tls_clients__a_client_that_trusts_another_ca_does_not_connect() -> None:
    with in_virtual_time(seed=1, **SECURED) as cluster:
        context = ssl.create_default_context()  # the machine's CAs

        async def start() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=cluster.bootstrap.split(","),
                security_protocol="SSL",
                ssl_context=context,
            )
            try:
                await producer.start()
            finally:
                await producer.stop()

        with pytest.raises(KafkaConnectionError, match="bootstrap"):
            asyncio.run(start())
