from __future__ import annotations

import pytest

from kcluster.events.partitions import IsrExpanded, IsrShrunk
from kcluster.metadata.records import NO_LEADER
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller


@pytest.fixture
def t() -> Controller:
    """orders-0 on brokers 1, 2, 3, led by 1, at leader epoch 0 and partition epoch 0."""
    controller = Controller()
    controller.create("orders", [[1, 2, 3]])
    return controller


def test_alter_partition__shrink_and_expand(t: Controller) -> None:
    shrunk = t.alter(1, "orders", [1, 2])
    assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch) == (ErrorCode.NONE, [1, 2], 1)
    expanded = t.alter(1, "orders", [1, 2, 3])
    assert (expanded.isr, expanded.partition_epoch, expanded.leader_epoch) == ([1, 2, 3], 2, 0)
    assert t.texts(IsrShrunk) == [
        "orders-0: ISR [1, 2, 3] -> [1, 2]: leader 1 reports broker 3 out of sync"
    ]
    assert t.texts(IsrExpanded) == [
        "orders-0: ISR [1, 2] -> [1, 2, 3]: leader 1 reports broker 3 caught up"
    ]


@pytest.mark.parametrize(
    ("leader", "isr", "override", "error"),
    [
        (1, [1, 2], {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        (1, [1, 2], {"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        (1, [1, 2], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        (2, [1, 2], {}, ErrorCode.INVALID_REQUEST),
        (2, [1, 2], {"partition_epoch": -1}, ErrorCode.INVALID_REQUEST),
        (1, [1, 2], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        (1, [2, 3], {}, ErrorCode.INVALID_REQUEST),
        (1, [], {}, ErrorCode.INVALID_REQUEST),
        (1, {1: -1, 9: -1}, {}, ErrorCode.INVALID_REQUEST),
        (1, [1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        (1, [1, 2], {"broker_epoch": 0}, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_alter_partition__refused_in_kafkas_order(
    t: Controller, leader: int, isr: list[int], override: dict[str, int], error: ErrorCode
) -> None:
    before = t.partition("orders")
    assert ErrorCode(t.alter(leader, "orders", isr, **override).error_code) is error
    assert t.partition("orders") == before


def test_alter_partition__unknown_topic_and_partition(t: Controller) -> None:
    alter = m.AlterPartitionRequest
    known = t.node.image.topics["orders"].topic_id
    request = alter(
        broker_id=1,
        broker_epoch=t.epochs[1],
        topics=[
            alter.TopicData(topic_id=bytes(16), partitions=[alter.PartitionData()]),
            alter.TopicData(topic_id=known, partitions=[alter.PartitionData(partition_index=9)]),
        ],
    )
    errors = [topic.partitions[0].error_code for topic in t.ask(1, request).topics]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_alter_partition__s7_fenced_replica_may_not_join(t: Controller) -> None:
    """KIP-841: the leader has old metadata and proposes a broker that is fenced by now."""
    t.die(3)
    stale = t.alter(1, "orders", [1, 2, 3])
    assert stale.error_code == ErrorCode.INELIGIBLE_REPLICA
    assert t.partition("orders").isr == (1, 2)


def test_alter_partition__s7_replica_in_controlled_shutdown_may_not_join(t: Controller) -> None:
    t.create("other", [[3, 1, 2]])
    t.heartbeat(3, want_shut_down=True)
    assert t.alter(1, "orders", [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_alter_partition__s8_restarted_replica_may_not_join(t: Controller) -> None:
    """KIP-903: the leader saw broker 3 catch up, but that was its last incarnation."""
    seen = dict(t.epochs)
    t.die(3)
    t.start(3)
    assert t.alter(1, "orders", seen).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert t.partition("orders").isr == (1, 2)
    assert t.alter(1, "orders", [1, 2, 3]).error_code == ErrorCode.NONE


def test_alter_partition__s8_epoch_minus_one_is_not_checked(t: Controller) -> None:
    t.die(3)
    t.start(3)
    assert t.alter(1, "orders", {1: -1, 2: -1, 3: -1}).error_code == ErrorCode.NONE


def test_alter_partition__v2_has_no_epochs(t: Controller) -> None:
    alter = m.AlterPartitionRequest
    data = alter.PartitionData(new_isr=[1, 3])
    topic = alter.TopicData(topic_id=t.node.image.topics["orders"].topic_id, partitions=[data])
    t.ask(1, alter(broker_id=1, broker_epoch=t.epochs[1], topics=[topic]))
    assert t.partition("orders").isr == (1, 3)


def test_alter_partition__s23_a_delayed_request_never_sets_back_the_isr(t: Controller) -> None:
    """KIP-497: the controller fenced broker 3 while the leader's older request was under way."""
    old = t.partition("orders")
    t.alter(1, "orders", [1, 2])
    t.alter(1, "orders", [1, 2, 3])
    delayed = t.alter(1, "orders", [1, 2], partition_epoch=old.partition_epoch)
    assert delayed.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert t.partition("orders").isr == (1, 2, 3)


def test_alter_partition__the_old_leader_is_fenced_by_epoch(t: Controller) -> None:
    t.die(1)
    t.start(1)
    zombie = t.alter(1, "orders", [1], leader_epoch=0)
    assert zombie.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_alter_partition__duplicate_of_an_accepted_request_is_refused(t: Controller) -> None:
    old = t.partition("orders")
    t.alter(1, "orders", [1, 2])
    again = t.alter(1, "orders", [1, 2], partition_epoch=old.partition_epoch)
    assert again.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_alter_partition__a_leader_reports_its_recovery() -> None:
    t = Controller()
    t.create("orders", [[1, 2]], unclean_leader_election_enable="true")
    t.alter(1, "orders", [1])
    t.set_config(2, "orders", "min.insync.replicas", "1")
    t.die(1)
    p = t.partition("orders")
    assert (p.leader, p.isr, p.recovering) == (2, (2,), True)
    recovered = t.alter(2, "orders", [2])
    assert (recovered.error_code, recovered.leader_recovery_state) == (ErrorCode.NONE, 0)
    assert not t.partition("orders").recovering
    assert t.partition("orders").leader != NO_LEADER
