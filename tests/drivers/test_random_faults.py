"""Clusters recover from random faults once the faults are over."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from kcluster.clients.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.deaths import DeathKind
from kcluster.handle.virtual import VirtualDriver
from kcluster.operations.errors import ClusterError
from kcluster.partition.log.log import Log
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import Batch
from tests.rig.requests import batch, produce_request

SEEDS = range(1, 13)
PARTITIONS = 3
ACTIONS = 25
WAYS = tuple(DeathKind)


class Sender:
    """Sends a record to some broker for some partition every few ms, until it is stopped."""

    def start(self, wire: Wire, now_ms: int) -> None:
        self.wire = wire
        self.deadline_ms: int | None = now_ms

    def on_tick(self, now_ms: int) -> None:
        rng = self.wire.rng
        records = batch(rng.randbytes(20), timestamp_ms=now_ms)
        body = produce_request("orders", rng.randrange(PARTITIONS), records, timeout_ms=100)
        broker_id = self.wire.broker_ids[rng.randrange(3)]
        self.wire.send(broker_id, ApiKey.PRODUCE, 11, body)
        self.deadline_ms = now_ms + 1 + rng.randrange(9)

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        pass

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        pass


def random_action(driver: VirtualDriver, rng: Random) -> None:
    broker_id = rng.choice((1, 2, 3))
    partition = rng.randrange(PARTITIONS)
    match rng.choice(("kill", "kill", "start", "start", "pause", "resume", "cut", "move", "elect")):
        case "kill":
            driver.kill(broker_id, rng.choice(WAYS))
        case "start":
            driver.start(broker_id)
        case "pause":
            driver.pause(broker_id)
        case "resume":
            driver.resume(broker_id)
        case "cut":
            other = rng.choice([node for node in (1, 2, 3, 3000) if node != broker_id])
            driver.cut(broker_id, other, one_way=rng.random() < 0.5)
        case "move":
            driver.move("orders", partition, broker_id)
        case "elect":
            driver.elect("orders", partition, unclean=rng.random() < 0.2)


def repair(driver: VirtualDriver) -> None:
    """Start and connect everything; wait for brokers that are shutting down."""
    driver.heal()
    for broker in driver.status().brokers:
        if broker.state == "paused":
            driver.resume(broker.id)
    driver.run_for(1_000)
    for broker in driver.status().brokers:
        if broker.state == "down":
            driver.start(broker.id)


@pytest.mark.parametrize("seed", SEEDS)
def test_faults__replicas_agree_after_random_faults_are_healed(seed: int) -> None:
    rng = Random(f"faults {seed}")
    topology = Topology.of(
        brokers=3,
        topics={"orders": {"partitions": PARTITIONS, "replication_factor": 3}},
        profile="fast",
        network={"default_latency_ms": rng.choice((0, 0, 1, 3))},
    )
    driver = VirtualDriver(topology, seed)
    driver.open()
    senders = [Sender(), Sender()]
    for sender in senders:
        driver.add_client(sender)
    for _ in range(ACTIONS):
        driver.run_for(rng.choice((1, 10, 50, 200, 400)))
        try:
            random_action(driver, rng)
        except ClusterError:
            continue  # Not possible just now: the broker is down already, has no leader, …
        if rng.random() < 0.1:
            driver.heal()
    repair(driver)
    for sender in senders:
        sender.deadline_ms = None

    def is_whole() -> bool:
        return all(
            part.leader and len(part.isr) == 3 and set(part.lag.values()) == {0}
            for part in driver.status().partitions
        )

    assert driver.run_until_condition(is_whole, 10_000), driver.status().partitions
    for key, log in driver.plan.disks[1].logs.items():
        contents = [bytes(batch.buffer) for batch in all_batches(log)]
        for other in (2, 3):
            batches = all_batches(driver.plan.disks[other].logs[key])
            assert [bytes(batch.buffer) for batch in batches] == contents


def all_batches(log: Log) -> Sequence[Batch]:
    return log.read(log.log_start_offset, 1 << 40, log.log_end_offset, True)
