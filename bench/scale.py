"""`python -m bench.scale`: a large cluster, for docs/reference/benchmarks.md: CPU, memory, stalls.

Owns: the steps from the start of a large cluster to its stop, and their table.  Never: compares
with a peer (bench/__main__.py does), judges.

CPU seconds are those of the cluster's process.  A stall is the longest time that an ApiVersions
request (a ping) waited during a step; on a busy machine it shows the machine.  Pings are rare while
the cluster is idle: 200 per second cost more than an idle cluster.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench import report, results
from bench.processes import allow_many_files, cpu_s, machine, memory_mb
from bench.systems import Kcluster, Running, kcluster_command
from bench.wire import Wire, address_of
from kcluster import __version__, build
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

PER_TOPIC: Final = 10_000
"""Partitions of one topic, as many as Kafka creates in one request."""
WAIT_S: Final = 600.0
PING_S: Final = 0.005
IDLE_PING_S: Final = 1.0
IDLE_S: Final = 10.0
CLIENTS_AT_ONCE: Final = 32
_PING: Final = m.ApiVersionsRequest(client_software_name="bench", client_software_version="1")


class Row(Struct):
    """One step."""

    what: str
    cpu_s: float
    wall_s: float
    stall_ms: float
    memory_mb: float


class Pings:
    """Asks a broker every `interval_s`, in a thread, and keeps the longest wait."""

    def __init__(self, bootstrap: str) -> None:
        self.longest_s = 0.0
        self.interval_s = PING_S
        self._wire = Wire(address_of(bootstrap), WAIT_S)
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            asked_s = time.monotonic()
            self._wire.ask(ApiKey.API_VERSIONS, 3, _PING)
            self.longest_s = max(self.longest_s, time.monotonic() - asked_s)
            time.sleep(self.interval_s)

    def end(self) -> None:
        self._is_over = True
        self._thread.join(WAIT_S)
        self._wire.close()


class Steps:
    """Runs steps against one cluster, and measures each."""

    def __init__(self, running: Running) -> None:
        self.rows: list[Row] = []
        self._running = running
        self._pings = Pings(running.bootstrap)

    def take(self, what: str, action: Callable[[], object], then_wait_s: float = 0.0) -> None:
        running, pings = self._running, self._pings
        pings.longest_s = 0.0
        cpu_before_s, began_s = cpu_s(running.pids), time.monotonic()
        action()
        wall_s = time.monotonic() - began_s
        time.sleep(then_wait_s)
        used_s = cpu_s(running.pids) - cpu_before_s
        row = Row(what, used_s, wall_s, pings.longest_s * 1e3, memory_mb(running.pids))
        self.rows.append(row)
        print(line_of(row), flush=True)

    def idle(self, what: str) -> None:
        """Nothing is asked of the cluster for 10 s, except few pings."""
        self._pings.interval_s = IDLE_PING_S
        self.take(what, lambda: time.sleep(IDLE_S))
        self._pings.interval_s = PING_S

    def end(self) -> None:
        self._pings.end()


def line_of(row: Row) -> str:
    """A line of the table."""
    return (
        f"| {row.what} | {row.cpu_s:.2f} | {row.wall_s:.1f} | {row.stall_ms:.0f} "
        f"| {row.memory_mb:.0f} |"
    )


def measure(brokers: int, partitions: int, connections: int, profile: str) -> list[Row]:
    """All steps."""
    system = Kcluster(brokers=brokers, topics={}, profile=profile)
    with tempfile.TemporaryDirectory(prefix="kcb") as folder, system.start(Path(folder)) as running:
        ready = Row("start to ready", cpu_s(running.pids), running.spawn_s, 0, 0)
        ready.memory_mb = memory_mb(running.pids)
        steps = Steps(running)
        steps.rows.append(ready)
        control = Wire(address_of(running.bootstrap), WAIT_S)

        def create() -> None:
            for at in range(0, partitions, PER_TOPIC):
                count = min(PER_TOPIC, partitions - at)
                topic = m.CreateTopicsRequest.CreatableTopic(f"many-{at}", count, min(3, brokers))
                body = m.CreateTopicsRequest([topic], int(WAIT_S * 1e3))
                answer = control.ask(ApiKey.CREATE_TOPICS, 7, body)
                assert not answer.topics[0].error_code, answer

        def verb(*words: str) -> Callable[[], object]:
            environment = running.environment | {"PATH": "/usr/bin:/bin"}
            command = [*kcluster_command(), *words]
            return lambda: subprocess.run(
                command, env=environment, capture_output=True, timeout=WAIT_S, check=False
            )

        steps.take(f"create {partitions:,} partitions", create, 2)
        steps.idle("10 s without clients")
        wires: list[Wire] = []
        addresses = running.bootstrap.split(",")

        def open_one(number: int) -> Wire:
            wire = Wire(address_of(addresses[number % len(addresses)]), WAIT_S)
            wire.ask(ApiKey.API_VERSIONS, 3, _PING)
            return wire

        def connect() -> None:
            with ThreadPoolExecutor(CLIENTS_AT_ONCE) as pool:
                wires.extend(pool.map(open_one, range(connections)))

        steps.take(f"{connections:,} connections", connect)
        steps.idle("10 s with them, idle")
        steps.take("full Metadata", lambda: control.ask(ApiKey.METADATA, 12, m.MetadataRequest()))
        steps.take("`status --json`", verb("status", "--json"))
        steps.take("`kill 2`", verb("kill", "2"), 2)
        steps.take("`start 2`", verb("start", "2"), 2)
        for wire in (*wires, control):
            wire.close()
        steps.end()
        assert running.process is not None
        stopped_s = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(WAIT_S)
        steps.rows.append(Row("SIGTERM to the end", 0, time.monotonic() - stopped_s, 0, 0))
        return steps.rows


def table_of(title: str, rows: Sequence[Row]) -> str:
    """One cluster's table."""
    head = (
        "| step | CPU s | wall s | longest wait of a ping, ms | memory, MB |\n|---|--:|--:|--:|--:|"
    )
    return "\n".join([f"### {title}", "", head, *map(line_of, rows)])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.scale", description=__doc__.split("\n\n")[0])
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--profiles", default="kafka", help="some of kafka,fast")
    parser.add_argument("--dry", action="store_true", help="print the tables, write nothing")
    options = parser.parse_args(arguments)
    allow_many_files()
    load = Path("/proc/loadavg").read_text().split()[0]
    tables = []
    for profile in options.profiles.split(","):
        rows = measure(options.brokers, options.partitions, options.connections, profile)
        title = (
            f"{options.brokers} brokers, {options.partitions:,} partitions, replication factor 3, "
            f"profile {profile}"
        )
        tables.append(table_of(title, rows))
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    text = "\n\n".join(
        [
            "## Scale",
            f"Written by `python -m bench.scale`: kcluster {__version__}, {build()}; {facts}; load "
            f"average {load} before the run. CPU seconds of the cluster's process. A wait shows "
            "the machine too, where others use it.",
            *tables,
        ]
    )
    print(text)
    if not options.dry:
        report.write(results.DOCUMENT, "scale", text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
