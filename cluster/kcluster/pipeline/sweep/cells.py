"""A cell and a seed as a scenario: the cluster, its load, and the schedule of failures.

Owns: the template of the scenario, the random draw of failures.  Never: runs it (runs.py), uses a
clock or a global random generator.
Kafka: no counterpart.

The schedule depends only on the seed and on the columns about failures and duration.  Cells that
differ in durability settings get the same failures, so they can be compared seed by seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Final

import yaml
from msgspec import Struct

from kcluster.config.files.tree import from_python
from kcluster.json_types import JsonObject
from kcluster.pipeline.sweep.columns import NONE, Cell, CellFaults
from kcluster.scenario.language.scenario import Scenario, read_scenario

TOPIC: Final = "orders"
PRODUCER: Final = "shop"
CONSUMER: Final = "reader"


class Failure(Struct, frozen=True, order=True):
    """Brokers that go down together; `repair_ms`: None if they stay down."""

    at_ms: int
    brokers: tuple[int, ...]
    repair_ms: int | None


def scenario_of(cell: Cell, seed: int, name: str = "sweep") -> Scenario:
    """The scenario of a cell with a seed."""
    return read_scenario(from_python(values_of(cell, seed, name)), f"{name}.yaml", {}, [])


def text_of(cell: Cell, seed: int, name: str = "sweep", story: str = "") -> str:
    """The scenario as a file, with which `kcluster scenario run` repeats the run."""
    values = values_of(cell, seed, name)
    head = {"name": name, "story": story, "seed": seed} if story else {"name": name, "seed": seed}
    return str(yaml.safe_dump({**head, **values}, sort_keys=False, width=100))


def values_of(cell: Cell, seed: int, name: str) -> JsonObject:
    """The scenario as plain values under the keys of scenario files."""
    producer: dict[str, object] = {
        "topic": TOPIC,
        "name": PRODUCER,
        "rate": str(cell.rate_per_s),
        "size": cell.size_bytes,
        "acks": cell.acks,
    }
    if cell.idempotent != NONE:
        producer["idempotent"] = cell.idempotent
    workload: dict[str, object] = {"producers": [producer]}
    if cell.consumers:
        # The consumer has no group, because the 50 partitions of __consumer_offsets would dominate
        # the run's cost.
        partitions = [f"{TOPIC}-{number}" for number in range(cell.partitions)]
        reader = {"partitions": partitions, "name": CONSUMER, "members": cell.consumers}
        workload["consumers"] = [reader]
    return {
        "name": name,
        "duration": f"{cell.duration_ms}ms",
        "topology": _topology(cell),
        "workload": workload,
        "steps": _steps(cell, seed),
    }


def _topology(cell: Cell) -> dict[str, object]:
    broker_config = {"replica.lag.time.max.ms": str(cell.replica_lag_ms)}
    topic_config = {
        "min.insync.replicas": str(cell.min_insync_replicas),
        "unclean.leader.election.enable": "true" if cell.unclean_election else "false",
    }
    if cell.flush_messages != NONE:
        topic_config["flush.messages"] = str(cell.flush_messages)
    if cell.flush_interval_ms != NONE:
        topic_config["flush.ms"] = str(cell.flush_interval_ms)
        # The interval of the broker's check for due flushes (LogManager.flushDirtyLogs); by default
        # it never runs.
        broker_config["log.flush.scheduler.interval.ms"] = str(cell.flush_interval_ms)
    written_back = {} if cell.write_back_ms == NONE else {"write_back": f"{cell.write_back_ms}ms"}
    brokers: object = cell.brokers
    if cell.racks and cell.rack_aware:
        numbers = range(1, cell.brokers + 1)
        brokers = [{"id": at, "rack": _rack_of(cell, at)} for at in numbers]
    topic = {
        "partitions": cell.partitions,
        "replication_factor": cell.replication_factor,
        "config": topic_config,
    }
    return {
        "brokers": brokers,
        "config": broker_config,
        "topics": {TOPIC: topic},
        "network": {"default_latency_ms": cell.latency_ms},
        **written_back,
    }


def _rack_of(cell: Cell, broker: int) -> str:
    return f"rack{(broker - 1) * cell.racks // cell.brokers + 1}"


def _steps(cell: Cell, seed: int) -> list[dict[str, object]]:
    if isinstance(cell.faults, CellFaults):
        at = f"{cell.first_failure_ms}ms"
        return [{"at": at, "faults": {"profile": json.loads(cell.faults.profile)}}]
    return [_step(cell, failure) for failure in failures_of(cell, seed)]


def _step(cell: Cell, failure: Failure) -> dict[str, object]:
    at, brokers = f"{failure.at_ms}ms", ", ".join(map(str, failure.brokers))
    repair = None if failure.repair_ms is None else f"{failure.repair_ms}ms"
    if cell.failure == "pause":
        step: dict[str, object] = {"at": at, "pause": brokers}
    elif cell.failure == "clean" and repair is not None:
        # The downtime starts when the broker is down: handing over its partitions may take long.
        return {"at": at, "restart": {"brokers": brokers, "how": "clean", "down": repair}}
    else:
        step = {"at": at, "kill": {"brokers": brokers, "how": cell.failure}}
    return step if repair is None else {**step, "for": repair}


def domains_of(cell: Cell) -> dict[str, tuple[int, ...]]:
    """The failure domains by name; the brokers of a domain fail together."""
    brokers = range(1, cell.brokers + 1)
    if cell.failure_domain == "all":
        return {"all": tuple(brokers)}
    domains: dict[str, tuple[int, ...]] = {}
    for broker in brokers:
        name = str(broker) if cell.failure_domain == "broker" else _rack_of(cell, broker)
        domains[name] = (*domains.get(name, ()), broker)
    return domains


def failures_of(cell: Cell, seed: int) -> list[Failure]:
    """The failures in order of time.  A domain that is down does not fail again."""
    domains = domains_of(cell)
    if isinstance(cell.mtbf_ms, int):
        return sorted(
            failure
            for name, brokers in domains.items()
            for failure in _domain_failures(cell, cell.mtbf_ms, brokers, Random(f"{seed}:{name}"))
        )
    rng = Random(f"{seed}")
    span_ms = cell.duration_ms - cell.first_failure_ms
    times = sorted(
        cell.first_failure_ms + int(rng.random() * span_ms) for _ in range(cell.failures)
    )
    down_until: dict[str, float] = {}
    failures = []
    for at_ms in times:
        shuffled = sorted(domains, key=lambda _: rng.random())
        repair_ms = _draw_repair_ms(cell, rng)
        up = [name for name in shuffled if down_until.get(name, -1) < at_ms]
        if up:
            down_until[up[0]] = float("inf") if repair_ms is None else at_ms + repair_ms
            failures.append(Failure(at_ms, domains[up[0]], repair_ms))
    return failures


def _domain_failures(
    cell: Cell, mtbf_ms: int, brokers: tuple[int, ...], rng: Random
) -> Iterator[Failure]:
    at_ms = cell.first_failure_ms + rng.expovariate(1 / mtbf_ms)
    while at_ms < cell.duration_ms:
        repair_ms = _draw_repair_ms(cell, rng)
        yield Failure(int(at_ms), brokers, repair_ms)
        if repair_ms is None:
            return
        at_ms += repair_ms + 1 + rng.expovariate(1 / mtbf_ms)


def _draw_repair_ms(cell: Cell, rng: Random) -> int | None:
    """Draw a random repair time.  The draw is made in any case, so that later draws do not depend
    on `repair`."""
    drawn = rng.expovariate(1)
    return None if cell.repair_ms == NONE else max(1, round(drawn * int(cell.repair_ms)))
