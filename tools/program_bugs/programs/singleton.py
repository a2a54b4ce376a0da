"""The member with partition 0 runs the job, and goes on with it while another one has begun.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener
from shop import Jobs, consumer_of, polled, twins

JOB_S = 3


class Owner(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """Runs the job in a thread while the member owns partition 0."""

    def __init__(self, jobs: Jobs, has_bug: bool) -> None:
        self.jobs, self.has_bug = jobs, has_bug
        self.is_owner = False
        self.lock = threading.Lock()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        while True:
            with self.lock:
                if self.is_owner:
                    with self.jobs.one():
                        self.jobs.look()
                        time.sleep(JOB_S)
            time.sleep(1)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.is_owner = False
        if not self.has_bug:
            with self.lock:
                pass  # the job has ended

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.is_owner = any(part.partition == 0 for part in assigned)


def member(cluster: Any, jobs: Jobs, has_bug: bool) -> None:
    consumer = consumer_of(cluster, session_timeout_ms=30_000)
    consumer.unsubscribe()
    consumer.subscribe(["orders"], listener=Owner(jobs, has_bug))
    while True:
        polled(consumer)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_one_job_runs_at_a_time(kafka_cluster: Any, has_bug: bool) -> None:
    jobs = Jobs()
    for name in ("left", "right"):
        kafka_cluster.run(member, kafka_cluster, jobs, has_bug, name=name, restart_after="1s")
    time.sleep(60)
    assert jobs.most < 2, "two jobs ran at once"
