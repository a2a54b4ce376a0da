"""The periodic tasks: what they leave to do, and what they cost."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kcluster.broker.node import BrokerNode
from kcluster.broker.replication.backlog import Backlog
from kcluster.broker.replication.replicas import Replicas
from kcluster.config.kafka.definitions import TopicConfig
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.handle.virtual import VirtualDriver
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.partition.log.compaction import compact
from kcluster.partition.log.log import Log
from kcluster.partition.log.retention import expire
from kcluster.partition.replica import Replica
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.timers import NEVER_MS
from tests.rig.cluster import Simulated, VirtualRig
from tests.rig.counting import calls_of

SHORT_TASKS = {
    "log.retention.check.interval.ms": 1_000,
    "log.cleaner.backoff.ms": 1_000,
    "replica.high.watermark.checkpoint.interval.ms": 1_000,
    "log.flush.scheduler.interval.ms": 1_000,
}


def calls_of_an_idle_second(partitions: int) -> int:
    """How many functions run in a second in which nothing happens."""
    topics = {"many": {"partitions": partitions, "replication_factor": 3}}
    driver = VirtualDriver(Topology.of(brokers=3, profile="fast", topics=topics), 1)
    driver.open()
    driver.run_for(10_000)
    return calls_of(lambda: driver.run_for(1_000))


@pytest.mark.pure_python  # compiled functions are not counted
def test_idle__a_second_costs_the_same_whatever_the_number_of_replicas() -> None:
    assert calls_of_an_idle_second(300) == calls_of_an_idle_second(3)


def all_replicas(t: Simulated) -> list[Replica]:
    nodes = [process.node for process in t.dispatcher.processes.values()]
    return [
        replica for node in nodes if isinstance(node, BrokerNode) for replica in node.replicas.all()
    ]


@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete"])
def test_tasks__leave_nothing_that_a_look_at_every_replica_would_find(policy: str) -> None:
    """Produce, kill, lose power, change configs; then a task that looks at all finds nothing."""
    random = Random(policy)
    t = Simulated(
        of_brokers=SHORT_TASKS,
        segment_ms=2_000,
        flush_ms=1_000,
        cleanup_policy=policy,
        retention_ms=20_000,
        min_cleanable_dirty_ratio=0.01,
    )
    for _ in range(30):
        t.produce(random.randbytes(4), key=b"k", to=random.randrange(3) + 1)
        t.run_for(random.randrange(3_000))
        broker = random.randrange(3) + 1
        match random.randrange(8):
            case 0 if t.dispatcher.processes[broker].node is not None:
                t.kill(broker, random.choice(["kill", "power", "clean"]))
            case 1:
                for each in (1, 2, 3):
                    if t.dispatcher.processes[each].state.value == "down":
                        t.start(each)
    for each in (1, 2, 3):
        if t.dispatcher.processes[each].state.value == "down":
            t.start(each)
    t.run_for(60_000)
    assert t.isr == [1, 2, 3]
    for at_ms in range(3):
        t.run_for(at_ms)  # whatever the phase of the tasks
        replicas = all_replicas(t)
        assert len(replicas) == 3
        for replica in replicas:
            log, watermark = replica.log, replica.high_watermark
            assert log.high_watermark_checkpoint == watermark
            assert not log.has_unflushed
            assert not expire(log, t.now_ms, replica.config, watermark)
            if "compact" in policy:
                assert not compact(log, t.now_ms, replica.config, watermark)


def test_write_back__finds_what_an_earlier_life_has_not_written() -> None:
    topology: dict[str, Any] = {
        "brokers": 1,
        "topics": {"orders": {"partitions": 2}},
        "write_back": "10s",
    }
    t = VirtualRig(Topology.of(**topology))
    t.open()
    t.run_for(1_000)
    t.produce(b"m1")
    t.kill(1)
    t.kill(CONTROLLER_ID)  # so that the next life hosts no replica yet
    t.start(1)
    assert any(log.has_unflushed for log in t.plan.disks[1])
    t.run_for(20_000)
    assert not any(log.has_unflushed for log in t.plan.disks[1])


# -------------------------------------------------------------------------- changed replicas


def test_changes__each_reader_takes_them_once() -> None:
    hosted = Replicas(MetadataImage(), {})
    first, second, third = map(replica_number, (1, 2, 3))
    hosted.add(first)
    early = hosted.read_changes()
    assert list(early.take()) == [first]  # whatever there is when it begins to read
    hosted.add(second)
    hosted.changed[second] = None
    late = hosted.read_changes()
    hosted.add(third)
    hosted.changed[third] = None
    assert list(late.take()) == [first, second, third]
    assert list(early.take()) == [second, third]
    assert early.take() == late.take() == {}


def test_changes__what_is_hosted_no_longer_is_forgotten() -> None:
    hosted = Replicas(MetadataImage(), {})
    first, second = map(replica_number, (1, 2))
    hosted.add(first)
    hosted.add(second)
    reader = hosted.read_changes()
    hosted.changed[second] = None
    hosted.remove(first)
    hosted.remove(second)
    assert reader.take() == {}


# -------------------------------------------------------------------------------- the backlog


def replica_number(number: int) -> Replica:
    registration = PartitionRegistration(bytes(16), number, (1,), (1,), 1, 0, 0)
    log = Log(bytes(16), number)
    replica = Replica("t", registration, 1, log, TopicConfig(), {}, {}, 30_000, {})
    replica.number = number
    replica.lead(registration, 0)
    return replica


def test_backlog__takes_what_changed_and_what_is_due_in_the_order_of_hosting() -> None:
    first, second, third = map(replica_number, (1, 2, 3))
    backlog = Backlog()
    backlog.add([third])
    backlog.look_again(first, 5)
    backlog.look_again(second, 6)
    assert backlog.take(5) == [first, third]
    assert backlog.take(5) == []
    assert backlog.take(6) == [second]
    assert len(backlog) == 0


def test_backlog__a_change_comes_before_the_due_time_and_replaces_it() -> None:
    replica = replica_number(1)
    backlog = Backlog()
    backlog.look_again(replica, 5)
    backlog.add([replica])
    assert backlog.take(1) == [replica]
    assert backlog.take(5) == []


def test_backlog__never_is_not_kept() -> None:
    backlog = Backlog()
    backlog.look_again(replica_number(1), NEVER_MS)
    assert len(backlog) == 0
    assert backlog.take(NEVER_MS) == []


def test_backlog__keeps_no_replica_that_is_gone() -> None:
    due, changed, retired = map(replica_number, (1, 2, 3))
    backlog = Backlog()
    backlog.look_again(due, 5)
    backlog.add([changed, retired])
    backlog.forget(due)
    backlog.forget(changed)
    retired.retire()
    assert backlog.take(5) == []
    assert len(backlog) == 0


def test_backlog__due_times_that_moved_do_not_pile_up() -> None:
    replica = replica_number(1)
    backlog = Backlog()
    for at_ms in range(1_000):
        backlog.add([replica])
        backlog.take(0)
        backlog.look_again(replica, 1_000 + at_ms)
    assert len(backlog._heap) <= 65
    assert backlog.take(1_998) == []
    assert backlog.take(1_999) == [replica]


RETAINED = """
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {segment.ms: 300, retention.ms: 900}}}
  config: {log.retention.check.interval.ms: 300, log.initial.task.delay.ms: 100}
workload: {producers: {topic: orders, rate: 20/s, stop: 2s}}
duration: 50s
steps: [{at: 8s, delete_records: {partition: orders-0, before: 1}}]
"""


def test_retention__of_a_follower_is_told_to_its_leader() -> None:
    """So DeleteRecords of what is gone already is answered at once, as in Kafka."""
    result = run_scenario(Scenario.parse(RETAINED), "virtual")
    assert result.passed, result.failures
