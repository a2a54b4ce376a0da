"""Equal Produce requests over many connections: python -m bench.clients.appends BOOTSTRAP.

Owns: the connections (lanes), their requests in flight, the count of acks.  Never: decodes a
response: all responses for a topic have the same size, with the error code at a fixed place.

Prints `rate` (thousand requests/s) and, with --pids, `cpu_us` (CPU time of these processes per
record), both measured after the warm-up.
"""

from __future__ import annotations

import argparse
import json
import selectors
import time
from struct import Struct as Layout
from typing import Final

from bench.clients.topics import make_topic
from bench.processes import allow_many_files, cpu_s
from bench.wire import Wire, batch_of, produce_frame

WARM_UP_SHARE: Final = 0.2
PACE_S: Final = 0.002
_ERROR: Final = Layout(">h")
_BEHIND_ERROR: Final = 8 + 8 + 8 + 4
"""Bytes of a Produce v7 answer behind the error code: three offsets and times, the throttle."""


class Lane:
    """One connection, whose requests go to its partitions in turn."""

    __slots__ = ("_at", "_head", "_partial", "_tail", "acked", "size", "wire")

    def __init__(
        self, address: tuple[str, int], topic: str, partitions: list[int], batch: bytes
    ) -> None:
        self.wire = Wire(address)
        self.acked = 0
        self.size = 0
        """The size of a response."""
        frames = [produce_frame(topic, number, batch) for number in partitions[:1]]
        start = len(frames[0]) - len(batch)
        self._tail = batch
        self._head = [produce_frame(topic, number, batch)[:start] for number in partitions]
        self._at = 0
        self._partial = b""

    def first(self) -> None:
        """Send the first request alone, to learn the size of the responses."""
        self.send(1)
        frame = self.wire.frame()
        self.size = len(frame)
        self._check(frame, 1)

    def send(self, count: int) -> None:
        """Send `count` requests."""
        head, tail, at = self._head, self._tail, self._at
        parts: list[bytes] = []
        for _ in range(count):
            parts += (head[at], tail)
            at = at + 1 if at + 1 < len(head) else 0
        self._at = at
        self.wire.socket.sendall(b"".join(parts))

    def receive(self) -> int:
        """Count the responses that have arrived."""
        data = self.wire.socket.recv(1 << 16)
        if not data:
            raise SystemExit("a connection was closed")
        if self._partial:
            data = self._partial + data
        whole = len(data) // self.size
        self._partial = data[whole * self.size :]
        self._check(data, whole)
        self.acked += whole
        return whole

    def _check(self, data: bytes, count: int) -> None:
        at = self.size - _BEHIND_ERROR - 2
        for _ in range(count):
            if data[at : at + 2] != b"\0\0":
                raise SystemExit(f"an append failed with error {_ERROR.unpack_from(data, at)[0]}")
            at += self.size


def make_lanes(
    topic: str, leaders: dict[int, tuple[int, str, int]], count: int, batch: bytes
) -> list[Lane]:
    """Connections spread over the leaders, each with a share of its leader's partitions."""
    led: dict[tuple[str, int], list[int]] = {}
    for partition, (_, host, port) in leaders.items():
        led.setdefault((host, port), []).append(partition)
    addresses = list(led)
    lanes = []
    for at in range(count):
        address = addresses[at % len(addresses)]
        mine = led[address]
        nth, lanes_here = at // len(addresses), -(-count // len(addresses))
        lanes.append(Lane(address, topic, mine[nth % len(mine) :: lanes_here] or mine[:1], batch))
    return lanes


def run(
    lanes: list[Lane], in_flight: int, seconds: float, pids: list[int], per_s: float = 0.0
) -> tuple[float, float]:
    """(acked requests per second, the system's CPU seconds per request), after the warm-up.
    `per_s`: the requests that are sent in a second; 0: a new one for each response."""
    selector = selectors.DefaultSelector()
    for lane in lanes:
        lane.first()
        selector.register(lane.wire.socket, selectors.EVENT_READ, lane)
    pump = _Paced(lanes, per_s).pump if per_s else _pump
    for lane in () if per_s else lanes:
        lane.send(in_flight)
    began_s = time.perf_counter()
    pump(selector, began_s + seconds * WARM_UP_SHARE)
    acked, cpu = sum(lane.acked for lane in lanes), cpu_s(pids)
    began_s = time.perf_counter()
    pump(selector, began_s + seconds * (1 - WARM_UP_SHARE))
    took_s = time.perf_counter() - began_s
    cpu = cpu_s(pids) - cpu
    acked = sum(lane.acked for lane in lanes) - acked
    if not acked:
        raise SystemExit("nothing was acked")
    return acked / took_s, cpu / acked


def _pump(selector: selectors.BaseSelector, until_s: float) -> None:
    """Send a new request for each response, until the given time."""
    while time.perf_counter() < until_s:
        for key, _ in selector.select(0.1):
            lane: Lane = key.data
            answered = lane.receive()
            if answered:
                lane.send(answered)


class _Paced:
    """Requests at a rate, over the lanes in turn."""

    def __init__(self, lanes: list[Lane], per_s: float) -> None:
        self._lanes = lanes
        self._per_s = per_s
        self._began_s = time.perf_counter()
        self._sent = 0

    def pump(self, selector: selectors.BaseSelector, until_s: float) -> None:
        """Send requests when they are due, until the given time."""
        while (now_s := time.perf_counter()) < until_s:
            while self._sent < (now_s - self._began_s) * self._per_s:
                self._lanes[self._sent % len(self._lanes)].send(1)
                self._sent += 1
            for key, _ in selector.select(PACE_S):
                key.data.receive()


def main() -> None:
    parser = argparse.ArgumentParser(description="Produce requests of one shape")
    parser.add_argument("bootstrap")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--pids", default="")
    parser.add_argument("--per-s", type=float, default=0.0)
    options = parser.parse_args()
    allow_many_files()
    topic, leaders = make_topic(options.bootstrap, options.partitions)
    batch = batch_of(options.records, options.size)
    lanes = make_lanes(topic, leaders, options.connections, batch)
    pids = [int(pid) for pid in options.pids.split(",") if pid]
    rate, cost_s = run(lanes, options.in_flight, options.seconds, pids, options.per_s)
    print(json.dumps({"rate": rate / 1e3, "cpu_us": cost_s / options.records * 1e6}))


if __name__ == "__main__":
    main()
