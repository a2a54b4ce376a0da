"""The rig in virtual time for the project's own clients, and what their ledger and the logs hold.

Owns: the topology of these tests, and sums over a ledger.  Never: asserts what a test is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcluster.clients.ledger import Ledger, Outcome, Partition, SentRecord
from kcluster.config.topology.model import Topology
from kcluster.operations.controller import controller_image
from kcluster.protocol.records.records import read_records
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from tests.rig.cluster import VirtualRig


def topology(partitions: int = 1, **changed: Any) -> Topology:
    """Three brokers and a topic `orders` with replication factor 3."""
    topics = {"orders": {"partitions": partitions, "replication_factor": 3}}
    values: dict[str, Any] = {
        "brokers": 3,
        "topics": topics,
        "profile": "fast",
        "network": {"default_latency_ms": 1},
    }
    return Topology.of(**(values | changed))


def started(*, seed: int = 1, **changed: Any) -> VirtualRig:
    """A cluster that is ready for clients."""
    driver = VirtualRig(topology(**changed), seed)
    driver.open()
    driver.run_for(3_000)
    return driver


def final_values(plan: Plan, dispatcher: Dispatcher) -> dict[Partition, list[bytes]]:
    """The values in the leaders' logs of `orders`, in order."""
    values: dict[Partition, list[bytes]] = {}
    for registration in controller_image(dispatcher).topics["orders"].partitions:
        log = plan.disks[registration.leader].logs[registration.topic_id, registration.partition]
        in_partition = values["orders", registration.partition] = []
        for batch in log.batches_from(log.log_start_offset):
            in_partition += [record.value or b"" for record in read_records(batch)]
    return values


def outcomes(ledger: Ledger) -> Mapping[Outcome, int]:
    """The number of sends by outcome, without zeros."""
    ended = [send.outcome for send in ledger.sends]
    return {outcome: ended.count(outcome) for outcome in Outcome if outcome in ended}


def values(sends: list[SentRecord]) -> list[bytes]:
    return [send.value for send in sends]
