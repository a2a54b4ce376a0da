"""Apache Kafka over TCP as a system under comparison (ours is in virtual.py).

Owns: connections by name, starting and stopping a real cluster, the common server configuration.
Never: decodes anything.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from struct import Struct as Layout
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.systems import KAFKA_CONTROLLER_PORTS, Kafka, KafkaRunning
from kcluster.config.topology.model import Topology
from kcluster.conform.broker_ids import SAME_IDS
from kcluster.conform.references import NEWEST, Reference
from kcluster.conform.systems import ANY_VERSION, BROKERS, CLOSED, PLAINTEXT, SILENT
from kcluster.protocol.apis import ApiKey

_LENGTH: Final = Layout(">i")

SERVER_CONFIG: Final[dict[str, Any]] = {
    "num.partitions": 4,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}
"""The configs that the script which starts Apache Kafka sets, besides addresses and paths."""


def our_topology(reference: Reference) -> Topology:
    """A topology like that of Apache Kafka's cluster.  Our brokers are of the newest release unless
    the file names another."""
    older: dict[str, Any] = {} if reference == NEWEST else {"kafka_version": reference.name}
    return Topology.of(brokers=len(BROKERS), profile="kafka", config=SERVER_CONFIG, **older)


class OverTcp:
    """A cluster at `bootstrap`: the addresses of brokers 1, 2 and 3."""

    name = "kafka"
    settle_ms = 100  # replication and metadata take this long on a busy machine

    def __init__(self, bootstrap: str) -> None:
        hosts = [address.rpartition(":") for address in bootstrap.split(",")]
        self.addresses = {
            broker: (host, int(port))
            for broker, (host, _, port) in zip(BROKERS, hosts, strict=True)
        }
        self.endpoints = {id_: {PLAINTEXT: address} for id_, address in self.addresses.items()}
        self.controller_ports: dict[int, int] = {}
        self._sockets: dict[tuple[str, int], socket.socket] = {}
        self._buffers: dict[tuple[str, int], bytearray] = {}

    ids = SAME_IDS

    def newest(self, api: ApiKey) -> int:
        return ANY_VERSION

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def sleep_ms(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1000)

    def connect(self, on: str, broker: int, listener: str) -> None:
        self.close(on, broker)
        made = socket.create_connection(self.endpoints[broker][listener], 5)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[on, broker] = made
        self._buffers[on, broker] = bytearray()

    def send(self, on: str, broker: int, frame: bytes) -> None:
        """Send one frame with its length; open the connection if there is none.  Failures show in
        `receive`."""
        with contextlib.suppress(OSError):
            if (on, broker) not in self._sockets:
                self.connect(on, broker, PLAINTEXT)
            self._sockets[on, broker].sendall(frame)

    def receive(self, on: str, broker: int, limit_ms: int) -> bytes | str:
        found = self._sockets.get((on, broker))
        if found is None:
            return CLOSED
        buffer = self._buffers[on, broker]
        until_s = time.monotonic() + limit_ms / 1000
        while len(buffer) < 4 or len(buffer) < 4 + _LENGTH.unpack_from(buffer)[0]:
            found.settimeout(max(until_s - time.monotonic(), 0.001))
            try:
                data = found.recv(1 << 20)
            except TimeoutError:
                return SILENT
            except OSError:
                data = b""
            if not data:
                self.close(on, broker)
                return CLOSED
            buffer += data
        size = 4 + _LENGTH.unpack_from(buffer)[0]
        frame = bytes(buffer[4:size])
        del buffer[:size]
        return frame

    def close(self, on: str, broker: int) -> None:
        found = self._sockets.pop((on, broker), None)
        if found is not None:
            found.close()

    def close_all(self, broker: int) -> None:
        for on, to in tuple(self._sockets):
            if to == broker:
                self.close(on, to)

    def operate(self, verb: str, broker: int) -> None:
        raise AssertionError(f"cannot {verb} broker {broker} of a shared cluster")


class OwnKafka(OverTcp):
    """A Kafka cluster started for this run, whose brokers may be killed."""

    def __init__(self, bootstrap: str, folder: Path, libraries: Path) -> None:
        super().__init__(bootstrap)
        self.folder = folder
        self.libraries = libraries
        first_port = self.addresses[1][1]
        self.controller_ports = {
            broker: first_port + offset
            for broker, offset in zip(BROKERS, KAFKA_CONTROLLER_PORTS, strict=True)
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def operate(self, verb: str, broker: int) -> None:
        pid_file = self.folder / f"n{broker}" / "pid"
        if verb == "start":
            self._start(broker, pid_file)
            return
        pid = int(pid_file.read_text())
        os.kill(pid, 9 if verb == "kill" else 15)
        for process in self._started:
            if process.pid == pid:
                process.wait(60)
        until_s = time.monotonic() + 60
        while Path(f"/proc/{pid}").exists() and time.monotonic() < until_s:
            time.sleep(0.05)

    def _start(self, broker: int, pid_file: Path) -> None:
        home = pid_file.parent
        log_config = self.folder.parent / "log4j2.properties"
        command = [
            "java",
            "-Xms256m",
            "-Xmx1g",
            f"-Dlog4j2.configurationFile={log_config}",
            "-cp",
            f"{self.libraries}/*",
            "kafka.Kafka",
            str(home / "server.properties"),
        ]
        with (home / "out.log").open("ab") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        self._started.append(process)
        pid_file.write_text(str(process.pid))


@contextlib.contextmanager
def own_kafka(reference: Reference) -> Iterator[OwnKafka]:
    """Start Apache Kafka with the peers' script; stop it at the end."""
    peer = Kafka(reference.version)
    with TemporaryDirectory() as place, peer.start(Path(place)) as running:
        assert isinstance(running, KafkaRunning)
        system = OwnKafka(running.bootstrap, running.folder, peer.libraries)
        try:
            yield system
        finally:
            for broker in BROKERS:
                system.close_all(broker)
