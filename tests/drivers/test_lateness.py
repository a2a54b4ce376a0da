"""A live cluster whose own loop is late ages nobody for it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.drivers.live import LiveDriver
from kcluster.drivers.live_clock import GRACE_US, MAX_COMPUTED_US, counted_us
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from tests.rig.patience import PATIENCE_S

STALL_S = 0.5
"""Longer than a session of profile `fast`: 450 ms."""
SESSION_MS = 450


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    topics = {"orders": {"partitions": 1, "assignment": [[1, 2, 3]]}}
    topology = Topology.of(brokers=3, topics=topics, profile="fast")
    with Cluster(topology, record=False) as running:
        yield running


@pytest.mark.parametrize(
    ("late_us", "computed_us", "counted"),
    [
        (-1, 0, -1),  # nothing is due yet
        (0, 0, 0),
        (GRACE_US, 0, GRACE_US),
        (8_000_000, 0, GRACE_US),  # it was stopped, or got no CPU
        (30_000, 20_000, GRACE_US + 20_000),
        (30_000, 30_000, 30_000),  # it computed all the time
        (5_000_000, 5_000_000, GRACE_US + MAX_COMPUTED_US),
    ],
)
def test_counted__time_without_cpu_is_no_time(late_us: int, computed_us: int, counted: int) -> None:
    assert counted_us(late_us, computed_us) == counted


def stall(cluster: Cluster) -> int:
    """Keep the hub from doing anything; by how many ms the cluster's clock advanced meanwhile."""

    def block() -> int:
        began_ms = cluster.driver.now_ms()
        threading.Event().wait(STALL_S)
        return began_ms

    began_ms = cluster.call(block)
    return cluster.call(cluster.driver.now_ms) - began_ms


def test_stall__costs_the_cluster_hardly_any_time(cluster: Cluster) -> None:
    since = cluster.events()[-1].sequence
    shown_ms: list[int] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.01):
            shown_ms.append(cluster.driver.clock_ms())

    looking = threading.Thread(target=look)
    looking.start()
    assert stall(cluster) < SESSION_MS / 2
    is_over.set()
    looking.join()
    assert cluster.events(since) == []
    assert shown_ms == sorted(shown_ms), "it shows no more than has happened, or it would go back"


def test_stall__a_heartbeat_that_arrived_meanwhile_counts(cluster: Cluster) -> None:
    with coordinator_of(cluster, "billing") as sock:
        joined = heartbeat(sock, epoch=0, subscribed=["orders"])
        assert joined.error_code == ErrorCode.NONE
        stalling = threading.Thread(target=stall, args=(cluster,))
        stalling.start()
        again = heartbeat(sock, epoch=joined.member_epoch)
        stalling.join()
    assert again.error_code == ErrorCode.NONE, "its session has not expired"


def test_turn__what_has_arrived_is_read_before_what_is_due(cluster: Cluster) -> None:
    driver: LiveDriver = cluster.driver
    due_us: list[int] = []

    def look() -> None:
        """As a socket that is ready at the same moment as a deadline."""
        dispatcher = driver.dispatcher
        due_us.append(dispatcher.quiet_until_us)
        while time.monotonic_ns() // 1000 + driver.clock.offset_us <= due_us[0]:
            pass
        driver.wake()
        due_us.append(dispatcher.now_us)

    cluster.call(look)
    assert due_us[1] < due_us[0]
    cluster.wait_for("settled")


def test_resumed__deadlines_long_past_do_not_hold_the_clock_back(cluster: Cluster) -> None:
    driver: LiveDriver = cluster.driver

    def look() -> int:
        driver.pass_deadlines()
        offset_us = driver.clock.offset_us
        driver.dispatcher.quiet_until_us -= 10_000_000
        driver.pass_deadlines()
        return offset_us - driver.clock.offset_us

    assert cluster.call(look) < 1_000_000


def coordinator_of(cluster: Cluster, group: str) -> socket.socket:
    """A connection to the broker that coordinates the group."""
    body = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    while True:
        with socket.create_connection(cluster.plan.addresses[1], timeout=PATIENCE_S) as sock:
            (found,) = ask(sock, ApiKey.FIND_COORDINATOR, 4, body).coordinators
        if found.error_code == ErrorCode.NONE:
            return socket.create_connection((found.host, found.port), timeout=PATIENCE_S)


def heartbeat(sock: socket.socket, epoch: int, subscribed: list[str] | None = None) -> Any:
    """Send a heartbeat of the group's only member; its answer."""
    body = m.ConsumerGroupHeartbeatRequest(
        group_id="billing",
        member_id="one",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if epoch == 0 else -1,
        subscribed_topic_names=subscribed,
        topic_partitions=None if subscribed is None else [],
    )
    return ask(sock, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)


def ask(sock: socket.socket, api: ApiKey, version: int, body: Any) -> Any:
    """Send a request; its answer."""
    sock.sendall(b"".join(encode_request_frame(api, version, 1, "shop", body)))
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
    return decode_response_frame(api, version, sock.recv(size, socket.MSG_WAITALL))[1]
