"""A load and a reader of aiokafka, with the interface of those in real_clients.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.foreign_clients.real_clients import LIMIT_S, Load, Read

T = TypeVar("T")

QUICK = {"retry_backoff_ms": 10, "metadata_max_age_ms": 200}


class AiokafkaLoad(Load):
    """Of an AIOKafkaProducer, on a loop of its own.  The settings have the address."""

    def _run(self) -> None:
        asyncio.run(self._send_all())

    async def _send_all(self) -> None:
        producer = AIOKafkaProducer(**QUICK, linger_ms=1, **self._settings)
        await producer.start()
        try:
            while not self._stopping.is_set():
                if self.sent - len(self.acked) - len(self.failed) < self.UNANSWERED_MAX:
                    for _ in range(self.BURST):
                        value, partition = b"%d" % self.sent, self.sent % self.partitions
                        future = await producer.send(self.topic, value, partition=partition)
                        future.add_done_callback(self._answered(self.sent))
                        self.sent += 1
                await asyncio.sleep(0.002)
        finally:
            await asyncio.wait_for(producer.stop(), LIMIT_S)

    def _answered(self, number: int) -> Callable[[asyncio.Future[Any]], None]:
        def done(future: asyncio.Future[Any]) -> None:
            error = future.exception()
            if error is None:
                self._on_acked(number, future.result().partition, future.result().offset)
            else:
                self._on_failed(number, type(error).__name__)

        return done


def aiokafka_read(topic: str, **settings: Any) -> list[Read]:
    """All records of a topic's first partition, up to where it ends now."""
    return run_async(_read(topic, settings))


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own: the browser of other tests leaves a running loop in
    the main thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, main).result()


async def _read(topic: str, settings: dict[str, Any]) -> list[Read]:
    consumer = AIOKafkaConsumer(**QUICK, auto_offset_reset="earliest", **settings)
    await consumer.start()
    taken: list[Read] = []
    try:
        part = TopicPartition(topic, 0)
        consumer.assign([part])
        end = (await consumer.end_offsets([part]))[part]
        poll = partial(consumer.getmany, part, timeout_ms=300)
        async with asyncio.timeout(LIMIT_S):
            while await consumer.position(part) < end:
                for records in (await poll()).values():
                    taken += [Read(0, r.offset, r.key, r.value, (), r.timestamp) for r in records]
    finally:
        await consumer.stop()
    return taken
