"""Same seed, same trace: twice in this process, and in one with other hash values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kcluster
from kcluster.clients.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.handle.virtual import VirtualDriver
from kcluster.protocol.apis import ApiKey
from tests.rig.requests import batch, produce_request

ROOT = Path(__file__).parents[2]
CODE_PATH = os.pathsep.join((str(Path(kcluster.__file__).parents[1]), str(ROOT)))
"""The build under test, and these tests."""


class Sender:
    """Sends a record to a random broker every few ms, whether it leads or not."""

    def start(self, wire: Wire, now_ms: int) -> None:
        self.wire = wire
        self.deadline_ms: int | None = now_ms

    def on_tick(self, now_ms: int) -> None:
        rng = self.wire.rng
        broker_id = self.wire.broker_ids[rng.randrange(len(self.wire.broker_ids))]
        records = batch(rng.randbytes(20), timestamp_ms=now_ms)
        body = produce_request("orders", rng.randrange(3), records, timeout_ms=100)
        self.wire.send(broker_id, ApiKey.PRODUCE, 11, body)
        self.deadline_ms = now_ms + 1 + rng.randrange(9)

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        pass

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        pass


def run(seed: int) -> list[Any]:
    """Run a cluster with faults; returns what must be the same each time."""
    topology = Topology.of(
        brokers=3,
        topics={"orders": {"partitions": 3, "replication_factor": 3}},
        profile="fast",
        network={"default_latency_ms": 1},
    )
    driver = VirtualDriver(topology, seed, trace_deliveries=True)
    driver.open()
    for _ in range(2):
        driver.add_client(Sender())
    driver.at(300, lambda: driver.kill(1))
    driver.at(600, lambda: driver.start(1))
    driver.at(800, lambda: driver.cut(2, 3))
    driver.at(1300, driver.heal)
    driver.at(1500, lambda: driver.kill(3, "power"))
    driver.at(1700, lambda: driver.start(3))
    driver.run_until(2500)
    ends = [[part.log_end_offset, list(part.isr)] for part in driver.status().partitions]
    return [len(driver.trace), driver.trace_hash(), ends, list(driver.draw())]


def test_virtual__the_same_seed_gives_the_same_trace_in_any_process() -> None:
    here = run(7)
    assert here[0] > 1000
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": CODE_PATH}
        done = subprocess.run(
            [sys.executable, __file__], env=environment, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == here


def test_virtual__another_seed_gives_another_trace() -> None:
    assert run(8)[1] != run(9)[1]


if __name__ == "__main__":
    print(json.dumps(run(7)))
