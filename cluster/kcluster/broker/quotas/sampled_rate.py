"""Rates over a ring of sample windows, in Kafka's two ways of counting the time.

Owns: the samples and the arithmetic.  Never: a limit, or the consequences of exceeding one
(client_quotas.py, connection_quotas.py, replication_throttle.py).  Kafka:
org.apache.kafka.common.metrics.stats.SampledStat, Rate, SimpleRate.
"""

from __future__ import annotations

from typing import final


@final
class _Sample:
    """The amount recorded within one window."""

    __slots__ = ("last_event_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_event_ms = now_ms
        self.value = 0.0

    def reset(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_event_ms = now_ms
        self.value = 0.0


class SampledRate:
    """Amount per second over the last `window_count` windows of `window_ms`.  Kafka: Rate.

    All windows but the current one count in full, even windows before the first record: a client
    that starts, or returns after a pause, may at once use the allowance of those windows.
    """

    __slots__ = ("_current", "_samples", "_window_count", "_window_ms")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._window_count = window_count
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Add `amount`; a negative amount takes back an earlier one."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._next_window(now_ms)
        sample.value += amount
        sample.last_event_ms = now_ms

    def _next_window(self, now_ms: int) -> _Sample:
        # One sample more than windows, because the oldest may lie half within the measured time.
        self._current = (self._current + 1) % (self._window_count + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def measure(self, now_ms: int) -> float:
        """The current rate, per second."""
        measured_ms = self.measured_ms(now_ms)
        total = 0.0
        for sample in self._samples:
            total += sample.value
        return total * 1000 / measured_ms

    def measured_ms(self, now_ms: int) -> int:
        """The length of time over which `measure` measures."""
        elapsed_ms = self._elapsed_ms(now_ms)
        missing = self._window_count - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)

    def _elapsed_ms(self, now_ms: int) -> int:
        """The time since the oldest sample that still counts; older ones are reset."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        oldest_ms, keep_ms = now_ms, self._window_count * self._window_ms
        for sample in self._samples:
            if now_ms - sample.last_event_ms >= keep_ms:
                sample.reset(now_ms)
            oldest_ms = min(oldest_ms, sample.start_ms)
        return now_ms - oldest_ms


@final
class SimpleRate(SampledRate):
    """Amount per second over the time since the oldest sample, but at least one window.  Kafka:
    SimpleRate.

    The first window counts in full from its start, so that the first bytes are no burst.
    """

    __slots__ = ()

    def measured_ms(self, now_ms: int) -> int:
        return max(self._elapsed_ms(now_ms), self._window_ms)

    def start_idle(self, now_ms: int) -> None:
        """Begin as if there had been next to no traffic during all windows."""
        for ago in range(self._window_count, 0, -1):
            self._samples.append(_Sample(now_ms - ago * self._window_ms))
            self._samples[-1].last_event_ms += self._window_ms - 1
        self._current = len(self._samples) - 1
