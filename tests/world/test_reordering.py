"""A producer without idempotence and with five requests in flight: its order is lost, and seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

pytest.importorskip("kafka")

from kafka import KafkaProducer

from tests.world.rig import in_virtual_time, live

pytestmark = pytest.mark.pure_python

TOPICS = {
    "orders": {"partitions": 1, "replication_factor": 3, "config": {"min.insync.replicas": 2}}
}


def orders_while_replicas_are_away(cluster: Any, idempotent: bool) -> bool:
    """One order per batch; the leader refuses all of them until the followers are back.  Returns
    whether they are in the log in the order of sending."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","),
        client_id="shop",
        acks="all",
        retries=1_000,
        batch_size=0,
        max_in_flight_requests_per_connection=5,
        enable_idempotence=idempotent,
    )
    producer.send("orders", b"the first").get(30)
    leader = cluster.leader("orders", 0)
    followers = [broker for broker in (1, 2, 3) if broker != leader]
    for broker in followers:
        cluster.kill(broker)
    futures = []
    for number in range(40):
        futures.append(producer.send("orders", b"order %d" % number))
        time.sleep(0.03)
    for broker in followers:
        cluster.start(broker)
    offsets = [future.get(60).offset for future in futures]
    producer.close()
    return offsets == sorted(offsets)


@pytest.mark.parametrize("on_clock", [in_virtual_time, live], ids=["virtual", "live"])
def test_reordering__is_in_the_verdict_of_a_real_producer(
    on_clock: Callable[..., AbstractContextManager[Any]],
) -> None:
    with on_clock(TOPICS, profile="fast") as cluster:
        is_in_order = orders_while_replicas_are_away(cluster, idempotent=False)
        verdict = cluster.verdict()
    if on_clock is live and is_in_order:
        pytest.skip("this time, no retry came too late")
    assert not is_in_order
    reordered = [each for each in verdict.anomalies if each.name == "nonmonotonic-send"]
    assert reordered, verdict.lines()
    assert {each.allowed for each in reordered} == {"enable.idempotence=false"}
    story = "\n".join(link.text for link in reordered[0].chain)
    assert "NOT_ENOUGH_REPLICAS" in story
    assert "was appended at offset" in story


def test_reordering__the_idempotent_twin_keeps_its_order() -> None:
    with in_virtual_time(TOPICS, profile="fast") as cluster:
        assert orders_while_replicas_are_away(cluster, idempotent=True)
        assert cluster.verdict()
