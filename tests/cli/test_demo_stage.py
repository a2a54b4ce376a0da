"""Which topology and topic the demo uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.cli.work.demo import set_the_stage, survives_a_broker
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import TopicSpec


def test_stage__uses_free_ports_whatever_the_topology_sets(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("brokers: [{id: 1, port: 9092, advertised: here:1}, {id: 2}]\n")
    topology, topic = set_the_stage(str(path), "fast")
    assert [broker.port for broker in topology.brokers] == [0, 0]
    assert [broker.advertised for broker in topology.brokers] == [None, None]
    assert topic == "orders"
    assert topology.topics["orders"].replication_factor == 2


def test_stage__uses_the_first_topic_that_survives_a_broker(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "brokers: 3\n"
        "topics:\n"
        "  single: {replication_factor: 1}\n"
        "  strict: {replication_factor: 2, config: {min.insync.replicas: 2}}\n"
        "  good: {replication_factor: 2}\n"
    )
    assert set_the_stage(str(path), "fast")[1] == "good"


@pytest.mark.parametrize(
    ("spec", "outlives"),
    [
        (TopicSpec("t", replication_factor=3, config={"min.insync.replicas": "2"}), True),
        (TopicSpec("t", replication_factor=1), False),
        (TopicSpec("t", assignment=((1, 2), (2,))), False),
    ],
)
def test_outlives__needs_a_second_replica_that_alone_accepts_writes(
    spec: TopicSpec, outlives: bool
) -> None:
    assert survives_a_broker(spec) is outlives


def test_stage__uses_the_profile_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("brokers: 3\nprofile: kafka\n")
    topology, _ = set_the_stage(str(path), "fast")
    assert isinstance(topology, Topology)
    assert topology.profile == "fast"
