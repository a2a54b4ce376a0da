"""The systems under test: how to start each one, kill one of its brokers, and stop it.

Owns: the commands, and everything specific to one system.  Never: loads or measures one.

The peers' scripts are in the directory named by the environment variable KCLUSTER_PEERS:
`kafka/kafka setup | start N PORT | stop PORT | kill PORT NODE` of the release in KAFKA,
`kfake/setup` (which builds the program `kfake/kfake N PORT` in PEERS_CACHE), `librdkafka-mock N`
(which prints its bootstrap list).
Build results are kept in PEERS_CACHE, by default the directory `peers` among the temporary files.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from bench.processes import (
    POLL_S,
    ROOT,
    BenchError,
    command_output,
    end,
    end_pids,
    free_ports,
    is_running,
    last_line,
    run_to_end,
    spawn,
)
from bench.wire import address_of, brokers_named
from kcluster import __version__, build

BROKERS: Final = 3
START_TIMEOUT_S: Final = 90.0
SETUP_TIMEOUT_S: Final = 900.0
KAFKA_RELEASE: Final = "4.4.0"
KAFKA_CONTROLLER_PORTS: Final = (101, 102, 103)
"""Offsets from the first port."""


_BOOTSTRAP: Final = re.compile(r"^([\w.-]+:\d+(?:,[\w.-]+:\d+)*)\n", re.MULTILINE)


class Running:
    """A running system.  `pids`: its processes.  `spawn_s`: the time until its Metadata named all
    brokers.  As a context manager, it stops the system."""

    def __init__(self, place: Path) -> None:
        self.place = place
        """A directory for its files."""
        self.bootstrap = ""
        self.pids: tuple[int, ...] = ()
        self.spawn_s = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill_command(self) -> list[str] | None:
        """A command that kills broker {leader} as by kill -9; None if that is impossible."""
        return None

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)

    @contextlib.contextmanager
    def stopped_unless_up(self) -> Iterator[None]:
        """A context for a start: any exception stops the system."""
        is_up = False
        try:
            yield
            is_up = True
        finally:
            if not is_up:
                self.stop()

    def wait(self, address: tuple[str, int], brokers: int, began_s: float) -> None:
        """Wait until Metadata names this many brokers."""
        while brokers_named(address) < brokers:
            if self.process is not None and self.process.poll() is not None:
                raise BenchError(f"the process ended during the start: {self.log_tail()}")
            if time.perf_counter() - began_s > START_TIMEOUT_S:
                raise BenchError(f"fewer than {brokers} brokers after {START_TIMEOUT_S:g} s")
            time.sleep(POLL_S)
        self.spawn_s = time.perf_counter() - began_s

    @property
    def log(self) -> Path:
        return self.place / "log"

    def log_tail(self) -> str:
        """The last line of its output."""
        return last_line(self.log)

    @property
    def pid_list(self) -> str:
        """Its processes, for the option --pids of the clients."""
        return ",".join(map(str, self.pids))


class System:
    """One kind of system."""

    name = ""
    partitions = 6
    """The number of partitions of the topic under load."""
    not_measured: dict[str, str] = {}
    """Figure -> why it is not measured for this system."""

    def missing_requirement(self) -> str:
        """Why the system cannot be run here; "" if it can."""
        return ""

    def version(self) -> str:
        """The system's version, as far as it is known."""
        raise AssertionError(f"{type(self).__name__} must define version")

    def start(self, place: Path) -> Running:
        """Start the system, and wait until it serves."""
        raise AssertionError(f"{type(self).__name__} must define start")


# --------------------------------------------------------------------------------------- ours


class KclusterRunning(Running):
    """`kcluster up`, with its unix socket in its own directory, apart from other clusters."""

    def kill_command(self) -> list[str]:
        return [*kcluster_command(), "kill", "{leader}"]


class Kcluster(System):
    """This cluster, with the repository's topology and `overrides` of its keys."""

    name = "kcluster"

    def __init__(self, **overrides: Any) -> None:
        self.overrides = overrides

    def version(self) -> str:
        commit = command_output(["git", "rev-parse", "--short", "HEAD"])
        return f"{__version__} {commit} ({build()})".replace("  ", " ")

    def start(self, place: Path) -> KclusterRunning:
        running = KclusterRunning(place)
        text, first_port, brokers = self.topology_text()
        (place / "topology.yaml").write_text(text)
        running.bootstrap = ",".join(f"127.0.0.1:{first_port + at}" for at in range(brokers))
        # A short path: that of a Unix socket has at most 107 bytes.
        running.environment = {"XDG_RUNTIME_DIR": str(place), "PYTHONUNBUFFERED": "1"}
        command = [*kcluster_command(), "up", str(place / "topology.yaml")]
        began_s = time.perf_counter()
        with running.stopped_unless_up():
            running.process = spawn(command, running.log, **running.environment)
            running.pids = (running.process.pid,)
            running.wait(("127.0.0.1", first_port), brokers, began_s)
        return running

    def topology_text(self) -> tuple[str, int, int]:
        """(YAML, first port, number of brokers)."""
        topology: dict[str, Any] = yaml.safe_load((ROOT / "topology.yaml").read_text())
        topology.update(self.overrides)
        brokers = topology["brokers"]
        if isinstance(brokers, int):
            brokers = [{"id": at + 1} for at in range(brokers)]
        first_port = free_ports(len(brokers))
        for at, broker in enumerate(brokers):
            broker["port"] = first_port + at
        topology["brokers"] = brokers
        return yaml.safe_dump(topology), first_port, len(brokers)


def kcluster_command() -> list[str]:
    """The console script next to this Python, or the module that it calls."""
    script = Path(sys.executable).with_name("kcluster")
    return [str(script)] if script.exists() else [sys.executable, "-P", "-m", "kcluster"]


# -------------------------------------------------------------------------------------- peers


def peers_folder() -> Path | None:
    """The directory of the peers' scripts; None if KCLUSTER_PEERS is not set."""
    named = os.environ.get("KCLUSTER_PEERS")
    return Path(named) if named else None


def peers_cache() -> Path:
    """The directory for the peers' build results."""
    return Path(os.environ.get("PEERS_CACHE") or Path(tempfile.gettempdir()) / "peers")


class Peer(System):
    """A system started by a script in KCLUSTER_PEERS."""

    script = ""
    needs = ""
    """A program that must be installed."""

    def missing_requirement(self) -> str:
        folder = peers_folder()
        if folder is None:
            return "KCLUSTER_PEERS is not set: it names the directory of the peers' scripts"
        if not (folder / self.script).is_file():
            return f"there is no {self.script} in KCLUSTER_PEERS"
        if self.needs and shutil.which(self.needs) is None:
            return f"{self.needs} is not installed"
        return ""

    def path(self) -> str:
        folder = peers_folder()
        assert folder is not None, "missing_requirement() is empty"
        return str(folder / self.script)

    def environment(self) -> dict[str, str]:
        """What its script reads from the environment."""
        return {"PEERS_CACHE": str(peers_cache())}

    def call(self, *arguments: str, timeout_s: float, log: Path) -> None:
        """Run the peer's script to its end."""
        what = f"{self.script} {arguments[:1]}"
        run_to_end(what, [self.path(), *arguments], log, timeout_s, **self.environment())


def kafka_folder(port: int) -> Path:
    """Where the script keeps a cluster's files and process ids, by its first port."""
    return peers_cache() / "kafka" / f"run-{port}"


class KafkaRunning(Running):
    """Three JVMs, each a broker and a controller."""

    peer: Kafka
    port = 0

    def kill_command(self) -> list[str]:
        self.environment = self.peer.environment()
        return [self.peer.path(), "kill", str(self.port), "{leader}"]

    def find_pids(self) -> None:
        texts = [file.read_text().strip() for file in sorted(self.folder.glob("n*/pid"))]
        self.pids = tuple(int(text) for text in texts if text)

    @property
    def folder(self) -> Path:
        return kafka_folder(self.port)

    def stop(self) -> None:
        self.find_pids()
        mine = [pid for pid in self.pids if is_running(pid)]
        with contextlib.suppress(BenchError):
            self.peer.call("stop", str(self.port), timeout_s=30, log=self.place / "stop")
        end_pids(mine)
        shutil.rmtree(self.folder, ignore_errors=True)


class Kafka(Peer):
    """Apache Kafka, KRaft."""

    name, script, needs = "kafka", "kafka/kafka", "java"

    def __init__(self, release: str = KAFKA_RELEASE) -> None:
        self.release = release

    @property
    def libraries(self) -> Path:
        """The directory of its jars, which the script fills."""
        return peers_cache() / "kafka" / f"libs-{self.release}"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "KAFKA": self.release}

    def version(self) -> str:
        jars = sorted(self.libraries.glob("kafka-clients-*.jar"))
        return jars[0].stem.removeprefix("kafka-clients-") if jars else "unknown"

    def java(self, main_class: str, *arguments: str) -> list[str]:
        """The command of a program in its jars, as the script runs it."""
        log_config = peers_cache() / "kafka" / "log4j2.properties"
        options = ["-Xms256m", "-Xmx1g", f"-Dlog4j2.configurationFile={log_config}"]
        return ["java", *options, "-cp", f"{self.libraries}/*", main_class, *arguments]

    def reserve(self, place: Path) -> KafkaRunning:
        """The ports of a cluster to be started."""
        running = KafkaRunning(place)
        running.peer = self
        # An existing directory, and the processes named in it, belong to another session.
        running.port = free_ports(
            BROKERS, KAFKA_CONTROLLER_PORTS, lambda port: kafka_folder(port).exists()
        )
        running.bootstrap = ",".join(f"127.0.0.1:{running.port + at}" for at in range(BROKERS))
        return running

    def start(self, place: Path) -> Running:
        self.call("setup", timeout_s=SETUP_TIMEOUT_S, log=place / "setup")
        running = self.reserve(place)
        began_s = time.perf_counter()
        with running.stopped_unless_up():
            self.call("start", str(BROKERS), str(running.port), timeout_s=120, log=running.log)
            running.find_pids()
            running.wait(("127.0.0.1", running.port), BROKERS, began_s)
        return running


class Kfake(Peer):
    """franz-go's kfake: appends each record once, does not replicate."""

    name, script, needs = "kfake", "kfake/setup", "go"
    not_measured = {
        "failover_ms": "its leaders cannot be killed",
        "idle_cpu_pct": "left out, it does nothing by itself",
        "txn_v1_ms": "transactions are compared with Apache Kafka alone",
    }

    @property
    def program(self) -> Path:
        return peers_cache() / "kfake" / "kfake"

    def missing_requirement(self) -> str:
        return "" if peers_folder() and self.program.is_file() else super().missing_requirement()

    def version(self) -> str:
        modules = self.program.with_name("go.mod")
        if not modules.is_file():
            return "unknown"
        found = re.search(r"pkg/kfake (\S+)", modules.read_text())
        return found[1] if found else "unknown"

    def start(self, place: Path) -> Running:
        if not self.program.is_file():
            self.call(timeout_s=SETUP_TIMEOUT_S, log=place / "setup")
        running = Running(place)
        port = free_ports(BROKERS)
        running.bootstrap = ",".join(f"127.0.0.1:{port + at}" for at in range(BROKERS))
        began_s = time.perf_counter()
        with running.stopped_unless_up():
            running.process = spawn([str(self.program), str(BROKERS), str(port)], running.log)
            running.pids = (running.process.pid,)
            running.wait(("127.0.0.1", port), BROKERS, began_s)
        return running


class Mock(Peer):
    """librdkafka's mock cluster: keeps the newest 5 MB of a partition, only auto-creates topics."""

    name, script = "mock", "librdkafka-mock"
    partitions = 4
    not_measured = {
        "consume": "it keeps the newest 5 MB of a partition",
        "failover_ms": "its brokers elect no leaders",
        "idle_cpu_pct": "left out, it does nothing by itself",
        "txn_v1_ms": "transactions are compared with Apache Kafka alone",
    }

    def version(self) -> str:
        import confluent_kafka

        return str(confluent_kafka.libversion()[0])

    def start(self, place: Path) -> Running:
        running = Running(place)
        began_s = time.perf_counter()
        command = [sys.executable, self.path(), str(BROKERS)]
        with running.stopped_unless_up():
            running.process = spawn(command, running.log)
            running.pids = (running.process.pid,)
            while not (found := _BOOTSTRAP.search(running.log.read_text())):
                if running.process.poll() is not None or time.perf_counter() - began_s > 30:
                    raise BenchError(f"it printed no bootstrap list: {running.log_tail()}")
                time.sleep(POLL_S)
            running.bootstrap = found[1]
            running.wait(address_of(running.bootstrap), BROKERS, began_s)
        return running


def all_systems() -> dict[str, System]:
    """By name, in the order of the report."""
    return {system.name: system for system in (Kcluster(), Kafka(), Kfake(), Mock())}
