"""What a cluster does must not depend on the driver: each story runs on both."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode


def test_start__every_broker_serves_and_lists_all_others(world: Any) -> None:
    for broker_id in (1, 2, 3):
        answer = world.ask(broker_id, ApiKey.METADATA, 9, m.MetadataRequest(topics=None)).body
        assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]
        orders = next(topic for topic in answer.topics if topic.name == "orders")
        assert [partition.leader_id for partition in orders.partitions] == [1, 2]


def test_produce__an_acked_record_is_on_every_replica_of_the_isr(world: Any) -> None:
    answer = world.produce(*[b"v"] * 5, to=1).partition
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    status = world.partition()
    assert (status.log_end_offset, status.high_watermark, status.lag) == (5, 5, {2: 0, 3: 0})


def test_fetch__a_consumer_gets_acked_records_up_to_the_high_watermark(world: Any) -> None:
    world.produce(b"a", b"b")
    fetched = world.fetch(0)
    assert (fetched.error, fetched.partition.high_watermark) == ("NONE", 2)
    assert fetched.partition.records
    assert not world.fetch(2).partition.records


def test_kill__a_new_leader_is_elected_and_acked_records_survive(world: Any) -> None:
    world.produce(*[b"v"] * 5, to=1)
    world.kill(1)
    status = world.partition()
    assert (status.leader, status.leader_epoch) == (2, 1)
    assert sorted(status.isr) == [2, 3]
    assert world.produce(b"v", to=2).partition.base_offset == 5


def test_start__a_broker_that_was_killed_catches_up_and_is_in_the_isr_again(world: Any) -> None:
    world.kill(1)
    world.produce(*[b"v"] * 3, to=2)
    world.start(1)
    world.wait_for_isr(1, 2, 3)
    assert world.partition().lag == {1: 0, 3: 0}


def test_cut__a_cut_off_follower_leaves_the_isr_and_rejoins(world: Any) -> None:
    world.cut(1, 3)
    assert world.produce(*[b"v"] * 2, to=1, acks=1).partition.error_code == ErrorCode.NONE
    world.wait_for_isr(1, 2)
    assert world.partition().lag[3] == 2
    world.heal()
    world.wait_for_isr(1, 2, 3)
    assert world.partition().lag[3] == 0


def test_cut__a_leader_cut_off_from_the_controller_is_replaced(world: Any) -> None:
    world.cut(1, 3000)
    world.wait(lambda: world.partition().leader == 2, "new leader")
    world.heal(1)
    world.wait_for_isr(1, 2, 3)
    assert world.partition().leader == 2


def test_pause__a_paused_broker_is_fenced_and_unfenced_after_resume(world: Any) -> None:
    world.produce(*[b"v"] * 4, to=1)
    world.pause(1)
    world.wait(lambda: world.partition().leader == 2, "new leader")
    world.resume(1)
    world.wait_for_isr(1, 2, 3)


def test_kill__a_clean_shutdown_hands_leadership_over(world: Any) -> None:
    world.kill(1, "clean")
    status = world.partition()
    assert status.leader == 2
    assert [broker.state for broker in world.status().brokers] == ["down", "up", "up"]


@pytest.mark.parametrize("how", ["power", "wipe"])
def test_kill__a_wiped_replica_copies_its_log_from_the_leader(world: Any, how: str) -> None:
    world.produce(*[b"v"] * 5, to=1)
    world.kill(3, how)
    world.start(3)
    world.wait_for_isr(1, 2, 3)
    assert world.partition().lag == {2: 0, 3: 0}


def test_move__another_member_of_the_isr_becomes_leader(world: Any) -> None:
    world.move("orders", 0, 3)
    assert world.partition().leader == 3
    assert world.elect("orders", 0) == 1


def test_verbs__refusals_list_the_existing_names(world: Any) -> None:
    with pytest.raises(ClusterError, match=r"no broker 9; the brokers are 1, 2, 3"):
        world.kill(9)
    with pytest.raises(ClusterError, match=r"broker 1 is up"):
        world.start(1)
    with pytest.raises(ClusterError, match=r"there is no topic order; did you mean orders-0"):
        world.elect("order", 0)


def test_pause__a_resumed_follower_rejoins_every_isr(world: Any) -> None:
    world.produce(*[b"v"] * 4, to=1)
    world.pause(3)
    world.wait_for_isr(1, 2)
    world.resume(3)
    for partition in (0, 1):
        world.wait(
            lambda partition=partition: len(world.partition("orders", partition).isr) == 3,
            f"full ISR of partition {partition}",
        )


def test_pause__a_leader_replaced_without_a_new_record_follows_the_new_one(world: Any) -> None:
    world.produce(*[b"v"] * 4, to=1)
    world.kill(1)
    world.start(1)
    world.wait_for_isr(1, 2, 3)
    world.pause(2)  # It leads in an epoch without records.
    world.wait(lambda: world.partition().leader == 1, "new leader")
    world.resume(2)
    world.wait_for_isr(1, 2, 3)
