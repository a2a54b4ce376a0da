"""Users' own tests with aiokafka on asyncio's own loop, in virtual time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("aiokafka")

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.world.bodies import asyncio_clients
from tests.world.rig import empty_world, in_virtual_time

pytestmark = pytest.mark.pure_python


def test_a_failover_at_kafkas_own_time_constants_loses_nothing() -> None:
    with in_virtual_time() as cluster:
        outcome = asyncio_clients.failover(cluster, records=130, kill_at=20)
    assert (len(outcome.acked), outcome.failed, outcome.lost) == (130, [], [])
    assert 7 < outcome.longest_ack_s < 10, "the session timeout of a broker is 9 s"


def test_two_loops_in_two_threads_pass_a_record_through_two_topics() -> None:
    topics = {"orders": {"partitions": 1}, "payments": {"partitions": 1}}

    async def first(bootstrap: str) -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait("orders", b"one")

    async def second(bootstrap: str) -> None:
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        )
        async with consumer, AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            record: Any = await asyncio.wait_for(consumer.getone(), 10)
            await producer.send_and_wait("payments", record.value + b" paid")

    async def last(bootstrap: str) -> Any:
        consumer = AIOKafkaConsumer(
            "payments", bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        )
        async with consumer:
            return (await asyncio.wait_for(consumer.getone(), 10)).value

    with in_virtual_time(topics) as cluster, ThreadPoolExecutor(2) as pool:
        running = [
            pool.submit(asyncio.run, program(cluster.bootstrap)) for program in (second, first)
        ]
        assert asyncio.run(last(cluster.bootstrap)) == b"one paid"
        assert [program.result() for program in running] == [None, None]


def test_a_busy_loop_of_asyncio_pays_nothing_for_looking_at_its_sockets() -> None:
    async def thousand_messages() -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for _ in range(1000):
            await asyncio.sleep(0.001)
            await asyncio.gather(*(asyncio.sleep(0) for _ in range(3)))
        return loop.time() - began_s

    with empty_world():
        assert 1.0 <= asyncio.run(thousand_messages()) < 1.2
