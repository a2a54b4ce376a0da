"""Ordinary programs have good manners while the leader of their partition dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from kcluster.checks.manners_words import manner_lines
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.aiokafka_clients import run_async

RECORDS = 60
Kill = Callable[[int], None]


def kafka_python(servers: str, kill: Kill) -> int:
    producer = KafkaProducer(bootstrap_servers=servers.split(","), acks="all")
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=servers.split(","), group_id="readers",
        auto_offset_reset="earliest", consumer_timeout_ms=5_000,
    )  # fmt: skip
    with producer, consumer:
        for number in range(RECORDS):
            kill(number)
            producer.send("orders", b"%d" % number, partition=0).get(timeout=30)
        return sum(1 for _, _ in zip(range(RECORDS), consumer, strict=False))


def confluent_kafka(servers: str, kill: Kill) -> int:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        kill(number)
        producer.produce("orders", b"%d" % number, partition=0)
        producer.flush(30)
    settings = {"group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.subscribe(["orders"])
    try:
        return len(consumer.consume(RECORDS, timeout=20))
    finally:
        consumer.close()


def aiokafka(servers: str, kill: Kill) -> int:
    return run_async(_aiokafka(servers, kill))


async def _aiokafka(servers: str, kill: Kill) -> int:
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
    await producer.start()
    try:
        for number in range(RECORDS):
            await asyncio.to_thread(kill, number)
            await producer.send_and_wait("orders", b"%d" % number, partition=0)
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=servers, group_id="readers", auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        return len([await asyncio.wait_for(consumer.getone(), 20) for _ in range(RECORDS)])
    finally:
        await asyncio.wait_for(consumer.stop(), 20)


@pytest.mark.parametrize("program", [kafka_python, confluent_kafka, aiokafka])
def test_manners__a_program_whose_leader_dies(
    own: Cluster, program: Callable[[str, Kill], int]
) -> None:
    def kill(number: int) -> None:
        if number == RECORDS // 3:
            own.kill("leader(orders-0)")

    assert program(own.bootstrap, kill) == RECORDS
    assert list(manner_lines(own.manners())) == []
