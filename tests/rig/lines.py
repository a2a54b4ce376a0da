"""One connection to one broker, on either driver.

Owns: ByteLine, VirtualLine.  Never: decides what to send; asserts what a test is about.
Kafka: a broker answers the requests of one connection in their order.
"""

from __future__ import annotations

import struct
from typing import Any

from kcluster.clients.wire import Wire
from kcluster.handle.virtual import VirtualDriver
from kcluster.protocol.framing import decode_response_frame, encode_request_frame

CLOSED, SILENT = "closed", "silent"


class ByteLine:
    """A blocking socket, of the kernel or in memory."""

    def __init__(self, sock: Any) -> None:
        self.sock = sock
        self.asked: list[tuple[int, int]] = []

    def send(self, api_key: int, version: int, body: Any) -> None:
        self.asked.append((api_key, version))
        number = len(self.asked)
        frame = encode_request_frame(api_key, version, number, "test", body)
        self.sock.sendall(b"".join(frame))

    def outcome(self, limit_ms: int = 5_000) -> Any:
        """The next response, CLOSED, or SILENT when the time is over."""
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
    """A simulated client that keeps the responses it gets."""

    deadline_ms: int | None = None

    def __init__(self, driver: VirtualDriver, broker_id: int) -> None:
        self.driver, self.broker_id = driver, broker_id
        self.answers: dict[int, Any] = {}
        self.lost: list[int] = []
        driver.add_client(self)

    def start(self, wire: Wire, now_ms: int) -> None:
        self.wire = wire

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.answers[correlation_id] = body

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.lost.append(broker_id)

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("it has no deadline")

    def send(self, api_key: int, version: int, body: Any) -> None:
        self.wire.send(self.broker_id, api_key, version, body)

    def outcome(self, limit_ms: int = 5_000) -> Any:
        """The next response, CLOSED, or SILENT when the time is over."""
        answers, lost = self.answers, self.lost
        if not self.driver.run_until_condition(lambda: bool(answers or lost), limit_ms):
            return SILENT
        return answers.pop(min(answers)) if answers else CLOSED

    def close(self) -> None:
        self.wire.disconnect(self.broker_id)


def read_frame(sock: Any) -> bytes:
    """One response frame, without its size."""
    (size,) = struct.unpack(">i", _read_exactly(sock, 4))
    return _read_exactly(sock, size)


def _read_exactly(sock: Any, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = sock.recv(min(size - len(data), 1 << 20))
        assert chunk, f"closed after {len(data)} of {size} bytes"
        data += chunk
    return bytes(data)
