"""A broker in more ISRs than one batch may change: it leaves them step by step."""

from __future__ import annotations

import pytest

from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.controller.membership import membership
from kcluster.events.brokers import BrokerFenced
from kcluster.events.partitions import LeaderElected
from tests.rig.cluster import SESSION_MS, VirtualRig

PARTITIONS = 7
BATCH = 2


@pytest.fixture
def t(monkeypatch: pytest.MonkeyPatch) -> VirtualRig:
    """Three brokers; each is in seven ISRs, and two may change at once."""
    monkeypatch.setattr(membership, "MAX_CHANGES_PER_BATCH", BATCH)
    topics = {"orders": {"partitions": PARTITIONS, "replication_factor": 3}}
    config = {"auto.leader.rebalance.enable": False}
    t = VirtualRig(Topology.of(brokers=3, topics=topics, config=config))
    t.open()
    t.run_for(1_000)
    return t


pytestmark = pytest.mark.pure_python  # the size of a batch is set


def isrs_with(t: VirtualRig, broker: int) -> int:
    return sum(broker in partition.isr for partition in t.status().partitions)


def led_by(t: VirtualRig, broker: int) -> int:
    return sum(partition.leader == broker for partition in t.status().partitions)


def test_fence__a_broker_leaves_its_isrs_in_batches(t: VirtualRig) -> None:
    t.kill(1)
    t.wait(lambda: bool(t.notes_of(BrokerFenced)))
    assert isrs_with(t, 1) == PARTITIONS - BATCH
    assert led_by(t, 1) > 0
    assert not t.verbs.settled.is_without(1), "a verb that kills waits until it leads nothing"
    seen = [isrs_with(t, 1)]
    while seen[-1]:
        t.run_for(1)
        seen.append(isrs_with(t, 1))
    assert seen == [5, 3, 1, 0]
    assert led_by(t, 1) == 0
    assert t.verbs.settled.is_without(1)
    assert {partition.leader for partition in t.status().partitions} == {2, 3}
    (fenced,) = t.notes_of(BrokerFenced)
    assert {note.cause for note in t.notes_of(LeaderElected)} >= {fenced.note_id}


def test_fence__a_broker_that_comes_back_meanwhile_stays_fenced_until_it_has_left(
    t: VirtualRig,
) -> None:
    t.pause(1)
    t.wait(lambda: bool(t.notes_of(BrokerFenced)))
    t.resume(1)
    assert isrs_with(t, 1) == PARTITIONS - BATCH
    t.wait(lambda: isrs_with(t, 1) == PARTITIONS)
    assert led_by(t, 1) == 0, "it left all of them before it came back"


def test_fence__a_broker_that_registers_meanwhile_leaves_the_rest_at_once(t: VirtualRig) -> None:
    t.kill(1)
    t.wait(lambda: bool(t.notes_of(BrokerFenced)))
    t.start(1)
    t.run_for(0)
    assert led_by(t, 1) == 0
    t.wait(lambda: isrs_with(t, 1) == PARTITIONS)


def test_fence__topics_deleted_meanwhile_are_left_out(t: VirtualRig) -> None:
    t.kill(1)
    t.wait(lambda: bool(t.notes_of(BrokerFenced)))
    t.delete_orders(via=2)
    t.run_for(1_000)
    assert not t.status().partitions


def test_fence__the_next_controller_continues(t: VirtualRig) -> None:
    t.kill(1)
    t.wait(lambda: bool(t.notes_of(BrokerFenced)))
    t.kill(CONTROLLER_ID)
    t.run_for(SESSION_MS)
    t.start(CONTROLLER_ID)
    t.run_for(100)
    assert led_by(t, 1) == 0


def test_shutdown__a_broker_stops_when_it_has_left_all_its_isrs(t: VirtualRig) -> None:
    t.kill(1, "clean")
    t.wait(lambda: t.dispatcher.processes[1].node is None)
    assert t.plan.disks[1].clean_shutdown
    assert led_by(t, 1) == 0
    assert isrs_with(t, 1) == 0
