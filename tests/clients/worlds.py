"""Clusters in virtual time with the project's own clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcluster.clients.ledger import Outcome, Partition, Send
from kcluster.config.topology.model import Topology
from kcluster.drivers.virtual import VirtualDriver
from kcluster.evidence.history import Ledger
from kcluster.operations.status import controller_image
from kcluster.protocol.records.records import read_records
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher


def topology(partitions: int = 1, **changed: Any) -> Topology:
    """Three brokers, `orders` on all of them."""
    topics = {"orders": {"partitions": partitions, "replication_factor": 3}}
    values: dict[str, Any] = {
        "brokers": 3, "topics": topics, "profile": "fast", "network": {"default_latency_ms": 1},
    }  # fmt: skip
    return Topology.of(**(values | changed))


def started(*, seed: int = 1, **changed: Any) -> VirtualDriver:
    """A cluster that serves."""
    driver = VirtualDriver(topology(**changed), seed)
    driver.open()
    driver.run_for(3_000)
    return driver


def leader(driver: VirtualDriver, partition: int = 0) -> int:
    return driver.verbs.leader("orders", partition)


def final_values(plan: Plan, dispatcher: Dispatcher) -> dict[Partition, list[bytes]]:
    """What the leaders' logs of `orders` hold, in order."""
    values: dict[Partition, list[bytes]] = {}
    for registration in controller_image(dispatcher).topics["orders"].partitions:
        log = plan.disks[registration.leader].logs[registration.topic_id, registration.partition]
        found = values["orders", registration.partition] = []
        for batch in log.batches_from(log.log_start_offset):
            found += [record.value or b"" for record in read_records(batch)]
    return values


def in_the_log(driver: VirtualDriver, partition: int = 0) -> list[bytes]:
    return final_values(driver.plan, driver.dispatcher)["orders", partition]


def outcomes(ledger: Ledger) -> Mapping[Outcome, int]:
    """How many sends ended as what; none that are none."""
    found = [send.outcome for send in ledger.sends]
    return {outcome: found.count(outcome) for outcome in Outcome if outcome in found}


def values(sends: list[Send]) -> list[bytes]:
    return [send.value for send in sends]
