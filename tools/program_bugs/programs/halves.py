"""A transfer is marked as done between its two halves: the second one is never written.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from shop import ORDERS, read, twins


async def transfers(cluster: Any, done: list[int], has_bug: bool) -> None:
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        while len(done) < ORDERS:
            number = len(done)
            await producer.send_and_wait("debits", b"%d" % number)
            if has_bug:
                done.append(number)
            await producer.send_and_wait("credits", b"%d" % number)
            if not has_bug:
                done.append(number)
            await asyncio.sleep(0.3)


@pytest.mark.kafka_cluster(clock="virtual", topics={"debits": {}, "credits": {}})
@twins
def test_every_debit_has_a_credit(kafka_cluster: Any, has_bug: bool) -> None:
    done: list[int] = []
    kafka_cluster.run(transfers, kafka_cluster, done, has_bug, restart_after="1s")
    debits = set(read(kafka_cluster, "debits", lambda found: len(set(found)) == ORDERS))
    credits = set(read(kafka_cluster, "credits", lambda found: set(found) == debits))
    assert debits == credits, "a debit has no credit"
