"""A story of kstreams, streams over aiokafka.

Owns: the story.  Never: knows on which clock it runs, or asserts anything; postpones annotations:
kstreams reads them.
"""

import asyncio
from typing import Any

import kstreams
from kstreams.backends import Kafka

from tests.world.bodies.frameworks import LATER_S, kill_leader


def stream_engine(cluster: Any, records: int = 30) -> tuple[list[bytes], list[bytes]]:
    """An engine of kstreams: one stream reads orders and yields invoices, another reads these; the
    leader dies on the way.  What each of the two has read."""
    servers = cluster.bootstrap.split(",")
    engine = kstreams.create_engine(title="shop", backend=Kafka(bootstrap_servers=servers))
    orders: list[bytes] = []
    invoices: list[bytes] = []
    settings: dict[str, Any] = {"auto_offset_reset": "earliest"}

    @engine.stream("orders", group_id="billing", **settings)
    async def bill(record: kstreams.ConsumerRecord[bytes, bytes], send: kstreams.Send) -> None:
        assert record.value is not None
        orders.append(record.value)
        await send("invoices", value=record.value.replace(b"order", b"invoice"))

    @engine.stream("invoices", group_id="post", **settings)
    async def post(record: kstreams.ConsumerRecord[bytes, bytes]) -> None:
        assert record.value is not None
        invoices.append(record.value)

    async def live() -> None:
        await engine.start()
        for number in range(records):
            if number == records // 2:
                await asyncio.to_thread(kill_leader, cluster)
            await engine.send("orders", value=b"order %d" % number)
        await asyncio.sleep(LATER_S)
        await engine.stop()

    asyncio.run(live())
    return orders, invoices
