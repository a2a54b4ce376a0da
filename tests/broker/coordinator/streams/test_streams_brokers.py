"""Streams groups on three real brokers in virtual time: internal topics, and failovers."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.streams.configured import StreamsStatus
from kcluster.config.topology.model import Topology
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.streams.declared import declared, part, topic
from tests.broker.coordinator.streams.streams_members import StreamsThread, settle
from tests.broker.coordinator.test_real_brokers import Broker, coordinator
from tests.rig.cluster import VirtualRig

DELAY_MS = 30
"""group.streams.initial.rebalance.delay.ms, a hundredth of Kafka's."""

WORD_COUNT = declared(
    part("0", ["lines"], sinks=["g-words"]),
    part(
        "1",
        repartition=[topic("g-words", replication_factor=2)],
        changelogs=[topic("g-counts", cleanup_policy="compact")],
        together=([], [0]),
    ),
)


def started(**more: Any) -> tuple[VirtualRig, Broker]:
    """A cluster with `lines`, of three partitions, and the coordinator of group `g`."""
    topics = {"lines": {"partitions": 3, "replication_factor": 3}}
    config = {"offsets.topic.num.partitions": 3, "default.replication.factor": 3}
    topology = Topology.of(
        brokers=3, topics=topics, config=config | more.pop("config", {}), profile="fast", **more
    )
    rig = VirtualRig(topology, seed=5)
    rig.open()
    rig.run_for(500)
    first = coordinator(rig, via=1)
    rig.run_for(200)
    return rig, first


def settled(rig: VirtualRig, *threads: StreamsThread) -> None:
    for thread in threads:
        assert thread.join() is ErrorCode.NONE
    rig.run_for(50)  # internal topics are created
    for thread in threads:
        thread.beat()
    rig.run_for(DELAY_MS)
    settle(*threads)


def described_topic(rig: VirtualRig, name: str) -> tuple[int, int]:
    """(partitions, replication factor)."""
    (found,) = (
        Broker(rig, 1).call(m.MetadataRequest([m.MetadataRequest.MetadataRequestTopic(name=name)]))
    ).topics
    return len(found.partitions), len(found.partitions[0].replica_nodes)


def test_streams_brokers__the_coordinator_creates_internal_topics() -> None:
    rig, first = started()
    a = StreamsThread(first, "a", WORD_COUNT)
    a.join()
    assert StreamsStatus.MISSING_INTERNAL_TOPICS in a.statuses
    settled(rig, a)
    assert a.active == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
    assert described_topic(rig, "g-words") == (3, 2)
    assert described_topic(rig, "g-counts") == (3, 3)
    configs = m.DescribeConfigsRequest(
        [m.DescribeConfigsRequest.DescribeConfigsResource(2, "g-counts", ["cleanup.policy"])]
    )
    (described,) = first.call(configs).results
    assert described.configs[0].value == "compact"


def test_streams_brokers__why_a_topic_was_not_created_is_reported_for_two_heartbeats() -> None:
    rig, first = started(config={"group.streams.heartbeat.interval.ms": 50})
    wide = declared(part("0", ["lines"], changelogs=[topic("g-log", replication_factor=9)]))
    a = StreamsThread(first, "a", wide)
    a.join()
    rig.run_for(20)
    a.beat()
    detail = a.answer.status[-1].status_detail
    assert detail.startswith("missing internal topics: g-log; could not create g-log (")
    rig.run_for(100)
    a.beat()
    assert "could not create" not in a.answer.status[-1].status_detail  # it is tried again
    rig.run_for(20)
    a.beat()
    assert "could not create" in a.answer.status[-1].status_detail


def test_streams_brokers__tasks_survive_the_death_of_their_coordinator() -> None:
    rig, first = started()
    a, b = StreamsThread(first, "a", WORD_COUNT), StreamsThread(first, "b", WORD_COUNT)
    settled(rig, a, b)
    before = (a.active, b.active)
    assert len(a.active) == len(b.active) == 3
    rig.kill(first.id)
    rig.run_for(300)
    second = coordinator(rig, via=first.others[0])
    assert second.id != first.id
    a.broker = b.broker = second
    settle(a, b)
    assert (a.active, b.active) == before
    b.leave()
    rig.run_for(50)
    settle(a)
    assert len(a.active) == 6


def test_streams_brokers__a_coordinator_without_followers_changes_nothing() -> None:
    rig, first = started()
    a, b = StreamsThread(first, "a", WORD_COUNT), StreamsThread(first, "b", WORD_COUNT)
    settled(rig, a)
    rig.cut_off(first.id)
    assert b.join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    rig.run_for(200)
    a.broker = b.broker = coordinator(rig, via=first.others[0])
    assert a.broker.id != first.id
    b.epoch = 1
    assert b.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    settle(a)
    rig.heal()
    rig.run_for(300)
    assert b.join() is ErrorCode.NONE
    rig.run_for(50)
    settle(a, b)
    assert len(a.active) == len(b.active) == 3


@pytest.mark.parametrize(
    "off",
    [
        {"features": {"streams.version": 0}},
        {"config": {"group.coordinator.rebalance.protocols": "classic,consumer"}},
    ],
    ids=["feature", "protocol"],
)
def test_streams_brokers__serve_no_streams_groups_when_they_are_off(off: dict[str, Any]) -> None:
    _, first = started(**off)
    a = StreamsThread(first, "a", WORD_COUNT)
    assert a.join() is ErrorCode.UNSUPPORTED_VERSION
    (described,) = first.call(m.StreamsGroupDescribeRequest(["g"])).groups
    assert described.error_code == ErrorCode.UNSUPPORTED_VERSION
