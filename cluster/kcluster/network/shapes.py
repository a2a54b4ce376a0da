"""How a link that is not perfect treats a message: latency, jitter, loss, bandwidth.

Owns: Shape, and how long one message takes over it.  Never: carries anything, knows what is cut.
Kafka: no counterpart; tc-netem and tc-tbf under TCP.

All of it is under TCP, so nothing arrives out of order, and what is lost is sent again: after
200 ms, then after twice as long each time, and what came behind it waits as long.  What is lost so
often that this takes longer than a request may is lost for good, and its connection is reset.
# DIFFERS: Linux sends a segment 15 times again, for a quarter of an hour (tcp_retries2); but long
# before, at 30 s, Kafka's own request timeouts have closed the connection.
# DIFFERS: a message is lost or not as a whole, whatever its size: a hole within one is found by
# what comes behind it, within a round trip (RFC 5681), and hardly delays.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kcluster.contract import Rng
from kcluster.events.words import impairment_text

DISTRIBUTIONS: Final = ("constant", "uniform", "normal", "exponential")
RETRANSMIT_US: Final = 200_000
"""Linux's least retransmission timeout."""
MAX_RETRANSMISSIONS: Final = 7
"""The last of them comes after 25.4 s."""
RESET_US: Final = 30_000_000
"""When a message was lost in all of them, and its connection is given up."""
LOST: Final = -1
MESSAGE_BYTES: Final = 100
"""What a message counts besides its records."""
_TO_NORMAL: Final = 12
"""The sum of so many uniform numbers, less its half, is normal enough (variance 1)."""


class Shape(Struct, frozen=True):
    """What is added to one way of a link.  `latency_us` is the mean; `jitter_us`: half the width
    of `uniform`, the standard deviation of `normal`, what `exponential` adds on average (a long
    tail).  `loss`: the share of messages that must be sent again; `bytes_per_s` 0: no limit."""

    latency_us: int = 0
    jitter_us: int = 0
    distribution: str = "constant"
    loss: float = 0.0
    bytes_per_s: int = 0

    def __str__(self) -> str:
        return impairment_text(
            self.latency_us, self.jitter_us, self.distribution, self.loss, self.bytes_per_s
        )


class Layer:
    """A shape at work on one way of a link, and until when it is busy with what was sent before."""

    __slots__ = ("busy_until_us", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.busy_until_us = 0

    def delay_us(self, now_us: int, message: Any, rng: Rng) -> int:
        """How long a message that comes now takes to get through; LOST if it never does."""
        shape = self.shape
        wait_us = 0
        if shape.bytes_per_s:
            takes_us = size_of(message) * 1_000_000 // shape.bytes_per_s
            self.busy_until_us = max(self.busy_until_us, now_us) + takes_us
            wait_us = self.busy_until_us - now_us
        wait_us += shape.latency_us + _jitter_us(shape, rng)
        if shape.loss:
            again_us = _retransmission_us(shape.loss, rng)
            if again_us == LOST:
                return LOST
            wait_us += again_us
        return max(0, wait_us)


def _jitter_us(shape: Shape, rng: Rng) -> int:
    if not shape.jitter_us:
        return 0
    if shape.distribution == "exponential":
        # A sum of halvings is geometric, the discrete exponential: no logarithm, no rounding that
        # could differ between machines.
        step_us = max(1, shape.jitter_us // 8)
        total_us = 0
        while rng.random() < 8 / 9 and total_us < 100 * shape.jitter_us:
            total_us += step_us
        return total_us
    if shape.distribution == "normal":
        drawn = sum(rng.random() for _ in range(_TO_NORMAL)) - _TO_NORMAL / 2
        return max(-shape.latency_us, round(drawn * shape.jitter_us))
    drawn = 2 * rng.random() - 1
    return max(-shape.latency_us, round(drawn * shape.jitter_us))


def _retransmission_us(loss: float, rng: Rng) -> int:
    """The timeouts that pass until a message gets through; LOST if there are too many."""
    total_us, timeout_us = 0, RETRANSMIT_US
    for _ in range(MAX_RETRANSMISSIONS + 1):
        if rng.random() >= loss:
            return total_us
        total_us += timeout_us
        timeout_us *= 2
    return LOST


def size_of(message: Any) -> int:
    """About how many bytes a message has on the wire: its records, and a little more."""
    return MESSAGE_BYTES + _records_bytes(getattr(message, "body", message))


def _records_bytes(body: Any) -> int:
    if isinstance(body, (bytes, bytearray, memoryview)):
        return len(body)
    if isinstance(body, list | tuple):
        return sum(_records_bytes(item) for item in body)
    size: int | None = getattr(body, "size_bytes", None)
    if size is not None:
        return size  # a batch
    fields = getattr(body, "__struct_fields__", ())
    return sum(
        _records_bytes(value)
        for field in fields
        if isinstance(value := getattr(body, field), (bytes, bytearray, memoryview, list, Struct))
    )
