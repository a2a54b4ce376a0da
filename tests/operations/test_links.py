"""Links cut, healed and shaped by sets, and the events of each change."""

from __future__ import annotations

import pytest

from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.drivers.virtual import VirtualDriver
from kcluster.events.network import NetworkCut
from kcluster.events.words import text_of
from kcluster.evidence.history import Ledger
from kcluster.network.shapes import LinkShape
from kcluster.operations.errors import ClusterError


def started(brokers: int = 3) -> VirtualDriver:
    driver = VirtualDriver(Topology.of(brokers), 1)
    driver.open()
    driver.run_for(1_000)
    return driver


def test_isolate__cuts_every_link_and_names_the_sides() -> None:
    driver = started()
    links = driver.verbs.links.isolate((1,), (2, 3, CONTROLLER_ID))
    assert len(links) == 6
    cut = next(note.event for note in driver.notes if isinstance(note.event, NetworkCut))
    assert cut.sides == ((1,), (2, 3, CONTROLLER_ID))
    assert "{1} | {2, 3, controller}" in text_of(cut)
    driver.verbs.links.heal_links(links)
    assert not driver.dispatcher.fabric.cuts


def test_isolate__heals_only_its_own_cuts() -> None:
    driver = started()
    driver.cut(1, 2)
    links = driver.verbs.links.isolate((1,), (2, 3))
    driver.verbs.links.heal_links(links)
    assert driver.dispatcher.fabric.cuts == ((1, 2), (2, 1))


def test_shape__a_slow_broker_falls_behind_but_nothing_overtakes() -> None:
    driver = started()
    before = driver.verbs.links.shape(
        (3,), (1, 2, CONTROLLER_ID), LinkShape(50_000, 40_000, "uniform")
    )
    driver.run_for(20_000)
    driver.verbs.links.remove_layers(before)
    assert driver.dispatcher.fabric.is_unimpaired
    assert driver.verbs.settled.all_serving()


def test_heal__a_client_whose_request_was_lost_learns_that_its_connection_broke() -> None:
    driver = started()
    ledger = Ledger()
    load = ProducerPlan(topics=("orders",), partitions=(0,), rate_per_s=10, count=50)
    producer = Producer("shop", ledger, load)
    wire = driver.add_client(producer)
    driver.run_for(1_000)
    leader = driver.verbs.leader("orders", 0)
    links = driver.verbs.links.isolate((wire.client_id,), (leader,))
    driver.run_for(2_000)
    driver.verbs.links.heal_links(links)
    driver.run_for(4_000)
    assert {one.error for one in ledger.errors if one.api == "Produce"} == {"DISCONNECTED"}
    assert producer.acked == 50


def test_isolate__the_projects_own_clients_by_name() -> None:
    driver = started()
    ledger = Ledger()
    load = ProducerPlan(topics=("orders",), partitions=(0,), rate_per_s=10, count=20)
    producer = Producer("shop", ledger, load)
    driver.add_client(producer)
    with driver.isolate("client sh*", "brokers"):
        cut = next(note.event for note in driver.notes if isinstance(note.event, NetworkCut))
        assert text_of(cut) == (
            "no messages pass between {client shop} and {1, 2, 3};"
            " sides: {1, 2, 3, controller} | {client shop}"
        )
        driver.run_for(2_000)
        assert producer.acked == 0
    driver.run_for(120_000)
    assert producer.acked == 20
    with pytest.raises(ClusterError, match="client shp: no such client; did you mean shop"):
        driver.isolate("client shp")


def test_limit_bandwidth__a_client_queues_behind_its_own_bytes() -> None:
    driver = started()
    load = ProducerPlan(topics=("orders",), partitions=(0,), rate_per_s=100, count=100)
    producer = Producer("shop", Ledger(), load)
    driver.add_client(producer)
    fault = driver.limit_bandwidth("client shop", "brokers", bytes_per_s=600)
    driver.run_for(2_000)
    narrow = producer.acked
    fault()
    driver.run_for(20_000)
    assert narrow < 60
    assert producer.acked == 100


def test_run__is_reproducible_whatever_the_links_draw() -> None:
    def run() -> str:
        driver = started()
        driver.slow_link("brokers", "controller", latency_ms=5, jitter_ms=20)
        driver.lose(1, [2, 3], share=0.2)
        driver.slow_link(2, 3, latency_ms=1, jitter_ms=9, distribution="exponential")
        driver.run_for(30_000)
        return driver.trace_hash()

    assert run() == run()
