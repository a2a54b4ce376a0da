"""Live clusters for real clients: one per module to share, or one per test to break."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

import kafka
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_consumer,
    confluent_settings,
    python_admin,
)
from tests.garbage import collect_silently

_NUMBERS = itertools.count(1)

MakeTopic = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "foreign_clients":
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def _sockets_left_open() -> Iterator[None]:
    """kafka-python does not close the socket of a connection that was refused.  References to
    some remain in log records that pytest keeps, and in threads that end soon afterwards."""
    logger = logging.getLogger("kafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    others = threading.enumerate()
    yield
    logger.setLevel(before)
    for thread in threading.enumerate():
        if thread.name.startswith("kafka-io") and thread not in others:
            thread.join(LIMIT_S)
    collect_silently()


SESSIONS = {"group.consumer.session.timeout.ms": 10_000, "group.share.session.timeout.ms": 10_000}
"""For members with no session timeout of their own (KIP-848, KIP-932).  Those of the profile are
450 ms: on a busy machine the threads of a client rest for longer, and the group loses its members
again and again."""


def three_brokers(**config: Any) -> Topology:
    return Topology.of(brokers=3, profile="fast", config={**SESSIONS, **config})


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """Three brokers that all tests of a module use; no test breaks anything."""
    with Cluster(three_brokers()) as running:
        yield running


@pytest.fixture(scope="module")
def admin(shared: Cluster) -> AdminClient:
    return AdminClient(confluent_settings(shared.bootstrap))


@pytest.fixture(scope="module")
def python(shared: Cluster) -> Iterator[kafka.KafkaAdminClient]:
    """It does not wait for a coordinator, so __consumer_offsets is created first."""
    with confluent_consumer(shared.bootstrap, group_id="first") as consumer:
        consumer.committed([TopicPartition("nowhere", 0)], LIMIT_S)
    with python_admin(shared.bootstrap) as client:
        yield client


@pytest.fixture
def make_topic(shared: Cluster, admin: AdminClient) -> MakeTopic:
    """Create a topic for one test; returns its name."""

    def make(partitions: int = 1, replication_factor: int = 3, **config: str) -> str:
        name = f"topic-{next(_NUMBERS)}"
        new = NewTopic(name, partitions, replication_factor, config=config)
        admin.create_topics([new])[name].result(LIMIT_S)
        for partition in range(partitions):
            shared.wait_for(isr=(name, partition, replication_factor))
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """One partition, three replicas."""
    return make_topic()


@pytest.fixture
def group() -> str:
    return f"group-{next(_NUMBERS)}"


@pytest.fixture
def own() -> Iterator[Cluster]:
    """Three brokers for one test to break; `orders` has a partition led by 1, replicated by all."""
    topics = {"orders": {"assignment": [[1, 2, 3]], "config": {"min.insync.replicas": 2}}}
    topology = Topology.of(brokers=3, profile="fast", topics=topics, config=SESSIONS)
    with Cluster(topology) as running:
        yield running
