"""kcat on a live cluster, through the death of a leader (docs/reference/tools.md).

Owns: that these commands do what they do on Kafka.  Never: starts kcat where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster

KCAT = shutil.which("kcat")
pytestmark = pytest.mark.skipif(KCAT is None, reason="needs kcat (apt install kcat)")

Kcat = Callable[..., str]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    topics = {"orders": {"assignment": [[1, 2, 3]]}}
    with Cluster(Topology.of(3, profile="fast", topics=topics)) as running:
        yield running


@pytest.fixture
def kcat(cluster: Cluster) -> Kcat:
    def run(*words: str, typed: str = "") -> str:
        command = [str(KCAT), "-b", cluster.bootstrap, *words]
        done = subprocess.run(
            command, input=typed, capture_output=True, text=True, timeout=30, check=True
        )
        return done.stdout

    return run


def test_kcat__lists_the_brokers_and_the_partition(kcat: Kcat) -> None:
    listed = kcat("-L", "-t", "orders")
    assert "3 brokers:" in listed
    assert "partition 0, leader 1, replicas: 1,2,3, isrs: 1,2,3" in listed


def test_kcat__writes_and_reads_through_the_death_of_a_leader(cluster: Cluster, kcat: Kcat) -> None:
    kcat("-P", "-t", "orders", "-X", "acks=all", typed="one\ntwo\n")
    cluster.kill("leader(orders-0)")
    kcat("-P", "-t", "orders", "-X", "acks=all", typed="three\n")
    assert kcat("-C", "-t", "orders", "-o", "beginning", "-e").split() == ["one", "two", "three"]
    assert kcat("-Q", "-t", "orders:0:-1").strip() == "orders [0] offset 3"
