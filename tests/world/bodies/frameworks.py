"""Stories of what stands on aiokafka: a stream application of faust, a web service of aiohttp.

Owns: the stories.  Never: knows on which clock it runs, or asserts anything.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

LATER_S = 20.0
"""For what is under way to arrive: a rebalance, the last records."""


def stream_application(cluster: Any, records: int = 50) -> list[bytes]:
    """An agent of faust processes what its own application sends; the leader dies on the way."""
    import faust

    with tempfile.TemporaryDirectory() as directory:
        application = faust.App(
            "shop",
            broker=[f"kafka://{address}" for address in cluster.bootstrap.split(",")],
            store="memory://",
            datadir=directory,
            topic_replication_factor=3,
            web_enabled=False,
        )
        orders = application.topic("orders", value_type=bytes, value_serializer="raw")
        processed: list[bytes] = []

        @application.agent(orders)  # type: ignore[untyped-decorator]  # faust may be missing
        async def process(stream: Any) -> None:
            async for value in stream:
                processed.append(value)  # noqa: PERF401  # the stream has no end

        async def live() -> None:
            await application.start()
            killing = None
            for number in range(records):
                await orders.send(value=b"order %d" % number)
                if number == records // 2:
                    killing = asyncio.create_task(asyncio.to_thread(kill_leader, cluster))
                await asyncio.sleep(0.2)
            assert killing is not None, "started half way"
            await killing
            await asyncio.sleep(LATER_S)
            await application.stop()

        asyncio.run(live())
    return processed


def web_service(cluster: Any, records: int = 20) -> list[str]:
    """A service of aiohttp writes each POST to a topic, reads that topic in a task of its own and
    answers GET with what it has read; the leader dies between two requests."""
    from aiohttp import ClientSession, web

    read: list[str] = []

    async def post(request: web.Request) -> web.Response:
        await producers[0].send_and_wait("orders", await request.read())
        return web.Response(status=201)

    async def get(_: web.Request) -> web.Response:
        return web.json_response(read)

    producers: list[AIOKafkaProducer] = []

    async def clients(_: web.Application) -> AsyncIterator[None]:
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap,
            group_id="web",
            auto_offset_reset="earliest",
        )
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer, consumer:
            producers.append(producer)
            consuming = asyncio.create_task(_consume(consumer, read))
            yield
            consuming.cancel()

    async def live() -> list[str]:
        application = web.Application()
        application.cleanup_ctx.append(clients)
        application.add_routes([web.post("/orders", post), web.get("/orders", get)])
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        url = f"http://{host}:{port}/orders"
        async with ClientSession() as session:
            for number in range(records):
                if number == records // 2:
                    await asyncio.to_thread(kill_leader, cluster)
                async with session.post(url, data=b"order %d" % number) as response:
                    assert response.status == 201, response.status
            await asyncio.sleep(LATER_S)
            async with session.get(url) as response:
                answered: list[str] = await response.json()
        await runner.cleanup()
        return answered

    return asyncio.run(live())


async def _consume(consumer: AIOKafkaConsumer, read: list[str]) -> None:
    while True:
        record = await consumer.getone()
        read.append(record.value.decode())


def kill_leader(cluster: Any) -> None:
    cluster.kill(cluster.leader("orders", 0))
