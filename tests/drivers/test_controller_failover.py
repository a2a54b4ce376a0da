"""The controller dies, and another one takes over its log: nothing of the metadata is lost."""

from __future__ import annotations

from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.controller.node import ControllerNode
from kcluster.drivers.virtual import VirtualDriver

TOPICS = {"orders": {"assignment": [[1, 2, 3]], "config": {"min.insync.replicas": "2"}}}


def started() -> VirtualDriver:
    driver = VirtualDriver(Topology.of(3, TOPICS), 1)
    driver.open()
    driver.run_for(1_000)
    return driver


def controller(driver: VirtualDriver) -> ControllerNode:
    node = driver.dispatcher.processes[CONTROLLER_ID].node
    assert isinstance(node, ControllerNode)
    return node


def test_failover__the_new_controller_continues_the_log_in_the_next_epoch() -> None:
    driver = started()
    before = driver.status()
    driver.kill(CONTROLLER_ID)
    driver.run_for(2_000)
    driver.start(CONTROLLER_ID)
    driver.run_for(1_000)
    log = controller(driver).log
    assert (log.epoch, log.leader) == (2, 3001)
    after = driver.status()
    assert after.partitions == before.partitions
    assert after.metadata_offset == before.metadata_offset
    assert not any(broker.fenced for broker in after.brokers)


def test_failover__a_broker_that_died_is_fenced_after_a_full_session_timeout() -> None:
    driver = started()
    driver.kill(CONTROLLER_ID)
    driver.kill(1)
    driver.run_for(20_000)
    assert driver.status().partitions[0].leader == 1
    driver.start(CONTROLLER_ID)
    booted_ms = driver.now_ms
    assert driver.run_until_condition(lambda: driver.verbs.leader("orders", 0) != 1, 20_000)
    assert driver.now_ms == booted_ms + 9_000


def test_failover__brokers_stopped_without_a_controller_serve_again() -> None:
    driver = started()
    driver.kill(CONTROLLER_ID)
    driver.kill(2, "clean")
    driver.run_for(40_000)
    driver.start(CONTROLLER_ID)
    driver.run_for(1_000)
    driver.start(2)
    assert driver.run_until_condition(driver.verbs.settled.all_serving, 60_000)
    names = [note.note_id for note in driver.notes]
    assert len(names) == len(set(names)), "notes of two controllers have names of their own"
