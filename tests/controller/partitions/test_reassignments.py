"""KIP-455 at the controller; the answers are those of 4.3.1."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.events.partitions import (
    LeaderElected,
    PartitionOffline,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentStarted,
)
from kcluster.events.words import text_of
from kcluster.metadata.records import NO_LEADER
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller

Alter = m.AlterPartitionReassignmentsRequest
List = m.ListPartitionReassignmentsRequest


@pytest.fixture
def t() -> Controller:
    """orders-0 on brokers 1, 2, 3 of five, led by 1."""
    controller = Controller(5)
    controller.create("orders", [[1, 2, 3]])
    return controller


def reassign(
    t: Controller,
    replicas: list[int] | None,
    topic: str = "orders",
    partition: int = 0,
    may_change_factor: bool = True,
) -> tuple[ErrorCode, str | None]:
    """(error, message) of the one requested partition."""
    requested = Alter.ReassignablePartition(partition_index=partition, replicas=replicas)
    response = t.ask(
        1,
        Alter(
            allow_replication_factor_change=may_change_factor,
            topics=[Alter.ReassignableTopic(name=topic, partitions=[requested])],
        ),
    )
    assert (response.error_code, response.error_message) == (0, None)
    assert response.allow_replication_factor_change is may_change_factor
    (answer,) = response.responses[0].partitions
    assert answer.partition_index == partition
    return ErrorCode(answer.error_code), answer.error_message


def listed(t: Controller, topics: Any = None) -> list[tuple[str, int, list[int], list[int]]]:
    """(topic, partition, adding, removing)."""
    response = t.ask(1, List(topics=topics))
    assert (response.error_code, response.error_message) == (0, None)
    return [
        (topic.name, p.partition_index, p.adding_replicas, p.removing_replicas)
        for topic in response.topics
        for p in topic.partitions
    ]


def test_reassignments__from_start_to_completion(t: Controller) -> None:
    assert reassign(t, [4, 2, 3]) == (ErrorCode.NONE, None)
    moving = t.partition("orders")
    assert (moving.replicas, moving.isr, moving.leader) == ((4, 2, 3, 1), (1, 2, 3), 1)
    assert (moving.leader_epoch, moving.partition_epoch) == (0, 1)
    assert listed(t) == [("orders", 0, [4], [1])]
    # The leader adds 4, which completes the move and removes the leader.
    assert t.alter(1, "orders", [1, 2, 3, 4]).error_code == ErrorCode.NEW_LEADER_ELECTED
    done = t.partition("orders")
    assert (done.replicas, done.isr, done.leader) == ((4, 2, 3), (2, 3, 4), 4)
    assert (done.adding_replicas, done.removing_replicas) == ((), ())
    assert (done.leader_epoch, done.partition_epoch) == (1, 2)
    assert listed(t) == []
    (started,) = [note for note in t.notes if isinstance(note.event, ReassignmentStarted)]
    (completed,) = [note for note in t.notes if isinstance(note.event, ReassignmentCompleted)]
    assert text_of(started.event) == "replicas [1, 2, 3] -> [4, 2, 3]: requested by the operator"
    assert (
        text_of(completed.event)
        == "replicas [4, 2, 3, 1] -> [4, 2, 3]: leader 1 reports broker 4 caught up"
    )
    assert completed.cause == started.note_id
    (elected,) = [note for note in t.notes if isinstance(note.event, LeaderElected)]
    assert elected.cause == completed.note_id


def test_reassignments__a_leader_that_stays_gets_a_new_epoch_when_others_leave(
    t: Controller,
) -> None:
    reassign(t, [1, 2, 4])
    answer = t.alter(1, "orders", [1, 2, 3, 4])
    assert (answer.error_code, answer.isr, answer.leader_epoch) == (ErrorCode.NONE, [1, 2, 4], 1)
    assert t.partition("orders").leader == 1


def test_reassignments__removals_and_reorderings_complete_at_once(t: Controller) -> None:
    reassign(t, [3, 2, 1])
    reordered = t.partition("orders")
    assert (reordered.replicas, reordered.leader, reordered.leader_epoch) == ((3, 2, 1), 1, 0)
    assert list(t.node.partitions.index.imbalanced) == [(reordered.topic_id, 0)]
    reassign(t, [3, 2])
    fewer = t.partition("orders")
    assert (fewer.replicas, fewer.isr, fewer.leader, fewer.leader_epoch) == ((3, 2), (2, 3), 3, 1)
    assert listed(t) == []
    assert t.node.partitions.index.imbalanced == {}
    assert t.node.partitions.reassignments == {}
    before = t.partition("orders")
    assert reassign(t, [3, 2]) == (ErrorCode.NONE, None)
    assert t.partition("orders") is before


def test_reassignments__removed_replicas_stay_until_all_others_are_in_sync(t: Controller) -> None:
    t.alter(1, "orders", [1, 2])
    reassign(t, [2, 3])
    assert t.partition("orders").replicas == (2, 3, 1)
    assert t.alter(1, "orders", [1, 2, 3]).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert t.partition("orders").replicas == (2, 3)


def test_reassignments__cancelled(t: Controller) -> None:
    reassign(t, [4, 5])
    t.alter(1, "orders", [1, 2, 3, 4])
    assert reassign(t, None) == (ErrorCode.NONE, None)
    back = t.partition("orders")
    assert (back.replicas, back.isr, back.leader) == ((1, 2, 3), (1, 2, 3), 1)
    assert (back.adding_replicas, back.removing_replicas, back.leader_epoch) == ((), (), 1)
    assert t.texts(ReassignmentCancelled) == [
        "orders-0: replicas [4, 5, 1, 2, 3] -> [1, 2, 3]: requested by the operator"
    ]
    assert reassign(t, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)


def test_reassignments__a_new_one_replaces_the_one_in_progress(t: Controller) -> None:
    reassign(t, [4, 2, 3])
    reassign(t, [5, 2, 3])
    assert listed(t) == [("orders", 0, [5], [1, 4])]
    assert t.partition("orders").replicas == (5, 2, 3, 1, 4)
    first, second = [note for note in t.notes if isinstance(note.event, ReassignmentStarted)]
    assert second.cause == first.note_id
    # Back to the original: Kafka then still waits for 5, which is to leave, until a cancel.
    reassign(t, [1, 2, 3])
    assert listed(t) == [("orders", 0, [5], [4, 5])]
    assert t.partition("orders").replicas == (1, 2, 3, 4, 5)
    reassign(t, None)
    assert t.partition("orders").replicas == (1, 2, 3, 4)


def test_reassignments__an_unclean_cancel_needs_unclean_elections(t: Controller) -> None:
    reassign(t, [4, 5])
    t.alter(1, "orders", [1, 4])
    t.die(1)
    assert (t.partition("orders").leader, t.partition("orders").isr) == (4, (4,))
    error, message = reassign(t, None)
    assert error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message == (
        "Unable to revert partition assignment for orders:0 because it would require an unclean "
        "leader election."
    )
    t.set_config(2, "orders", "unclean.leader.election.enable", "true")
    assert reassign(t, None) == (ErrorCode.NONE, None)
    back = t.partition("orders")
    assert (back.replicas, back.isr, back.leader) == ((1, 2, 3), (2,), 2)
    assert back.recovering
    assert [event.clean for event in t.events(LeaderElected)] == [True, False]


def test_reassignments__an_unclean_cancel_makes_the_first_original_replica_the_isr(
    t: Controller,
) -> None:
    t.set_config(2, "orders", "unclean.leader.election.enable", "true")
    reassign(t, [4, 5])
    t.alter(1, "orders", [1, 4])
    for broker in (1, 2, 3):
        t.die(broker)
    assert reassign(t, None) == (ErrorCode.NONE, None)
    back = t.partition("orders")
    assert (back.isr, back.leader, back.recovering) == ((1,), NO_LEADER, False)
    (offline,) = t.events(PartitionOffline)
    assert offline.clean is False


def test_reassignments__fencing_does_not_complete_one_but_a_return_does(t: Controller) -> None:
    reassign(t, [2, 4])
    t.die(1)
    moving = t.partition("orders")
    assert (moving.leader, moving.isr, moving.replicas) == (2, (2, 3), (2, 4, 1, 3))
    answer = t.alter(2, "orders", [2, 3, 4])
    assert (answer.error_code, answer.isr) == (ErrorCode.NONE, [2, 4])
    assert t.partition("orders").replicas == (2, 4)


@pytest.mark.parametrize(
    ("replicas", "error", "message"),
    [
        (
            [],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            [1, 1],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            [1, 99],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 99, but no such broker is registered.",
        ),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
    ],
)
def test_reassignments__refused(
    t: Controller, replicas: list[int] | None, error: ErrorCode, message: str | None
) -> None:
    before = t.partition("orders")
    assert reassign(t, replicas) == (error, message)
    assert t.partition("orders") is before


def test_reassignments__unknown_partitions(t: Controller) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(t, [1], "none") == (unknown, "Unable to find a topic named none.")
    assert reassign(t, None, partition=7) == (unknown, "Unable to find partition orders:7.")
    assert reassign(t, [1], partition=-1) == (unknown, "Unable to find partition orders:-1.")
    wanted = [List.ListPartitionReassignmentsTopics(name, [0, 9, -1]) for name in ("x", "orders")]
    assert listed(t, wanted) == []
    reassign(t, [1, 2, 4])
    assert listed(t, wanted) == [("orders", 0, [4], [3])]
    assert listed(t, []) == []


def test_reassignments__the_replication_factor_may_be_fixed(t: Controller) -> None:
    changed = ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(t, [1], may_change_factor=False) == (
        changed,
        "The replication factor is changed from 3 to 1",
    )
    assert reassign(t, [4, 5, 1], may_change_factor=False) == (ErrorCode.NONE, None)
    # While it moves it has five replicas, but the replication factor is still three.
    assert reassign(t, [1, 2, 3, 4, 5], may_change_factor=False) == (
        changed,
        "The replication factor is changed from 3 to 5",
    )
    assert reassign(t, [1, 2, 5], may_change_factor=False) == (ErrorCode.NONE, None)


def test_reassignments__min_isr_follows_the_first_partition(t: Controller) -> None:
    t.create("audit", [[1, 2], [1, 2]], min_insync_replicas="4")
    assert t.node.partitions.min_isr("audit") == 2
    reassign(t, [3, 4], "audit")
    assert t.node.partitions.min_isr("audit") == 4
    t.alter(1, "audit", [1], partition=1)
    assert t.partition("audit", 1).elr == (2,)


def test_reassignments__end_with_their_topic(t: Controller) -> None:
    reassign(t, [4, 5])
    delete = m.DeleteTopicsRequest
    t.ask(1, delete(topics=[delete.DeleteTopicState(name="orders")], timeout_ms=1))
    assert listed(t) == []
    assert t.node.partitions.reassignments == {}
