"""A visit: the same measurements on each system, from its start to its stop.

Owns: the steps of a visit and their order.  Never: distinguishes systems, except by their own
attributes (systems.py).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.processes import BenchError, client, cpu_s, memory_mb
from bench.systems import Running, System

Progress = Callable[[str], None]

CLIENT_TIMEOUT_S: Final = 300.0


class Sizes(Struct, frozen=True):
    """The sizes of all loads."""

    mb: int = 200
    acks: int = 2_000
    requests: int = 5_000
    handshakes: int = 500
    """Of each client process."""
    seconds: float = 3.0
    """The duration of the small Produce requests, and of each point of growth."""
    idle_s: float = 10.0
    connections: int = 2_000
    partitions: int = 10_000
    passing_mb: int = 1_000
    in_process_runs: int = 5
    largest: int = 10_000
    """The largest point of growth."""


QUICK: Final = Sizes(
    mb=30, acks=500, requests=2_000, handshakes=100, seconds=1.0, idle_s=2.0, connections=500,
    partitions=2_000, passing_mb=200, in_process_runs=3, largest=1_000,
)  # fmt: skip

FULL: Final = Sizes()


class Log(Struct):
    """The results of a visit.  `values`: by the figure's key.  `reasons`: why a step failed, by its
    name."""

    values: dict[str, float]
    reasons: dict[str, str]
    progress: Progress

    def attempt(self, what: str, step: Callable[[], dict[str, float]]) -> None:
        """Take a step; a failure is reported, and the rest continues."""
        began_s = time.monotonic()
        try:
            values = step()
        except BenchError as error:
            self.reasons[what] = str(error)
            self.progress(f"{what}: not measured: {error}")
            return
        self.values.update(values)
        figures = ", ".join(f"{key} {value:.4g}" for key, value in values.items())
        self.progress(f"{what}: {figures}  ({time.monotonic() - began_s:.1f} s)")


def new_log(progress: Progress) -> Log:
    return Log({}, {}, progress)


def visit(system: System, wanted: Collection[str], sizes: Sizes, progress: Progress) -> Log:
    """Start the system, measure the wanted figures (keys), stop it."""
    log = new_log(progress)
    with tempfile.TemporaryDirectory(prefix="kcb") as folder:
        try:
            running = system.start(Path(folder))
        except BenchError as error:
            log.reasons["start"] = str(error)
            progress(f"does not start: {error}")
            return log
        with running:
            log.attempt("start", lambda: _start(running))
            for what, keys, step in _steps(system, running, sizes):
                if any(key in wanted for key in keys):
                    log.attempt(what, step)
            reasons = system.not_measured.items()
            log.reasons.update({key: reason for key, reason in reasons if key in wanted})
    log.values = {key: value for key, value in log.values.items() if key in wanted}
    return log


def _start(running: Running) -> dict[str, float]:
    return {"spawn_s": running.spawn_s, "memory_start_mb": memory_mb(running.pids)}


def _steps(
    system: System, running: Running, sizes: Sizes
) -> list[tuple[str, tuple[str, ...], Callable[[], dict[str, float]]]]:
    """(name, figures, function) of each step in order; steps with lasting effects come last."""
    partitions = ("--partitions", str(system.partitions))
    lacking = system.not_measured
    load = "produce,ack" if "consume" in lacking else "produce,consume,ack"

    def client_of(module: str, *more: str) -> dict[str, float]:
        where = (running.bootstrap, *partitions, *more)
        return client(module, *where, timeout_s=CLIENT_TIMEOUT_S, **running.environment)

    def requests() -> dict[str, float]:
        return client_of("requests", "--count", str(sizes.requests))

    def small() -> dict[str, float]:
        found = client_of("appends", "--seconds", str(sizes.seconds))
        return {"small_produce": found["rate"]}

    def transactions() -> dict[str, float]:
        return client_of("transactions")

    def produce() -> dict[str, float]:
        return client_of(
            "load", "--mb", str(sizes.mb), "--acks", str(sizes.acks), "--figures", load
        )

    def idle() -> dict[str, float]:
        return {"idle_cpu_pct": idle_cpu_pct(running, sizes.idle_s)}

    def after() -> dict[str, float]:
        return {"memory_load_mb": memory_mb(running.pids)}

    def failover() -> dict[str, float]:
        cluster_ms, user_ms = failover_ms(running)
        return {"failover_ms": cluster_ms, "failover_librdkafka_ms": user_ms}

    loads = ("produce_1k", "produce_100b", "consume", "ack_p50_ms", "ack_p99_ms")
    requested = ("api_versions_single", "api_versions_50", "metadata_single", "metadata_50")
    steps: list[tuple[str, tuple[str, ...], Callable[[], dict[str, float]]]] = [
        ("load", loads, produce),
        ("memory", ("memory_load_mb",), after),
        ("requests", requested, requests),
        ("small requests", ("small_produce",), small),
        ("transactions", ("txn_v1_ms", "txn_v2_ms", "txn_librdkafka_ms"), transactions),
        ("idle", ("idle_cpu_pct",), idle),
        ("fail-over", ("failover_ms", "failover_librdkafka_ms"), failover),
    ]
    return [step for step in steps if step[1][0] not in lacking]


def idle_cpu_pct(running: Running, seconds: float) -> float:
    """The CPU use of an idle system, in percent of one core."""
    time.sleep(min(1.0, seconds))
    began_s, before_s = time.perf_counter(), cpu_s(running.pids)
    time.sleep(seconds)
    return (cpu_s(running.pids) - before_s) / (time.perf_counter() - began_s) * 100


def failover_ms(running: Running) -> tuple[float, float]:
    """Kill a leader; the time to the next ack, for a client that polls Metadata every 5 ms and for
    librdkafka."""
    command = running.kill_command()
    if command is None:
        raise BenchError("its leaders cannot be killed")
    found = client("failover", running.bootstrap, *command, timeout_s=150, **running.environment)
    return found["cluster_ms"], found["user_ms"]
