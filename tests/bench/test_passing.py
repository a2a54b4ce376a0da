"""The load of the memory figures is no faster than it says."""

from __future__ import annotations

import time

import pytest


@pytest.mark.clients
def test_passing__waits_out_its_time_though_each_poll_ends_with_a_report() -> None:
    from bench.clients.passing import serve_until

    class Reporting:
        """As librdkafka's producer while reports keep coming: no poll waits."""

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
    serve_until(producer, at_s)  # behind its time: it goes on at once
