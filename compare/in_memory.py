"""Our secured cluster in virtual time, with the bytes of its listeners.

Owns: carrying frames over TCP in memory, to every listener.  Never: logs in (logins.py does).

virtual.py is faster, because it has no sockets.  Here a broker closes a connection as it does over
TCP, at once or after a delay.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from compare.secured import our_secured_topology
from compare.virtual import START_MS, Virtual
from kcluster.conform.broker_ids import SAME_IDS
from kcluster.conform.references import Reference
from kcluster.conform.systems import ANY_VERSION, CLOSED, PLAINTEXT, SILENT, System
from kcluster.drivers.memory.stream import StreamEnd
from kcluster.handle.world_cluster import WorldCluster
from kcluster.protocol.apis import ApiKey

_LENGTH: Final = Layout(">i")
_CONNECT_LIMIT_US: Final = 1_000_000


def our_system(reference: Reference, is_secured: bool) -> System:
    """Our cluster for cases that need logins and an authorizer, or for the others."""
    return InMemory(reference) if is_secured else Virtual(reference)


class InMemory:
    """Our three brokers."""

    name = "kcluster"
    settle_ms = 40
    ids = SAME_IDS

    def __init__(self, reference: Reference, seed: int = 1) -> None:
        topology = our_secured_topology(reference)
        cluster = WorldCluster(topology, seed, record=False, start_ms=START_MS)
        cluster.open()
        self.driver = cluster.driver
        self.sleep_ms(2_000)
        self._lines: dict[tuple[str, int], _Line] = {}

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        return self.driver.plan.addresses

    @property
    def endpoints(self) -> dict[int, dict[str, tuple[str, int]]]:
        return {
            broker: {one.listener: (one.host, one.port) for one in endpoints}
            for broker, endpoints in self.driver.plan.endpoints.items()
        }

    @property
    def controller_ports(self) -> dict[int, int]:
        return {}  # its controller has no listener

    def newest(self, api: ApiKey) -> int:
        return ANY_VERSION

    def now_ms(self) -> int:
        return self.driver.clock_ms()

    def sleep_ms(self, duration_ms: int) -> None:
        self.driver.advance(self.driver.now_us + 1_000 * duration_ms, lambda: False)

    def connect(self, on: str, broker: int, listener: str) -> None:
        self.close(on, broker)
        end = self.driver.connect(*self.endpoints[broker][listener], local=("127.0.0.1", 0))
        limit_us = self.driver.now_us + _CONNECT_LIMIT_US
        self.driver.advance(limit_us, lambda: not end.is_connecting)
        self._lines[on, broker] = _Line(end)

    def send(self, on: str, broker: int, frame: bytes) -> None:
        if (on, broker) not in self._lines:
            self.connect(on, broker, PLAINTEXT)
        self._lines[on, broker].write(frame)

    def receive(self, on: str, broker: int, limit_ms: int) -> bytes | str:
        line = self._lines.get((on, broker))
        if line is None:
            return CLOSED
        limit_us = self.driver.now_us + 1_000 * limit_ms
        if not self.driver.advance(limit_us, line.has_news):
            return SILENT
        frame = line.next_frame()
        if frame is not None:
            return frame
        self.close(on, broker)
        return CLOSED

    def close(self, on: str, broker: int) -> None:
        line = self._lines.pop((on, broker), None)
        if line is not None:
            line.end.close()

    def close_all(self, broker: int) -> None:
        for on, to in tuple(self._lines):
            if to == broker:
                self.close(on, to)

    def operate(self, verb: str, broker: int) -> None:
        raise AssertionError("no case of a secured cluster stops a broker")


class _Line:
    """One connection."""

    def __init__(self, end: StreamEnd) -> None:
        self.end = end
        self._buffer = b""
        self._is_closed = False

    def write(self, data: bytes) -> None:
        """Send all of it; a connection that the broker has closed takes none."""
        while data and self.end.is_writable and (taken := self.end.write(data)):
            data = data[taken:]

    def has_news(self) -> bool:
        """Whether there is a whole frame, or the broker has closed the connection."""
        while not self._is_closed and not self._is_whole and self.end.is_readable:
            try:
                read = self.end.read(1 << 20)
            except ConnectionError:
                read = b""
            self._buffer += read
            self._is_closed = not read
        return self._is_closed or self._is_whole

    @property
    def _is_whole(self) -> bool:
        return len(self._buffer) >= 4 and len(self._buffer) >= self._size

    @property
    def _size(self) -> int:
        size: int = _LENGTH.unpack_from(self._buffer)[0]
        return 4 + size

    def next_frame(self) -> bytes | None:
        """The next frame without its length; None at the end."""
        if not self._is_whole:
            return None
        size = self._size
        frame, self._buffer = self._buffer[4:size], self._buffer[size:]
        return frame
