"""The story of a failover with aiokafka, on asyncio's own loop.

Owns: the story.  Never: knows on which clock it runs, or asserts anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from tests.world.bodies.outcome import Outcome

CATCH_UP_S = 30.0
"""For a consumer to read what has been acked."""


def failover(cluster: Any, records: int = 550, pause_s: float = 0.1, kill_at: int = 150) -> Outcome:
    """As the story of the same name with kafka-python."""
    return asyncio.run(_Failover(cluster).run(records, pause_s, kill_at))


class _Failover:
    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._acked: list[bytes] = []
        self._read: list[bytes] = []
        self._failed: list[BaseException] = []
        self._longest_ack_s = 0.0

    async def run(self, records: int, pause_s: float, kill_at: int) -> Outcome:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        reading = asyncio.create_task(self._consume())
        producer = AIOKafkaProducer(
            bootstrap_servers=self._cluster.bootstrap,
            client_id="shop",
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
        )
        await producer.start()
        tasks: list[asyncio.Task[None]] = []
        for number in range(records):
            if number == kill_at:
                tasks.append(asyncio.create_task(asyncio.to_thread(self._kill_leader)))
            tasks.append(asyncio.create_task(self._send(producer, number)))
            await asyncio.sleep(pause_s)
        await asyncio.gather(*tasks)
        await producer.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                while len(self._read) < len(self._acked):
                    await asyncio.sleep(0.1)
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        took_s = loop.time() - began_s
        return Outcome(self._acked, self._read, self._failed, self._longest_ack_s, took_s)

    async def _send(self, producer: AIOKafkaProducer, number: int) -> None:
        loop = asyncio.get_running_loop()
        value, sent_s = b"order %d" % number, loop.time()
        try:
            await producer.send_and_wait("orders", value, key=b"customer %d" % (number % 7))
        except KafkaError as error:
            self._failed.append(error)
        else:
            self._acked.append(value)
            self._longest_ack_s = max(self._longest_ack_s, loop.time() - sent_s)

    async def _consume(self) -> None:
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=self._cluster.bootstrap,
            client_id="reader",
            group_id="billing",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            async for record in consumer:
                self._read.append(record.value)
        finally:
            await consumer.stop()

    def _kill_leader(self) -> None:
        self._cluster.kill(self._cluster.leader("orders", 0))
