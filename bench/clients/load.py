"""Produce, consume and single acks by a librdkafka client: python -m bench.clients.load BOOTSTRAP.

Owns: this load.  Never: distinguishes systems.  Prints the figures by their keys.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.clients.topics import QUIET, make_topic

FLUSH_S: Final = 120.0
CONSUME_S: Final = 60.0
WARM_UP_ACKS: Final = 200
RECORD_BYTES: Final = 1_000

Settings = dict[str, str | int]
"""How a librdkafka client connects."""


def produce(settings: Settings, topic: str, partitions: int, count: int, size_bytes: int) -> float:
    """Append `count` records, acks=all, in batches of up to 1 MB; seconds until all are acked."""
    producer = Producer(
        {
            **settings,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    failed: list[Any] = []
    payload = os.urandom(size_bytes)

    def on_delivery(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    began_s = time.perf_counter()
    for at in range(count):
        while True:
            try:
                producer.produce(topic, payload, partition=at % partitions, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.05)
        if not at & 1023:
            producer.poll(0)
    left = producer.flush(FLUSH_S)
    took_s = time.perf_counter() - began_s
    if failed or left:
        raise SystemExit(f"{len(failed)} records failed, {left} unacked: {failed[:1]}")
    return took_s


def consume(settings: Settings, topic: str, partitions: int, count: int) -> float:
    """Read all from the start; MB/s from the first records on."""
    consumer = Consumer(
        {
            **settings,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.max.bytes": 50 << 20,
            "max.partition.fetch.bytes": 4 << 20,
            "queued.max.messages.kbytes": 200_000,
            # A full queue stops fetching for a second by default: that would time the client, and
            # the faster the cluster is, the worse.
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": 50,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    got = size_bytes = 0
    until_s = time.perf_counter() + CONSUME_S
    began_s = None
    while got < count and time.perf_counter() < until_s:
        messages = consumer.consume(10_000, 0.5)
        if messages and began_s is None:
            began_s = time.perf_counter()
        got += len(messages)
        size_bytes += sum(map(len, messages))
    ended_s = time.perf_counter()
    consumer.close()
    if got < count or began_s is None:
        raise SystemExit(f"read {got} of {count} records within {CONSUME_S:g} s")
    return size_bytes / (ended_s - began_s) / 1e6


def acks(settings: Settings, topic: str, partitions: int, count: int) -> tuple[float, float]:
    """One record at a time, acks=all; p50 and p99 of the time to its ack, ms."""
    producer = Producer({**settings, "acks": "all", "linger.ms": 0})
    took_ms = []
    for at in range(WARM_UP_ACKS + count):
        began_s = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=at % partitions)
        producer.flush(10)
        took_ms.append((time.perf_counter() - began_s) * 1e3)
    took_ms = sorted(took_ms[WARM_UP_ACKS:])
    return took_ms[count // 2], took_ms[count * 99 // 100]


def main() -> None:
    parser = argparse.ArgumentParser(description="librdkafka load")
    parser.add_argument("bootstrap")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--acks", type=int, default=2_000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--figures", default="produce,consume,ack")
    options = parser.parse_args()
    wanted = options.figures.split(",")
    topic, leaders = make_topic(options.bootstrap, options.partitions, options.replicas)
    partitions = len(leaders)
    found: dict[str, float] = {}
    count = options.mb * 1000
    settings: Settings = {"bootstrap.servers": options.bootstrap, **QUIET}
    where = (settings, topic, partitions)
    if "produce" in wanted or "consume" in wanted:
        found["produce_1k"] = options.mb / produce(*where, count, RECORD_BYTES)
        found["produce_100b"] = count / produce(*where, count, 100) / 1e3
    if "consume" in wanted:
        found["consume"] = consume(*where, 2 * count)
    if "ack" in wanted:
        found["ack_p50_ms"], found["ack_p99_ms"] = acks(*where, options.acks)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
