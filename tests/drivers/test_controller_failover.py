"""The controller dies, and another one takes over its log: nothing of the metadata is lost."""

from __future__ import annotations

from kcluster.contract import CONTROLLER_ID
from kcluster.controller.node import ControllerNode
from tests.rig.cluster import Simulated


def started() -> Simulated:
    return Simulated(min_insync_replicas=2)


def controller(rig: Simulated) -> ControllerNode:
    node = rig.dispatcher.processes[CONTROLLER_ID].node
    assert isinstance(node, ControllerNode)
    return node


def test_failover__the_new_controller_continues_the_log_in_the_next_epoch() -> None:
    rig = started()
    before = rig.status()
    rig.kill(CONTROLLER_ID)
    rig.run_for(2_000)
    rig.start(CONTROLLER_ID)
    rig.run_for(1_000)
    log = controller(rig).log
    assert (log.epoch, log.leader) == (2, 3001)
    after = rig.status()
    assert after.partitions == before.partitions
    assert after.metadata_offset == before.metadata_offset
    assert not any(broker.fenced for broker in after.brokers)


def test_failover__a_broker_that_died_is_fenced_after_a_full_session_timeout() -> None:
    rig = started()
    rig.kill(CONTROLLER_ID)
    rig.kill(1)
    rig.run_for(20_000)
    assert rig.leader_id == 1
    rig.start(CONTROLLER_ID)
    booted_ms = rig.now_ms
    rig.wait(lambda: rig.leader_id != 1, "other leader", limit_ms=20_000)
    assert rig.now_ms == booted_ms + 9_000


def test_failover__brokers_stopped_without_a_controller_serve_again() -> None:
    rig = started()
    rig.kill(CONTROLLER_ID)
    rig.kill(2, "clean")
    rig.run_for(40_000)
    rig.start(CONTROLLER_ID)
    rig.run_for(1_000)
    rig.start(2)
    rig.wait(rig.verbs.settled.all_serving, "whole cluster", limit_ms=60_000)
    names = [note.note_id for note in rig.notes]
    assert len(names) == len(set(names)), "notes of two controllers have names of their own"
