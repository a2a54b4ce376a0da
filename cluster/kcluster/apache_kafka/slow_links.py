"""Delays and loses packets of links, where the kernel has no sch_netem.

Owns: this program, which runs beside a cluster while a link of it is slow.  Never: imports anything
of ours, so that it starts in a few milliseconds; sees a packet of a link that is not slow.
Kafka: no counterpart; tc-netem(8).

Standard input has a line of JSON for each link and each change of it; standard output answers with
a line: `ready`, or the reason why not.  tc leads the packets of the link to a TAP device.  They
leave here in their order, with the priority that is the number of the link's class, so that tc does
not lead them here again.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import itertools
import json
import os
import random
import select
import socket
import struct
import sys
import time

CLONE_NEWNET = 0x4000_0000
TUNSETIFF = 0x4004_54CA
IFF_TAP, IFF_NO_PI, IFF_UP = 0x0002, 0x1000, 0x1
SIOCSIFFLAGS, SIOCSIFTXQLEN = 0x8914, 0x8943
ROOM_PACKETS = 10_000
MAX_FRAME_BYTES = 65_536
IP = b"\x08\x00"


class SlowLink:
    """One direction of a link: the TAP device where its packets arrive, the device where they
    leave."""

    def __init__(self, tap: str, device: str, priority: int) -> None:
        name = tap.encode()
        self.descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.descriptor, TUNSETIFF, struct.pack("16sH", name, IFF_TAP | IFF_NO_PI))
        self._out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        fcntl.ioctl(self._out, SIOCSIFTXQLEN, struct.pack("16si", name, ROOM_PACKETS))
        fcntl.ioctl(self._out, SIOCSIFFLAGS, struct.pack("16sh", name, IFF_UP))
        self._out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        self._out.setblocking(False)
        self._out.bind((device, 0))
        self.latency_s = self.jitter_s = self.loss = 0.0
        self._last_s = 0.0

    def due_s(self, now_s: float) -> float | None:
        """When a packet that arrives now leaves; None if it is lost."""
        if self.loss and random.random() < self.loss:
            return None
        delay_s = self.latency_s + random.uniform(-self.jitter_s, self.jitter_s)
        self._last_s = max(self._last_s, now_s + max(0.0, delay_s))
        return self._last_s

    def arrived(self) -> list[bytes]:
        """The packets that have arrived."""
        frames: list[bytes] = []
        try:
            while len(frames) < ROOM_PACKETS:
                frame = os.read(self.descriptor, MAX_FRAME_BYTES)
                if frame[12:14] == IP:  # the device itself says something in IPv6
                    frames.append(frame)
        except BlockingIOError:
            return frames
        return frames

    def send(self, frame: bytes) -> None:
        """Let a packet leave; it is lost if the device has no room."""
        try:
            self._out.send(frame)
        except OSError:
            return


class SlowLinks:
    """All slow links, by TAP device."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self._links: dict[str, SlowLink] = {}
        self._waiting: list[tuple[float, int, SlowLink, bytes]] = []
        self._numbers = itertools.count()

    def serve(self) -> None:
        """Until standard input ends."""
        rest = b""
        while True:
            by_descriptor = {one.descriptor: one for one in self._links.values()}
            ready, _, _ = select.select([0, *by_descriptor], [], [], self._wait_s())
            for descriptor in ready:
                if descriptor:
                    self._take(by_descriptor[descriptor])
                    continue
                data = os.read(0, MAX_FRAME_BYTES)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    sys.stdout.write(self._change(**json.loads(line)) + "\n")
                    sys.stdout.flush()

    def _wait_s(self) -> float | None:
        """Send what is due; returns the time until the next packet."""
        while self._waiting:
            due_s, _, link, frame = self._waiting[0]
            left_s = due_s - time.monotonic()
            if left_s > 0:
                return left_s
            heapq.heappop(self._waiting)
            link.send(frame)
        return None

    def _take(self, link: SlowLink) -> None:
        now_s = time.monotonic()
        for frame in link.arrived():
            due_s = link.due_s(now_s)
            if due_s is not None:
                heapq.heappush(self._waiting, (due_s, next(self._numbers), link, frame))

    def _change(
        self,
        tap: str,
        namespace: str | None,
        device: str,
        priority: int,
        latency_us: int,
        jitter_us: int,
        loss: float,
    ) -> str:
        try:
            if tap not in self._links:
                if namespace is not None:
                    self._enter(f"/run/netns/{namespace}")
                self._links[tap] = SlowLink(tap, device, priority)
        except OSError as error:
            return str(error)
        finally:
            self._libc.setns(self._home, CLONE_NEWNET)
        link = self._links[tap]
        link.latency_s, link.jitter_s, link.loss = latency_us / 1e6, jitter_us / 1e6, loss
        return "ready"

    def _enter(self, path: str) -> None:
        with open(path, "rb") as file:
            if self._libc.setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    SlowLinks().serve()
