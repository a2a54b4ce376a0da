"""kafka-python and aiokafka log in by SASL in virtual time, while a leader dies and sessions end:
twice the same run."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

pytest.importorskip("kafka")
pytest.importorskip("aiokafka")

from aiokafka import AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from kcluster.security.sasl.mechanisms import MECHANISMS, OAUTHBEARER
from kcluster.security.sasl.oauthbearer import unsecured_token
from kcluster.world.trace import WireTrace
from tests.world.rig import in_virtual_time

pytestmark = [pytest.mark.clients, pytest.mark.pure_python]

SECURED: dict[str, Any] = {
    "listeners": {"CLIENT": {"protocol": "SASL_PLAINTEXT"}},
    "security": {"users": {"alice": "alice-secret"}},
    "config": {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connections.max.reauth.ms": 20_000,
    },
}


RECORDS = 8
"""A record every six seconds: the last ones are sent in the third session."""


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Tokens by the clock of the world."""

    def token(self) -> str:
        return unsecured_token("alice", int(time.time() * 1000), 60_000)


def run(mechanism: str, seed: int) -> list[str]:
    """The trace of a run."""
    lines: list[str] = []
    with in_virtual_time(seed=seed, **SECURED) as cluster:
        trace = WireTrace(cluster.driver.now_us, lines.append)
        cluster.driver.network.packet_sinks = (trace.on_packet,)
        settings: dict[str, Any] = {
            "bootstrap_servers": cluster.bootstrap.split(","),
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
        }
        if mechanism == OAUTHBEARER:
            settings["sasl_oauth_token_provider"] = Tokens()
        else:
            settings |= {"sasl_plain_username": "alice", "sasl_plain_password": "alice-secret"}
        producer = KafkaProducer(**settings)
        for number in range(RECORDS):
            producer.send("orders", b"%d" % number).get(30)
            time.sleep(6)
            if number == 3:
                cluster.kill("leader(orders-0)")
        producer.close()
        if mechanism != OAUTHBEARER:
            asyncio.run(produce(settings))
        consumer = KafkaConsumer(
            "orders", auto_offset_reset="earliest", consumer_timeout_ms=2_000, **settings
        )
        assert len(list(consumer)) == RECORDS + (mechanism != OAUTHBEARER)
        consumer.close()
    return lines


async def produce(settings: dict[str, Any]) -> None:
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait("orders", b"by asyncio")


@pytest.mark.parametrize("mechanism", ["PLAIN", OAUTHBEARER])
def test_sasl_clients__log_in_again_and_survive_a_leader(mechanism: str) -> None:
    lines = run(mechanism, 7)
    assert sum("SaslHandshake v" in line for line in lines) > 6


@pytest.mark.long
def test_sasl_clients__run_the_same_twice() -> None:
    first = run("SCRAM-SHA-512", 7)
    assert run("SCRAM-SHA-512", 7) == first
    assert run("SCRAM-SHA-512", 8) != first
