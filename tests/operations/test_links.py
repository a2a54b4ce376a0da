"""Links cut, healed and shaped by sets, and the events of each change."""

from __future__ import annotations

import pytest

from kcluster.clients.ledger import Ledger
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan
from kcluster.contract import CONTROLLER_ID
from kcluster.events.network import NetworkCut
from kcluster.events.words import text_of
from kcluster.network.shapes import LinkShape
from kcluster.operations.errors import ClusterError
from tests.rig.cluster import Simulated


def test_isolate__cuts_every_link_and_names_the_sides() -> None:
    rig = Simulated()
    links = rig.verbs.links.isolate((1,), (2, 3, CONTROLLER_ID))
    assert len(links) == 6
    cut = rig.events_of(NetworkCut)[0]
    assert cut.sides == ((1,), (2, 3, CONTROLLER_ID))
    assert "{1} | {2, 3, controller}" in text_of(cut)
    rig.verbs.links.heal_links(links)
    assert not rig.dispatcher.fabric.cuts


def test_isolate__heals_only_its_own_cuts() -> None:
    rig = Simulated()
    rig.cut(1, 2)
    links = rig.verbs.links.isolate((1,), (2, 3))
    rig.verbs.links.heal_links(links)
    assert rig.dispatcher.fabric.cuts == ((1, 2), (2, 1))


def test_shape__a_slow_broker_falls_behind_but_nothing_overtakes() -> None:
    rig = Simulated()
    before = rig.verbs.links.shape(
        (3,), (1, 2, CONTROLLER_ID), LinkShape(50_000, 40_000, "uniform")
    )
    rig.run_for(20_000)
    rig.verbs.links.remove_layers(before)
    assert rig.dispatcher.fabric.is_unimpaired
    assert rig.verbs.settled.all_serving()


def test_heal__a_client_whose_request_was_lost_learns_that_its_connection_broke() -> None:
    rig = Simulated()
    ledger = Ledger()
    load = ProducerPlan(topics=("orders",), partitions=(0,), rate_per_s=10, count=50)
    producer = Producer("shop", ledger, load)
    wire = rig.add_client(producer)
    rig.run_for(1_000)
    leader = rig.leader_id
    links = rig.verbs.links.isolate((wire.client_id,), (leader,))
    rig.run_for(2_000)
    rig.verbs.links.heal_links(links)
    rig.run_for(4_000)
    assert {one.error for one in ledger.errors if one.api == "Produce"} == {"DISCONNECTED"}
    assert producer.acked == 50


def test_isolate__the_projects_own_clients_by_name() -> None:
    rig = Simulated()
    ledger = Ledger()
    load = ProducerPlan(topics=("orders",), partitions=(0,), rate_per_s=10, count=20)
    producer = Producer("shop", ledger, load)
    rig.add_client(producer)
    with rig.isolate("client sh*", "brokers"):
        cut = rig.events_of(NetworkCut)[0]
        assert text_of(cut) == (
            "no messages pass between {client shop} and {1, 2, 3};"
            " sides: {1, 2, 3, controller} | {client shop}"
        )
        rig.run_for(2_000)
        assert producer.acked == 0
    rig.run_for(120_000)
    assert producer.acked == 20
    with pytest.raises(ClusterError, match="client shp: no such client; did you mean shop"):
        rig.isolate("client shp")


def test_limit_bandwidth__a_client_queues_behind_its_own_bytes() -> None:
    rig = Simulated()
    load = ProducerPlan(topics=("orders",), partitions=(0,), rate_per_s=100, count=100)
    producer = Producer("shop", Ledger(), load)
    rig.add_client(producer)
    fault = rig.limit_bandwidth("client shop", "brokers", bytes_per_s=600)
    rig.run_for(2_000)
    narrow = producer.acked
    fault()
    rig.run_for(20_000)
    assert narrow < 60
    assert producer.acked == 100


def test_run__is_reproducible_whatever_the_links_draw() -> None:
    def run() -> str:
        rig = Simulated()
        rig.slow_link("brokers", "controller", latency_ms=5, jitter_ms=20)
        rig.lose(1, [2, 3], share=0.2)
        rig.slow_link(2, 3, latency_ms=1, jitter_ms=9, distribution="exponential")
        rig.run_for(30_000)
        return rig.trace_hash()

    assert run() == run()
