"""When a cluster counts as settled: the same as a look at all partitions, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.handle.virtual import VirtualDriver
from kcluster.metadata.records import PartitionRegistration
from kcluster.operations.status import offline_partitions
from tests.rig.counting import calls_of

BROKERS = (1, 2, 3)


def cluster(partitions: int) -> VirtualDriver:
    topics = {"many": {"partitions": partitions, "replication_factor": 2}}
    driver = VirtualDriver(Topology.of(brokers=3, topics=topics), 1)
    driver.open()
    return driver


@pytest.mark.parametrize("seed", range(3))
def test_settled__is_what_a_look_at_all_partitions_would_say(seed: int) -> None:
    random, driver = Random(seed), cluster(6)
    settled = driver.verbs.settled
    seen: set[bool] = set()
    any_offline: set[bool] = set()
    for _ in range(25):
        node = random.choice((*BROKERS, CONTROLLER_ID))
        if driver.dispatcher.processes[node].node is None:
            driver.verbs.start(node)
        elif random.random() < 0.6:
            driver.kill(node)
        driver.run_for(random.choice((10, 3_000, 12_000)))
        found = [one for topic in settled.image.topics.values() for one in topic.partitions]
        for broker in BROKERS:
            is_in_sync = all(broker in one.isr for one in found if broker in one.replicas)
            assert settled.is_in_sync(broker) == is_in_sync
            leads = any(one.leader == broker for one in found)
            assert settled.is_active(broker) == (leads or not settled.image.brokers[broker].fenced)
            seen.add(is_in_sync)
        offline = [one for one in found if one.leader < 0]
        assert [one for _, one in offline_partitions(driver.dispatcher)] == offline
        assert settled.are_in_sync() == all(map(can_be_no_better(driver), found))
        any_offline.add(bool(offline))
    assert seen == any_offline == {True, False}


def can_be_no_better(driver: VirtualDriver) -> Callable[[PartitionRegistration], bool]:
    settled = driver.verbs.settled

    def is_so(one: PartitionRegistration) -> bool:
        missing = (x for x in one.replicas if x not in one.isr and settled.is_registered(x))
        return one.leader < 0 or not any(missing)

    return is_so


def calls_of_the_conditions(partitions: int) -> int:
    """How many functions they call, with one broker down."""
    driver = cluster(partitions)
    driver.kill(3)
    driver.run_for(20_000)
    settled = driver.verbs.settled
    assert settled.is_settled()

    def test_all() -> None:
        settled.is_settled()
        settled.is_without(3)
        settled.is_in_sync(3)
        settled.all_serving()
        settled.all_in_sync()

    return calls_of(test_all)


@pytest.mark.pure_python  # compiled functions are not counted
def test_settled__costs_the_same_whatever_the_number_of_partitions() -> None:
    assert calls_of_the_conditions(300) == calls_of_the_conditions(3) > 20
