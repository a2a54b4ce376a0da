"""Moving a partition, seen at its replicas and by clients, in virtual time."""

from __future__ import annotations

from typing import Any

from kcluster.broker.node import BrokerNode
from kcluster.events.partitions import ReassignmentCompleted, ReassignmentEvent, ReassignmentStarted
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.cluster import TOPIC, Simulated

Alter = m.AlterPartitionReassignmentsRequest


def reassign(
    t: Simulated, replicas: list[int] | None, via: int = 1, timeout_ms: int = 5_000
) -> Any:
    """The response to the request; None while there is none."""
    partition = Alter.ReassignablePartition(partition_index=0, replicas=replicas)
    topic = Alter.ReassignableTopic(name=TOPIC, partitions=[partition])
    body = Alter(timeout_ms=timeout_ms, topics=[topic])
    return t.ask(via, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, body).body


def hosts(t: Simulated) -> list[int]:
    """The brokers that have a log of the partition."""
    key = (t.verbs.partition(TOPIC, 0).topic_id, 0)
    return [broker for broker, disk in sorted(t.plan.disks.items()) if key in disk.logs]


def metadata(t: Simulated, via: int) -> Any:
    body = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=TOPIC)])
    return t.ask(via, ApiKey.METADATA, 12, body).body.topics[0].partitions[0]


def test_reassignments__new_replicas_catch_up_and_old_ones_delete_their_logs() -> None:
    t = Simulated(brokers=5)
    t.produce(b"m1", b"m2")
    assert reassign(t, [4, 5, 3]).error_code == ErrorCode.NONE
    t.wait(lambda: not t.verbs.partition(TOPIC, 0).adding_replicas)
    t.run_for(1_000)
    assert hosts(t) == [3, 4, 5]
    assert (t.leader_id, t.isr) == (4, [3, 4, 5])
    assert [t.values(broker) for broker in hosts(t)] == [[b"m1", b"m2"]] * 3
    assert t.produce(b"m3").error == "NONE"
    assert t.values(5) == [b"m1", b"m2", b"m3"]
    node = t.dispatcher.processes[1].node
    assert isinstance(node, BrokerNode)
    assert node.replicas.find(TOPIC, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [type(note.event) for note in t.notes if isinstance(note.event, ReassignmentEvent)] == [
        ReassignmentStarted,
        ReassignmentCompleted,
    ]


def test_reassignments__old_and_new_replicas_are_listed_until_completion() -> None:
    t = Simulated(brokers=4)
    t.cut_off(4)
    reassign(t, [4, 2])
    t.run_for(100)
    described = metadata(t, via=2)
    assert (described.leader_id, described.replica_nodes, described.isr_nodes) == (
        1,
        [4, 2, 1, 3],
        [1, 2, 3],
    )
    assert t.produce(b"m1").error == "NONE"
    t.heal()
    t.run_for(30_000)
    described = metadata(t, via=2)
    assert (described.leader_id, described.replica_nodes, described.isr_nodes) == (
        4,
        [4, 2],
        [2, 4],
    )
    assert t.values(4) == [b"m1"]


def test_reassignments__cancelled_the_added_replica_deletes_its_log() -> None:
    t = Simulated(brokers=4)
    t.cut_off(4)
    reassign(t, [4, 2, 3])
    t.run_for(100)
    listed = t.ask(3, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, m.ListPartitionReassignmentsRequest())
    (moving,) = listed.body.topics[0].partitions
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == (
        [4, 2, 3, 1],
        [4],
        [1],
    )
    assert reassign(t, None).responses[0].partitions[0].error_code == ErrorCode.NONE
    t.heal()
    t.run_for(30_000)
    assert hosts(t) == [1, 2, 3]
    assert (t.leader_id, t.isr) == (1, [1, 2, 3])


def test_reassignments__wait_for_an_added_replica_that_died() -> None:
    t = Simulated(brokers=4)
    t.produce(b"m1")
    t.cut(1, 4)
    reassign(t, [4, 2, 3])
    t.run_for(1_000)
    t.kill(4, "wipe")
    t.heal()
    t.run_for(20_000)
    assert t.verbs.partition(TOPIC, 0).adding_replicas == (4,)
    t.start(4)
    t.run_for(30_000)
    assert (t.leader_id, hosts(t), t.isr) == (4, [2, 3, 4], [2, 3, 4])
    assert t.values(4) == [b"m1"]


def test_reassignments__a_replica_moved_away_while_its_broker_was_down_is_deleted() -> None:
    t = Simulated(brokers=4)
    t.produce(b"m1")
    t.kill(1)
    t.run_for(10_000)
    reassign(t, [2, 3], via=2)
    t.run_for(10_000)
    assert hosts(t) == [1, 2, 3]
    t.start(1)
    t.run_for(30_000)
    assert hosts(t) == [2, 3]


def test_reassignments__without_an_answer_from_the_controller() -> None:
    t = Simulated(brokers=4)
    t.cut_off(1)
    assert reassign(t, [4], timeout_ms=0).error_code == ErrorCode.REQUEST_TIMED_OUT
    body = m.AlterPartitionReassignmentsRequest(topics=[])
    answer = t.ask(1, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, body).body
    assert (answer.error_code, answer.error_message, answer.responses) == (0, "", [])
    answer = t.ask(1, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, m.ListPartitionReassignmentsRequest())
    t.run_for(40_000)
    assert (answer.body.error_code, answer.body.error_message) == (
        ErrorCode.REQUEST_TIMED_OUT,
        None,
    )
