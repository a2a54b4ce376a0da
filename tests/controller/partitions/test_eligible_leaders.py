"""S9, S10: the effects of KIP-966, step by step."""

from __future__ import annotations

from typing import Any

from kcluster.events.partitions import LeaderElected
from kcluster.events.words import text_of
from kcluster.metadata.records import BROKER_RESOURCE, NO_LEADER, TOPIC_RESOURCE
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller


def all_down(**config: Any) -> Controller:
    """orders-0 (RF 3, min ISR 2) lost broker 1, then 2, then 3, uncleanly."""
    t = Controller(brokers=4, **config)
    t.create("orders", [[1, 2, 3]], min_insync_replicas="2")
    for broker in (1, 2, 3):
        t.die(broker)
    return t


def test_eligible_leaders__isr_may_become_empty() -> None:
    t = all_down()
    p = t.partition("orders")
    assert (p.leader, p.isr, p.elr, p.last_known_elr) == (NO_LEADER, (), (2, 3), (3,))


def test_eligible_leaders__s9_the_last_leader_lost_its_tail_so_others_lead() -> None:
    t = all_down()
    t.start(3, previous_epoch=-1)
    assert t.partition("orders").leader == NO_LEADER, "unclean restart: eligible no more"
    t.start(2, previous_epoch=t.epochs[2])
    p = t.partition("orders")
    assert (p.leader, p.isr, p.recovering) == (2, (2,), False)
    elected = t.events(LeaderElected)[-1]
    assert elected.clean


def test_eligible_leaders__s10_a_replica_outside_the_elr_waits() -> None:
    t = all_down()
    t.start(1, previous_epoch=t.epochs[1])
    assert t.partition("orders").leader == NO_LEADER
    t.start(3, previous_epoch=t.epochs[3])
    assert t.partition("orders").leader == 3


def test_eligible_leaders__s10_last_known_leader_when_no_replica_is_eligible() -> None:
    t = all_down()
    for broker in (1, 2):
        t.start(broker)
        assert t.partition("orders").leader == NO_LEADER
    t.start(3)
    p = t.partition("orders")
    assert (p.leader, p.isr, p.elr, p.last_known_elr, p.recovering) == (3, (3,), (), (), True)
    elected = t.events(LeaderElected)[-1]
    assert not elected.clean
    assert "UNCLEAN" in text_of(elected)


def test_eligible_leaders__s10_a_min_isr_change_clears_elrs() -> None:
    for kind, name in ((TOPIC_RESOURCE, "orders"), (BROKER_RESOURCE, "")):
        t = all_down()
        before = t.partition("orders")
        assert t.set_config(kind, name, "min.insync.replicas", "1").error_code == ErrorCode.NONE
        p = t.partition("orders")
        assert (p.elr, p.last_known_elr, p.partition_epoch) == ((), (), before.partition_epoch + 1)
        assert p.leader_epoch == before.leader_epoch


def test_eligible_leaders__the_elr_is_empty_when_the_isr_is_big_enough() -> None:
    t = all_down()
    for broker in (3, 2):
        t.start(broker, previous_epoch=t.epochs[broker])
    assert t.partition("orders").elr == (2,)
    t.alter(3, "orders", [3, 2])
    p = t.partition("orders")
    assert (p.isr, p.elr) == ((3, 2), ())


def test_eligible_leaders__without_elr_the_last_isr_member_stays() -> None:
    t = all_down(eligible_leader_replicas_version=0)
    p = t.partition("orders")
    assert (p.leader, p.isr, p.elr, p.last_known_elr) == (NO_LEADER, (3,), (), ())
    t.start(2)
    assert t.partition("orders").leader == NO_LEADER
    t.start(3)
    assert t.partition("orders").leader == 3


def test_eligible_leaders__min_isr_is_at_most_the_replication_factor() -> None:
    t = Controller()
    t.create("solo", [[1]], min_insync_replicas="2")
    assert t.node.partitions.min_isr("solo") == 1
    t.die(1)
    assert t.partition("solo").elr == (1,)
    t.start(1, previous_epoch=t.epochs[1])
    assert t.partition("solo").leader == 1
