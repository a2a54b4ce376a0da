"""The load behind the memory figures keeps to its rate."""

from __future__ import annotations

import time

import pytest


@pytest.mark.clients
def test_passing__waits_until_the_given_time_although_each_poll_returns_early() -> None:
    from bench.clients.passing import serve_until

    class Reporting:
        """Like librdkafka's producer while reports keep coming: no poll waits."""

        polls = 0

        def poll(self, timeout_s: float) -> int:
            assert timeout_s > 0
            self.polls += 1
            return 1

    producer = Reporting()
    at_s = time.perf_counter() + 0.01
    serve_until(producer, at_s)
    assert time.perf_counter() >= at_s
    assert producer.polls > 1
    serve_until(producer, at_s)  # the time has passed: it returns at once
