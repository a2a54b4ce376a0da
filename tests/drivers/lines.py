"""Connections to brokers on either clock, and the rules between: what tests of rules share.

Owns: LiveLine, VirtualLine, Stage.  Never: asserts what a test is about.
"""

from __future__ import annotations

import socket
import time
from typing import Any

from kcluster import rule
from kcluster.contract import Note
from kcluster.events.network import RuleHit
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from tests.drivers.conftest import LiveWorld, OneAnswer, VirtualWorld, read_frame

CLOSED, SILENT = "closed", "silent"


class LiveLine:
    """One connection to a broker of a live cluster."""

    def __init__(self, world: LiveWorld, broker_id: int) -> None:
        self.sock = socket.create_connection(world.cluster.plan.addresses[broker_id], timeout=5)
        self.asked: list[tuple[int, int]] = []

    def send(self, api_key: int, version: int, body: Any) -> None:
        self.asked.append((api_key, version))
        number = len(self.asked)
        frame = encode_request_frame(api_key, version, number, "test", body)
        self.sock.sendall(b"".join(frame))

    def outcome(self, limit_ms: int = 5_000) -> Any:
        self.sock.settimeout(limit_ms / 1000)
        try:
            frame = read_frame(self.sock)
        except TimeoutError:
            return SILENT
        except (AssertionError, ConnectionError):
            return CLOSED
        number, body = decode_response_frame(
            *self.asked[int.from_bytes(frame[:4], "big") - 1], frame
        )
        assert number <= len(self.asked)
        return body

    def close(self) -> None:
        self.sock.close()


class VirtualLine:
    """One connection to a broker in virtual time."""

    def __init__(self, world: VirtualWorld, broker_id: int) -> None:
        self.driver, self.broker_id = world.driver, broker_id
        self.client = OneAnswer()
        self.driver.add_client(self.client)

    def send(self, api_key: int, version: int, body: Any) -> None:
        self.client.wire.send(self.broker_id, api_key, version, body)

    def outcome(self, limit_ms: int = 5_000) -> Any:
        answers, lost = self.client.answers, self.client.lost
        if not self.driver.run_until_condition(lambda: bool(answers or lost), limit_ms):
            return SILENT
        return answers.pop(min(answers)) if answers else CLOSED

    def close(self) -> None:
        self.client.wire.disconnect(self.broker_id)


class Stage:
    """A world, its lines, and its rules."""

    def __init__(self, world: Any) -> None:
        self.world: Any = world
        self.lines: list[Any] = []
        self.rules = world.cluster if isinstance(world, LiveWorld) else world.driver
        world.wait_for_isr(1, 2, 3)

    def line(self, broker_id: int = 1) -> Any:
        kind: Any = LiveLine if isinstance(self.world, LiveWorld) else VirtualLine
        self.lines.append(kind(self.world, broker_id))
        return self.lines[-1]

    def add(self, **words: Any) -> str:
        name: str = self.rules.add_rule(rule(**words))
        return name

    def now_ms(self) -> float:
        if isinstance(self.world, LiveWorld):
            return time.monotonic() * 1000
        return self.rules.now_ms

    def hits(self) -> list[Note]:
        if isinstance(self.world, LiveWorld):
            return [x.note for x in self.rules.events() if isinstance(x.event, RuleHit)]
        return [note for note in self.rules.notes if isinstance(note.event, RuleHit)]

    def end(self) -> int:
        """The log end of orders-0."""
        return self.world.partition().log_end_offset or 0
