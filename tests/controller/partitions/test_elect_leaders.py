from __future__ import annotations

from typing import Any

from kcluster.contract import MoveLeader
from kcluster.controller.partitions.elect_leaders import MAX_ELECTIONS_PER_CHECK
from kcluster.events.partitions import LeaderElected
from kcluster.metadata.records import NO_LEADER
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller

PREFERRED, UNCLEAN = 0, 1


def elect(t: Controller, kind: int, *wanted: tuple[str, list[int]] | None) -> list[Any]:
    ask = m.ElectLeadersRequest
    named = [one for one in wanted if one is not None]
    partitions = [ask.TopicPartitions(topic=topic, partitions=ids) for topic, ids in named]
    response = t.ask(
        1, ask(election_type=kind, topic_partitions=None if None in wanted else partitions)
    )
    return [
        (topic.topic, result.partition_id, ErrorCode(result.error_code).name)
        for topic in response.replica_election_results
        for result in topic.partition_result
    ]


def moved_away() -> Controller:
    """orders-0 led by 2 although 1 is preferred and in the ISR; orders-1 led by 2, preferred."""
    t = Controller()
    t.create("orders", [[1, 2, 3], [2, 3, 1]])
    t.step(MoveLeader("orders", 0, 2))
    return t


def test_elect_leaders__preferred() -> None:
    t = moved_away()
    assert elect(t, PREFERRED, ("orders", [0, 1, 9]), ("zz", [0])) == [
        ("orders", 0, "NONE"),
        ("orders", 1, "ELECTION_NOT_NEEDED"),
        ("orders", 9, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("zz", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    p = t.partition("orders")
    assert (p.leader, p.leader_epoch) == (1, 2)


def test_elect_leaders__null_means_all_partitions_that_need_an_election() -> None:
    t = moved_away()
    assert elect(t, PREFERRED, None) == [("orders", 0, "NONE")]


def test_elect_leaders__preferred_is_not_in_the_isr() -> None:
    t = moved_away()
    t.alter(2, "orders", [2, 3])
    assert elect(t, PREFERRED, ("orders", [0])) == [("orders", 0, "PREFERRED_LEADER_NOT_AVAILABLE")]


def test_elect_leaders__unclean_on_request_although_the_topic_forbids_it() -> None:
    t = Controller()
    t.create("orders", [[1, 2]], min_insync_replicas="1")
    t.alter(1, "orders", [1])
    assert elect(t, UNCLEAN, ("orders", [0])) == [("orders", 0, "ELECTION_NOT_NEEDED")]
    t.die(1)
    assert t.partition("orders").leader == NO_LEADER
    assert elect(t, UNCLEAN, ("orders", [0])) == [("orders", 0, "NONE")]
    p = t.partition("orders")
    assert (p.leader, p.isr, p.recovering) == (2, (2,), True)


def test_elect_leaders__unclean_without_any_active_replica() -> None:
    t = Controller()
    t.create("orders", [[1, 2]])
    t.die(1)
    t.die(2)
    assert elect(t, UNCLEAN, ("orders", [0])) == [("orders", 0, "ELIGIBLE_LEADERS_NOT_AVAILABLE")]


def test_elect_leaders__unknown_kind_of_election() -> None:
    t = moved_away()
    assert elect(t, 7, ("orders", [0])) == [("orders", 0, "INVALID_REQUEST")]


def test_elect_leaders__the_same_partition_twice_is_elected_once() -> None:
    t = moved_away()
    elect(t, PREFERRED, ("orders", [0, 0]))
    assert t.partition("orders").leader_epoch == 2


def test_elect_leaders__move_leader_is_noted_as_the_operators() -> None:
    t = moved_away()
    assert t.texts(LeaderElected) == ["orders-0: leader 1 -> 2, epoch 1: requested by the operator"]
    before = t.node.end_offset
    t.step(MoveLeader("orders", 0, 2))
    t.step(MoveLeader("orders", 0, 9))
    t.step(MoveLeader("zz", 0, 1))
    assert t.node.end_offset == before, "nothing to do"


def test_elect_leaders__the_periodic_check_restores_preferred_leaders() -> None:
    t = moved_away()
    t.run(t.node.config.leader_imbalance_check_interval_seconds * 1000)
    assert t.partition("orders").leader == 1
    assert "periodic check" in t.texts(LeaderElected)[-1]


def test_elect_leaders__no_periodic_check_when_rebalancing_is_off() -> None:
    t = Controller(auto_leader_rebalance_enable=False)
    t.create("orders", [[1, 2]])
    t.step(MoveLeader("orders", 0, 2))
    t.run(1_000_000)
    assert t.partition("orders").leader == 2


def test_elect_leaders__periodic_unclean_elections_once_the_topic_allows_them() -> None:
    t = Controller()
    t.create("orders", [[1, 2]])
    t.alter(1, "orders", [1])
    t.die(1)
    t.set_config(2, "orders", "unclean.leader.election.enable", "true")
    assert t.partition("orders").leader == NO_LEADER
    t.run(t.node.config.unclean_leader_election_interval_ms)
    assert t.partition("orders").leader == 2


def test_elect_leaders__elections_beyond_the_limit_of_a_check_wait_for_the_next() -> None:
    t = Controller(brokers=2)
    t.create("many", [[1, 2]] * (MAX_ELECTIONS_PER_CHECK + 1))
    t.die(1)
    t.start(1)
    for partition in range(MAX_ELECTIONS_PER_CHECK + 1):
        t.alter(2, "many", [2, 1], partition)
    t.run(t.node.config.leader_imbalance_check_interval_seconds * 1000)
    assert not t.node.partitions.index.led_by[2]
    assert not t.node.partitions.index.imbalanced
