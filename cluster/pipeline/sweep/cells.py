"""A cell and a seed as a scenario: cluster, load, and what fails when.

Owns: the template, the draw of failures.  Never: runs it (runs.py), has a clock or a global random.
Kafka: no counterpart.

What fails when depends on the seed and on nothing else but the columns that say how often: cells
that differ in durability settings meet the same failures, so they can be compared seed by seed.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import yaml

from cluster.config.tree import from_python
from cluster.pipeline.sweep.grid import NONE, Cell, Faults
from cluster.scenario.loader import read_scenario
from cluster.scenario.model import Scenario

TOPIC: Final = "orders"
PRODUCER: Final = "shop"
CONSUMER: Final = "reader"


def scenario_of(cell: Cell, seed: int, name: str = "sweep") -> Scenario:
    """The run of a cell with a seed."""
    return read_scenario(from_python(values_of(cell, seed, name)), f"{name}.yaml", {}, [])


def text_of(cell: Cell, seed: int, name: str = "sweep", story: str = "") -> str:
    """The same as a scenario file: `kcluster scenario run` plays it again, event by event."""
    values = values_of(cell, seed, name)
    told = {"name": name, "story": story, "seed": seed} if story else {"name": name, "seed": seed}
    return str(yaml.safe_dump({**told, **values}, sort_keys=False, width=100))


def values_of(cell: Cell, seed: int, name: str) -> dict[str, Any]:
    """The scenario as plain values, by the keys of scenario files."""
    producer: dict[str, Any] = {
        "topic": TOPIC, "name": PRODUCER, "rate": str(cell.rate_per_s),
        "size": cell.size_bytes, "acks": cell.acks,
    }  # fmt: skip
    if cell.idempotent != NONE:
        producer["idempotent"] = cell.idempotent
    workload: dict[str, Any] = {"producers": [producer]}
    if cell.consumers:
        # Not in a group: 50 partitions of __consumer_offsets would be most of a run's work.
        partitions = [f"{TOPIC}-{number}" for number in range(cell.partitions)]
        reader = {"partitions": partitions, "name": CONSUMER, "members": cell.consumers}
        workload["consumers"] = [reader]
    return {
        "name": name, "duration": f"{cell.duration_ms}ms", "topology": _topology(cell),
        "workload": workload, "steps": _steps(cell, seed),
    }  # fmt: skip


def _topology(cell: Cell) -> dict[str, Any]:
    config = {
        "min.insync.replicas": str(cell.min_insync_replicas),
        "unclean.leader.election.enable": "true" if cell.unclean_election else "false",
    }
    if cell.flush_messages != NONE:
        config["flush.messages"] = str(cell.flush_messages)
    if cell.flush_interval_ms != NONE:
        config["flush.ms"] = str(cell.flush_interval_ms)
    brokers: Any = cell.brokers
    if cell.racks:
        numbers = range(1, cell.brokers + 1)
        brokers = [{"id": at, "rack": f"rack{(at - 1) % cell.racks + 1}"} for at in numbers]
    topic = {
        "partitions": cell.partitions, "replication_factor": cell.replication_factor,
        "config": config,
    }  # fmt: skip
    return {
        "brokers": brokers,
        "config": {"replica.lag.time.max.ms": str(cell.replica_lag_ms)},
        "topics": {TOPIC: topic},
    }


def _steps(cell: Cell, seed: int) -> list[dict[str, Any]]:
    if isinstance(cell.faults, Faults):
        at = f"{cell.first_failure_ms}ms"
        return [{"at": at, "faults": json.loads(cell.faults.profile)}]
    steps = []
    for at_ms, broker, repair_ms in failures_of(cell, seed):
        step: dict[str, Any] = {"at": f"{at_ms}ms"}
        if cell.failure == "pause":
            step["pause"] = str(broker)
        else:
            step["kill"] = {"brokers": str(broker), "how": cell.failure}
        if repair_ms is not None:
            step["for"] = f"{repair_ms}ms"
        steps.append(step)
    return steps


def failures_of(cell: Cell, seed: int) -> list[tuple[int, int, int | None]]:
    """(at_ms, broker, repaired after ms or None), by time: a broker that is away cannot fail."""
    if isinstance(cell.mtbf_ms, int):
        return sorted(
            failure
            for broker in range(1, cell.brokers + 1)
            for failure in _of_broker(cell, cell.mtbf_ms, broker, Random(f"{seed}:{broker}"))
        )
    rng = Random(f"{seed}")
    span_ms = max(0, cell.duration_ms - cell.first_failure_ms)
    times = sorted(
        cell.first_failure_ms + int(rng.random() * span_ms) for _ in range(cell.failures)
    )
    away_until: dict[int, float] = {}
    found = []
    for at_ms in times:
        shuffled = sorted(range(1, cell.brokers + 1), key=lambda _: rng.random())
        repair_ms = _repair(cell, rng)
        up = [broker for broker in shuffled if away_until.get(broker, -1) < at_ms]
        if up:
            away_until[up[0]] = float("inf") if repair_ms is None else at_ms + repair_ms
            found.append((at_ms, up[0], repair_ms))
    return found


def _of_broker(
    cell: Cell, mtbf_ms: int, broker: int, rng: Random
) -> list[tuple[int, int, int | None]]:
    found: list[tuple[int, int, int | None]] = []
    at_ms = cell.first_failure_ms + rng.expovariate(1 / mtbf_ms)
    while at_ms < cell.duration_ms:
        repair_ms = _repair(cell, rng)
        found.append((int(at_ms), broker, repair_ms))
        if repair_ms is None:
            break
        at_ms += repair_ms + 1 + rng.expovariate(1 / mtbf_ms)
    return found


def _repair(cell: Cell, rng: Random) -> int | None:
    """Always draws, so that what comes after is the same for every repair time."""
    drawn = rng.expovariate(1)
    return None if cell.repair_ms == NONE else max(1, round(drawn * int(cell.repair_ms)))
