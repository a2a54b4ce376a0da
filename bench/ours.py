"""The figures of this cluster alone: profile fast, memory, growth, the page, in-process figures.

Owns: these steps.  Never: measures a peer (visit.py).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.figures import PAGE_LOADS, SERIES
from bench.processes import POLL_S, BenchError, client, end, last_line, memory_mb, spawn
from bench.systems import Kcluster, Running
from bench.visit import CLIENT_TIMEOUT_S, Log, Progress, Sizes, failover_ms, idle_cpu_pct, new_log
from bench.wire import Wire, address_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

GROWTH_RECORDS: Final = 100
GROWTH_PARTITIONS: Final = 100
RETAINED_BYTES: Final = 64_000_000
CHECK_MS: Final = 100
"""log.retention.check.interval.ms: Kafka's default of 5 minutes is longer than the load."""
QUARTERS: Final = 4
PAGE_VIEWS: Final = ("partition", "cluster")
WATCHED_TURNS: Final = 5
"""The loads with a watcher, and as many without one, in turn."""
WATCHED_PER_S: Final = "5000"

Step = Callable[[Running], dict[str, float]]


def visit_ours(wanted: Collection[str], sizes: Sizes, progress: Progress) -> Log:
    """Measure the wanted figures (keys) of the groups that only this cluster has."""
    log = new_log(progress)

    def attempt(
        what: str, keys: tuple[str, ...], step: Step, topology: dict[str, Any] | None = None
    ) -> None:
        if any(key in wanted for key in keys):
            log.attempt(what, lambda: _with_cluster(step, topology or {}))

    def in_process(figure: str) -> None:
        if figure in wanted:
            log.attempt(figure, lambda: _in_process(figure, sizes))

    attempt(
        "fast",
        ("failover_fast_ms", "failover_fast_librdkafka_ms", "idle_cpu_fast_pct"),
        lambda x: _fast(x, sizes),
        {"profile": "fast"},
    )
    in_process("warm_ack_ms")
    attempt("connections", ("connection_kb",), lambda x: _connections(x, sizes.connections))
    many = {"many": {"partitions": sizes.partitions, "replication_factor": 3}}
    attempt(
        "partitions",
        ("replica_kb", "start_10k_s"),
        lambda x: _partitions(x, sizes.partitions),
        {"topics": many},
    )
    attempt(
        "passing data",
        ("passing_peak_mb", "passing_growth_mb"),
        lambda x: _passing(x, sizes.passing_mb),
        {"config": {"log.retention.check.interval.ms": CHECK_MS}},
    )
    for key, arguments, topology in growth_points(sizes):
        attempt(key, (key,), partial(_growth, key, arguments), topology)
    in_process("virtual_ms")
    for load in PAGE_LOADS:
        keys = page_keys(load)
        if any(key in wanted for key in keys):
            log.attempt(f"page, {load}", partial(_page, load, sizes.seconds))
    attempt("watcher", ("watcher_pct",), lambda x: _watcher(x, sizes))
    log.values = {key: value for key, value in log.values.items() if key in wanted}
    return log


def _with_cluster(step: Step, topology: dict[str, Any]) -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="kcb") as folder,
        Kcluster(**topology).start(Path(folder)) as running,
    ):
        return step(running)


def _in_process(figure: str, sizes: Sizes) -> dict[str, float]:
    arguments = (figure, "--runs", str(sizes.in_process_runs))
    return client("in_process", *arguments, timeout_s=CLIENT_TIMEOUT_S)


def _fast(running: Running, sizes: Sizes) -> dict[str, float]:
    idle = idle_cpu_pct(running, sizes.idle_s)
    cluster_ms, user_ms = failover_ms(running)
    return {
        "idle_cpu_fast_pct": idle,
        "failover_fast_ms": cluster_ms,
        "failover_fast_librdkafka_ms": user_ms,
    }


def _connections(running: Running, count: int) -> dict[str, float]:
    """Memory per idle connection; each has sent ApiVersions, as every client does first."""
    address = address_of(running.bootstrap)
    question = m.ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    wires = []
    try:
        for _ in range(50):
            wires.append(Wire(address))
            wires[-1].ask(ApiKey.API_VERSIONS, 3, question)
        before_mb = memory_mb(running.pids)
        for _ in range(count):
            wires.append(Wire(address))
            wires[-1].ask(ApiKey.API_VERSIONS, 3, question)
        after_mb = memory_mb(running.pids)
    finally:
        for wire in wires:
            wire.close()
    return {"connection_kb": (after_mb - before_mb) * 1e3 / count}


def _partitions(running: Running, count: int) -> dict[str, float]:
    """Memory per replica, compared with the same cluster without the topics."""
    time.sleep(1)
    with_mb = memory_mb(running.pids)
    without = _with_cluster(lambda x: {"mb": memory_mb(x.pids)}, {"topics": {}})
    return {
        "replica_kb": (with_mb - without["mb"]) * 1e3 / (count * 3),
        "start_10k_s": running.spawn_s,
    }


def _passing(running: Running, passing_mb: int) -> dict[str, float]:
    found = client(
        "passing",
        running.bootstrap,
        "--mb",
        str(passing_mb),
        "--pids",
        running.pid_list,
        "--retained",
        str(min(RETAINED_BYTES, passing_mb * 1_000_000 // 16)),
        timeout_s=CLIENT_TIMEOUT_S,
    )
    quarters = found["quarters_mb"]
    return {"passing_peak_mb": max(quarters), "passing_growth_mb": max(quarters[1:]) - quarters[0]}


def growth_points(sizes: Sizes) -> list[tuple[str, list[str], dict[str, Any]]]:
    """(figure, arguments of the client, changes of the topology) of each point."""
    points: list[tuple[str, list[str], dict[str, Any]]] = []
    for series, counts in SERIES.items():
        for count in counts:
            if count > sizes.largest:
                continue
            partitions = count if series == "partitions" else GROWTH_PARTITIONS
            lanes, in_flight = (count, 1) if series == "clients" else (50, 5)
            arguments = [
                "--partitions",
                str(partitions),
                "--connections",
                str(lanes),
                "--in-flight",
                str(in_flight),
                "--records",
                str(GROWTH_RECORDS),
                "--seconds",
                str(sizes.seconds),
            ]
            topology = {"brokers": count, "topics": {}} if series == "brokers" else {}
            points.append((f"growth_{series}_{count}", arguments, topology))
    return points


def _growth(key: str, arguments: list[str], running: Running) -> dict[str, float]:
    found = client(
        "appends",
        running.bootstrap,
        *arguments,
        "--pids",
        running.pid_list,
        timeout_s=CLIENT_TIMEOUT_S,
    )
    return {key: found["cpu_us"]}


def page_keys(load: str) -> tuple[str, str, str]:
    """The figures of the page beside a load."""
    return f"page_{load}_fps", f"page_{load}_long_ms", f"page_{load}_cpu_ms"


def _page(load: str, seconds: float) -> dict[str, float]:
    """The worst of the views."""
    arguments = ("--seconds", str(seconds))
    seen = [client("page", x, load, *arguments, timeout_s=CLIENT_TIMEOUT_S) for x in PAGE_VIEWS]
    worst = (
        min(x["frames_per_s"] for x in seen),
        max(x["long_ms"] for x in seen),
        max(x["cpu_ms"] for x in seen),
    )
    return dict(zip(page_keys(load), worst, strict=True))


def _watcher(running: Running, sizes: Sizes) -> dict[str, float]:
    """CPU per record with a watcher of the page's stream, who has the rows so far, compared with
    loads without one.  At a fixed rate: a cluster at its limit takes less for each of more requests
    that arrive together, so a little less CPU for the load's client changes the cost by a third."""
    while not (sockets := list(running.place.rglob("*.sock"))):
        time.sleep(POLL_S)  # the API opens after the brokers
    (socket,) = sockets
    seconds = ("--seconds", str(sizes.seconds), "--per-s", WATCHED_PER_S)
    load = (running.bootstrap, "--pids", running.pid_list, *seconds)
    costs: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(-1, 2 * WATCHED_TURNS):  # the first is a warm-up
        is_watched = turn % 4 in (1, 2)  # as often second as first: the cost grows with the log
        watcher = None
        log = running.place / f"watcher-{turn}.log"
        if is_watched:
            command = [sys.executable, "-P", "-m", "bench.clients.watcher", str(socket)]
            watcher = spawn(command, log)
            while "watching" not in log.read_text() and watcher.poll() is None:
                time.sleep(POLL_S)
        try:
            found = client("appends", *load, timeout_s=CLIENT_TIMEOUT_S)
            if watcher is not None and watcher.poll() is not None:
                raise BenchError(f"the watcher ended: {last_line(log)}")
        finally:
            if watcher is not None:
                end(watcher)
        if turn >= 0:
            costs[is_watched].append(found["cpu_us"])
    return {"watcher_pct": 100 * (median(costs[True]) / median(costs[False]) - 1)}
