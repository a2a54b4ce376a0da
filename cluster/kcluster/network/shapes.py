"""Impairments of one direction of a link: latency, jitter, loss, bandwidth.

Owns: LinkShape, and its delay of one message.  Never: carries a message, knows about cuts.
Kafka: no counterpart; tc-netem and tc-tbf below TCP.

All of it happens below TCP, so messages stay in order, and a lost message is retransmitted: after
200 ms, then after twice as long each time, and the messages behind it wait for it.  A message whose
retransmissions are all lost is lost for good, and its connection is reset.
# DIFFERS: Linux retransmits a segment 15 times, for a quarter of an hour (tcp_retries2); but long
# before, at 30 s, Kafka's own request timeouts have closed the connection.
# DIFFERS: a message is lost as a whole or not at all, whatever its size: the segment behind a lost
# one reveals the loss within a round trip (RFC 5681), which hardly delays a message.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.contract import Rng
from kcluster.events.words import impairment_text

DISTRIBUTIONS: Final = ("constant", "uniform", "normal", "exponential")
RETRANSMIT_US: Final = 200_000
"""Linux's minimum retransmission timeout (TCP_RTO_MIN)."""
MAX_RETRANSMISSIONS: Final = 7
"""The number of retransmissions; the last is sent after 25.4 s."""
RESET_US: Final = 30_000_000
"""The time after which the sender of a message that is lost for good resets the connection."""
MESSAGE_BYTES: Final = 100
"""The size of a message, apart from its records."""
_TO_NORMAL: Final = 12
"""The number of uniform random numbers, 12, whose sum, minus 6, is close to normal with variance
1."""


class LinkShape(Struct, frozen=True):
    """One impairment.  `latency_us` is the mean; `jitter_us`: half the width of `uniform`, the
    standard deviation of `normal`, the mean of what `exponential` adds (a long tail).  `loss`: the
    probability that one transmission of a message is lost; `bytes_per_s`: 0 for no limit."""

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
    """A shape in force on one direction of a link.  `busy_until_us`: the time at which its
    bandwidth is free."""

    __slots__ = ("busy_until_us", "shape")

    def __init__(self, shape: LinkShape) -> None:
        self.shape = shape
        self.busy_until_us = 0

    def delay_us(self, now_us: int, message: object, rng: Rng) -> int | None:
        """The delay of a message that is sent now; None if the message is lost for
        good."""
        shape = self.shape
        delay_us = 0
        if shape.bytes_per_s:
            takes_us = size_of(message) * 1_000_000 // shape.bytes_per_s
            self.busy_until_us = max(self.busy_until_us, now_us) + takes_us
            delay_us = self.busy_until_us - now_us
        delay_us += shape.latency_us + _jitter_us(shape, rng)
        if shape.loss:
            retransmission_us = _retransmission_us(shape.loss, rng)
            if retransmission_us is None:
                return None
            delay_us += retransmission_us
        return max(0, delay_us)


def _jitter_us(shape: LinkShape, rng: Rng) -> int:
    if not shape.jitter_us:
        return 0
    if shape.distribution == "exponential":
        # A geometric distribution, the discrete form of the exponential one: it needs no logarithm,
        # whose last digit could differ between machines.
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


def _retransmission_us(loss: float, rng: Rng) -> int | None:
    """The sum of the timeouts until a transmission arrives; None if none does."""
    total_us, timeout_us = 0, RETRANSMIT_US
    for _ in range(MAX_RETRANSMISSIONS + 1):
        if rng.random() >= loss:
            return total_us
        total_us += timeout_us
        timeout_us *= 2
    return None


def size_of(message: object) -> int:
    """The approximate size of a message in bytes: its records, plus MESSAGE_BYTES."""
    return MESSAGE_BYTES + _records_bytes(getattr(message, "body", message))


def _records_bytes(body: object) -> int:
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
