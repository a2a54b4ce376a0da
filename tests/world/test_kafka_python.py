"""Users' own tests with kafka-python, as they are, in virtual time."""

from __future__ import annotations

import pytest

pytest.importorskip("kafka")

from tests.compat.on_both_clocks.counting import counts_requests
from tests.world.bodies import python_clients
from tests.world.rig import in_virtual_time, live

pytestmark = pytest.mark.pure_python


def test_a_failover_at_kafkas_own_time_constants_loses_nothing() -> None:
    with in_virtual_time() as cluster:
        began_ms = cluster.driver.clock_ms()
        outcome = python_clients.failover(cluster, records=130, kill_at=20)
        took_ms = cluster.driver.clock_ms() - began_ms
        verdict = cluster.verdict()
    assert (len(outcome.acked), outcome.failed, outcome.lost) == (130, [], [])
    assert 7 < outcome.longest_ack_s < 10, "the session timeout of a broker is 9 s"
    assert 13_000 < took_ms < 30_000
    assert verdict.outcome == "unknown", "a broker is dead, and two replicas are as it left them"


def test_threads_pools_and_queues_of_a_service_survive_a_death_and_a_pause() -> None:
    topics = {"orders": {"partitions": 6, "replication_factor": 3}}
    topics["payments"] = topics["orders"]
    with in_virtual_time(topics) as cluster:
        outcome = python_clients.busy_service(cluster, records=100)
        verdict = cluster.verdict()
    assert (len(outcome.acked), outcome.failed, outcome.lost) == (200, [], [])
    assert verdict


def test_the_same_requests_are_sent_on_both_clocks() -> None:
    with in_virtual_time(profile="fast") as cluster:
        virtual = counts_requests(cluster)
        python_clients.two_halves(cluster)
    with live() as cluster:
        real = counts_requests(cluster)
        python_clients.two_halves(cluster)
    counted = {api: (real[api], virtual[api]) for api in real | virtual}
    # On a busy machine a client asks more often, and needs heartbeats; it never asks much less.
    assert {api for api in real if not virtual[api]} <= {"HEARTBEAT"}, counted
    assert {api for api in virtual if not real[api]} == set(), counted
    assert [api for api, (one, two) in counted.items() if one < two - 3] == [], counted
