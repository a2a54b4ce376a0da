"""A cluster whose clients send bytes, live over TCP or in virtual time: one body for both.

    with world.connect(1) as sock:             # broker 1; a blocking socket, of either kind
        sock.sendall(frame)
        read_frame(sock)

Owns: LiveBytes, MemoryBytes, the blocking face of a connection in memory.  Never: asserts what a
test is about.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from kcluster.config.topology.model import Topology
from kcluster.drivers.memory.driver import InMemoryDriver
from kcluster.drivers.memory.stream import StreamEnd
from kcluster.drivers.sockets.listener import Listener
from kcluster.handle.cluster import Cluster
from kcluster.handle.world_cluster import WorldCluster
from tests.rig.patience import PATIENCE_S

LONG_US = 3_600_000_000


class MemorySocket:
    """A connection in memory with the methods of a blocking socket; virtual time passes in them."""

    def __init__(self, driver: InMemoryDriver, address: tuple[str, int], timeout_s: float) -> None:
        self.driver = driver
        self.timeout_s: float | None = timeout_s
        self.end: StreamEnd = driver.connect(*address, local=("127.0.0.1", 0))
        self._wait(lambda: not self.end.is_connecting)
        error = self.end.take_error()
        if error:
            raise OSError(error, os.strerror(error))

    def _wait(self, condition: Callable[[], bool]) -> None:
        limit_us = LONG_US if self.timeout_s is None else round(self.timeout_s * 1_000_000)
        if not self.driver.advance(self.driver.now_us + limit_us, condition):
            raise TimeoutError(errno.ETIMEDOUT, "timed out")

    def settimeout(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            self._wait(lambda: self.end.is_writable)
            left = left[self.end.write(left) :]

    def send_what_fits(self, data: bytes, size_bytes: int) -> int:
        """Write until nothing has fitted for a tenth of a second; returns how much has."""
        sent = 0
        while self.driver.advance(self.driver.now_us + 100_000, lambda: self.end.is_writable):
            sent += self.end.write(data[sent : sent + size_bytes])
        return sent

    def setsockopt(self, level: int, name: int, value: int) -> None:
        """Buffers have one size, and nothing waits to be sent."""

    def recv(self, size_bytes: int) -> bytes:
        self._wait(lambda: self.end.is_readable)
        return self.end.read(size_bytes)

    def shutdown(self, how: int) -> None:
        assert how == socket.SHUT_WR
        self.end.close_write()

    def reset(self) -> None:
        """Close it with a RST."""
        self.end.abort()

    def close(self) -> None:
        self.end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class MemoryBytes:
    """In memory."""

    clock = "virtual"

    def __init__(self, topology: Topology, seed: int = 1) -> None:
        self.lines: list[str] = []
        self.cluster = WorldCluster(topology, seed, log=self.lines.append)
        self.cluster.open()

    def connect(self, broker_id: int = 1, timeout_s: float = 5) -> Any:
        address = self.cluster.plan.addresses[broker_id]
        return MemorySocket(self.cluster.driver, address, timeout_s)

    def listener(self, broker_id: int = 1) -> Listener:
        return self.cluster.driver.listeners[broker_id][0]

    def finish(self) -> None:
        self.cluster.close()


class LiveSocket(socket.socket):
    """A socket of the kernel with two words of a MemorySocket."""

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        made = socket.create_connection(address, timeout_s)
        super().__init__(made.family, made.type, made.proto, made.detach())
        self.settimeout(timeout_s)

    def send_what_fits(self, data: bytes, size_bytes: int) -> int:
        self.setblocking(False)
        sent = 0
        while select.select([], [self], [], 0.1)[1]:
            sent += self.send(data[sent : sent + size_bytes])
        return sent

    def reset(self) -> None:
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


class LiveBytes:
    """Over TCP."""

    clock = "live"

    def __init__(self, topology: Topology, seed: int = 1) -> None:
        self.lines: list[str] = []
        self.cluster = Cluster(topology, seed=seed, log=self.lines.append)
        self.cluster.open()

    def connect(self, broker_id: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        return LiveSocket(self.cluster.plan.addresses[broker_id], timeout_s)

    def listener(self, broker_id: int = 1) -> Listener:
        return self.cluster.driver.listeners[broker_id][0]

    def finish(self) -> None:
        self.cluster.__exit__(None, None, None)


ByteWorld = LiveBytes | MemoryBytes
KINDS: dict[str, Callable[[Topology], ByteWorld]] = {"live": LiveBytes, "memory": MemoryBytes}
