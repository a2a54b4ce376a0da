"""What virtual time showed in client libraries, each to be seen on either clock:

    python -m tests.world.bodies.findings silent_coordinator --clock virtual
    python -m tests.world.bodies.findings silent_coordinator --clock live

Owns: these stories and what is counted in them (docs/explanation/findings-virtual-clients.md has
the figures and the reasons).  Never: changes how a library behaves; it counts calls.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.compat.on_both_clocks.counting import counts_requests
from tests.world.bodies import python_clients
from tests.world.rig import in_virtual_time, live

Figures = dict[str, float]

SEED: Final = 3
"""With it the group's coordinator is the leader of the first partition."""
WATCHED_S: Final = 8.0
WATCHED_FLUSH_S: Final = 60.0


def coordinator_storm(cluster: Any) -> Figures:
    """A failover of the broker that coordinates the group: how often is the coordinator asked
    for?"""
    requests = counts_requests(cluster)
    outcome = python_clients.failover(cluster, records=130, kill_at=20)
    return {"FindCoordinator requests": requests["FIND_COORDINATOR"], "lost": len(outcome.lost)}


def backoff_units(cluster: Any) -> Figures:
    """One record waits for a new leader: how often does the sender's thread look whether it can
    connect to the old one?"""
    from kafka.producer.sender import Sender

    sending = python_clients.Sending(cluster)
    sending.producer.partitions_for("orders")
    dying = threading.Thread(target=_kill_leader, args=(cluster,))
    with _counts_calls(Sender, "run_once") as calls:
        dying.start()
        time.sleep(0.5)
        began_s = time.monotonic()
        sending.producer.send("orders", b"late", partition=0).get(timeout=60)
        took_s = time.monotonic() - began_s
    dying.join()
    sending.close()
    return {"passes of the sender": calls["run_once"], "waited s": round(took_s, 1)}


def silent_coordinator(cluster: Any) -> Figures:
    """The coordinator's machine is there and says nothing: how often does one poll of 500 ms look
    for records?"""
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        "orders", bootstrap_servers=cluster.bootstrap.split(","), group_id="billing"
    )
    _poll_for(consumer, WATCHED_S)
    coordinator = int(str(consumer._coordinator.coordinator_id).rpartition("-")[2])
    pausing = threading.Thread(target=cluster.pause, args=(coordinator,))
    with _counts_calls(KafkaConsumer, "_poll_once") as healthy:
        polls = _poll_for(consumer, WATCHED_S)
    pausing.start()
    with _counts_calls(KafkaConsumer, "_poll_once") as silent:
        silent_polls = _poll_for(consumer, WATCHED_S)
    pausing.join()
    cluster.resume(coordinator)
    consumer.close()
    return {
        "passes a poll, healthy": round(healthy["_poll_once"] / polls, 1),
        "passes a poll, silent": round(silent["_poll_once"] / silent_polls, 1),
        "most in one poll, silent": silent["most"],
    }


def reconnects(cluster: Any) -> Figures:
    """A producer and a consumer of aiokafka while the leader is dead: how often do they try to
    connect?"""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.conn import AIOKafkaConnection

    async def run() -> Figures:
        consumer = AIOKafkaConsumer("orders", bootstrap_servers=cluster.bootstrap)
        await consumer.start()
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            await producer.send_and_wait("orders", b"first", partition=0)
            dying = asyncio.create_task(asyncio.to_thread(_kill_leader, cluster))
            with _counts_calls(AIOKafkaConnection, "connect") as calls:
                await asyncio.sleep(0.3)
                late = await producer.send("orders", b"late", partition=0)
                until_s = time.monotonic() + WATCHED_S
                while time.monotonic() < until_s:
                    await consumer.getmany(timeout_ms=500)
            await asyncio.gather(late, dying)
        with contextlib.suppress(asyncio.CancelledError):  # the next finding
            await consumer.stop()
        return {"attempts to connect": calls["connect"], "in s": WATCHED_S}

    return asyncio.run(run())


def stop_in_backoff(cluster: Any, consumers: int = 10) -> Figures:
    """The leader is dead, and consumers of aiokafka are stopped at some moment: how often does
    stop() raise CancelledError, with its connections left open?"""
    from aiokafka import AIOKafkaConsumer

    async def started() -> Any:
        consumer = AIOKafkaConsumer("orders", bootstrap_servers=cluster.bootstrap)
        await consumer.start()
        await consumer.getmany(timeout_ms=500)
        return consumer

    async def raises(consumer: Any) -> bool:
        await asyncio.sleep(random.uniform(1, 5))
        try:
            await consumer.stop()
        except asyncio.CancelledError:
            return True
        return False

    async def run() -> Figures:
        running = await asyncio.gather(*(started() for _ in range(consumers)))
        dying = asyncio.create_task(asyncio.to_thread(_kill_leader, cluster))
        outcomes = await asyncio.gather(*map(raises, running))
        await dying
        return {"consumers stopped": consumers, "stop() raised": sum(outcomes)}

    return asyncio.run(run())


def stop_without_coordinator(cluster: Any) -> Figures:
    """A consumer of aiokafka in a group is stopped while its coordinator is dead, which comes back
    soon afterwards: how long does stop() take?"""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> Figures:
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            await producer.send_and_wait("orders", b"first")
        await consumer.getone()
        coordinator = consumer._coordinator.coordinator_id
        dying = asyncio.create_task(asyncio.to_thread(cluster.kill, coordinator))
        while consumer._coordinator.coordinator_id is not None:
            await consumer.getmany(timeout_ms=100)
        began_s = time.monotonic()
        stopping = asyncio.create_task(consumer.stop())
        await dying
        await asyncio.to_thread(cluster.start, coordinator)
        back_s = time.monotonic() - began_s
        await asyncio.wait([stopping], timeout=60)
        took_s, is_done = time.monotonic() - began_s, stopping.done()
        if not is_done:
            stopping.cancel()
        await asyncio.wait([stopping])
        return {"coordinator back after s": round(back_s, 1), "waited s": round(took_s, 1),
                "stop() returned": is_done}  # fmt: skip

    return asyncio.run(run())


def lookups_at_an_old_leader(cluster: Any) -> Figures:
    """A consumer of aiokafka joins its group while the leader is moved: how often does it ask the
    old leader where the log begins, and how often for metadata?"""
    from aiokafka import AIOKafkaConsumer

    async def run() -> Figures:
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
        )
        joining = asyncio.create_task(consumer.start())
        await asyncio.sleep(1)  # the group's first generation begins after 3 s
        old = cluster.leader("orders", 0)
        await asyncio.to_thread(cluster.move, "orders-0", to=1 if old != 1 else 2)
        requests = counts_requests(cluster)
        await joining
        until_s = time.monotonic() + WATCHED_S
        while time.monotonic() < until_s:
            await consumer.getmany(timeout_ms=500)
        await consumer.stop()
        return {
            "offset lookups": requests["LIST_OFFSETS"],
            "metadata asked for": requests["METADATA"],
            "in s": WATCHED_S,
        }

    return asyncio.run(run())


def expired_in_flight(cluster: Any) -> Figures:
    """An idempotent producer while the leader is cut off for longer than delivery.timeout.ms: what
    becomes of its records once all is well again?"""
    from kafka import KafkaProducer
    from kafka.errors import KafkaTimeoutError

    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","),
        delivery_timeout_ms=6_000,
        request_timeout_ms=3_000,
    )
    producer.send("orders", b"first", partition=0).get(timeout=30)
    cluster.isolate("leader(orders-0)")
    futures = []
    for number in range(40):
        futures.append(producer.send("orders", b"order %d" % number, partition=0))
        time.sleep(0.5)
    time.sleep(5)
    cluster.heal()
    began_s = time.monotonic()
    with contextlib.suppress(KafkaTimeoutError):
        producer.flush(timeout=WATCHED_FLUSH_S)
    waited_s = time.monotonic() - began_s
    with contextlib.suppress(KafkaTimeoutError):
        producer.close(timeout=1)
    producer._closed = True  # else __del__ waits once more
    return {
        "waited s": round(waited_s, 1),
        "acked": sum(future.succeeded() for future in futures),
        "failed": sum(future.failed() for future in futures),
        "never done": sum(not future.is_done for future in futures),
    }


def offsets_never_sent(cluster: Any) -> Figures:
    """The coordinator of a group dies, and comes back.  A transaction of kafka-python adds the
    group's offsets meanwhile: are they ever sent, and when does the call return?"""
    from kafka import KafkaProducer, OffsetAndMetadata, TopicPartition
    from kafka.consumer.group import ConsumerGroupMetadata

    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), transactional_id="biller"
    )
    producer.init_transactions()
    group = ConsumerGroupMetadata("billing")

    def add_offsets(offset: int) -> None:
        position = OffsetAndMetadata(offset, "", -1)
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition("orders", 0): position}, group)
        producer.commit_transaction()

    add_offsets(1)
    requests = counts_requests(cluster)
    (dead,) = cluster.kill("coordinator(billing)")
    adding = threading.Thread(target=add_offsets, args=(2,), daemon=True)
    began_s = time.monotonic()
    adding.start()
    time.sleep(2)
    cluster.start(dead)
    adding.join(WATCHED_FLUSH_S)
    return {
        "waited s": round(time.monotonic() - began_s, 1),
        "offsets sent": requests["TXN_OFFSET_COMMIT"],
        "asked for the coordinator": requests["FIND_COORDINATOR"],
        "returned": not adding.is_alive(),
    }


FINDINGS: Final[dict[str, Callable[[Any], Figures]]] = {
    finding.__name__: finding
    for finding in (
        coordinator_storm,
        backoff_units,
        silent_coordinator,
        reconnects,
        stop_in_backoff,
        stop_without_coordinator,
        lookups_at_an_old_leader,
        expired_in_flight,
        offsets_never_sent,
    )
}


@contextlib.contextmanager
def _counts_calls(cls: type, name: str) -> Iterator[Counter[str]]:
    """Calls of a method; `most`: between two looks of `_poll_for`."""
    counted: Counter[str] = Counter()
    method = getattr(cls, name)

    def counting(*arguments: Any, **keywords: Any) -> Any:
        counted[name] += 1
        return method(*arguments, **keywords)

    setattr(cls, name, counting)
    _COUNTERS.append((counted, name))
    try:
        yield counted
    finally:
        _COUNTERS.pop()
        setattr(cls, name, method)


_COUNTERS: list[tuple[Counter[str], str]] = []


def _poll_for(consumer: Any, duration_s: float) -> int:
    """Poll; returns how often."""
    polls, until_s = 0, time.monotonic() + duration_s
    while time.monotonic() < until_s:
        before = [counted[name] for counted, name in _COUNTERS]
        consumer.poll(timeout_ms=500)
        polls += 1
        for (counted, name), had in zip(_COUNTERS, before, strict=True):
            counted["most"] = max(counted["most"], counted[name] - had)
    return polls


def _kill_leader(cluster: Any) -> None:
    cluster.kill(cluster.leader("orders", 0))


def main() -> None:
    """One finding on one clock."""
    parser = argparse.ArgumentParser(description="What client libraries do, counted.")
    parser.add_argument("finding", choices=FINDINGS)
    parser.add_argument("--clock", choices=("live", "virtual"), default="virtual")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    began_s, cpu_s = time.perf_counter(), time.process_time()
    make = live if options.clock == "live" else in_virtual_time
    with make(seed=options.seed, profile="kafka") as cluster:
        figures = FINDINGS[options.finding](cluster)
    figures["wall s"] = round(time.perf_counter() - began_s, 1)
    figures["CPU s"] = round(time.process_time() - cpu_s, 1)
    for name, figure in figures.items():
        print(f"{name:28} {figure:g}")


if __name__ == "__main__":
    main()
