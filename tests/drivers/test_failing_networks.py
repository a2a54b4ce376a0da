"""Networks that fail, on either clock: one-way cuts, bridges, slow and lossy links, clients."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from kcluster.config.topology.model import Topology
from kcluster.contract import Event
from kcluster.events.network import NetworkCut, NetworkShaped
from kcluster.events.words import text_of
from kcluster.operations.errors import ClusterError
from kcluster.protocol.errors import ErrorCode

E = TypeVar("E", bound=Event)

CONTROLLER = 3000


def events(world: Any, wanted: type[E]) -> list[E]:
    return [note.event for note in world.notes if isinstance(note.event, wanted)]


def test_isolate__a_cut_off_controller_fences_all_brokers_until_healed(world: Any) -> None:
    fault = world.isolate("controller", "brokers")
    world.wait(lambda: all(x.fenced for x in world.status().brokers), "fenced brokers")
    text = text_of(events(world, NetworkCut)[-1])
    assert text.startswith("no messages pass between {controller} and {1, 2, 3}; sides: {1, 2, 3")
    assert text.endswith("} | {controller}")
    fault()
    world.wait(lambda: not any(x.fenced for x in world.status().brokers), "unfenced brokers")
    world.wait_for_isr(1, 2, 3)


def test_isolate__a_broker_that_can_send_but_not_receive_stays_unfenced(world: Any) -> None:
    # Heartbeats of 1 get through, answers do not: the controller keeps it, as KRaft does; but 1
    # learns of nothing that the controller decides.
    with world.isolate("controller", 1, one_way=True):
        world.pause(3)
        world.wait(lambda: world.status().brokers[2].fenced, "fenced 3")
        assert not world.status().brokers[0].fenced
    world.resume(3)
    world.wait_for_isr(1, 2, 3)


def test_isolate__a_broker_that_can_receive_but_not_send_is_fenced(world: Any) -> None:
    with world.isolate(1, "controller", one_way=True):
        world.wait(lambda: world.partition().leader == 2, "new leader")
        assert [x.fenced for x in world.status().brokers] == [True, False, False]
    world.wait_for_isr(1, 2, 3)


def test_bridge__a_broker_joins_two_halves(world: Any) -> None:
    world.bridge(1, 3)
    assert world.produce(*[b"v"] * 2, to=1, acks=1).partition.error_code == ErrorCode.NONE
    world.wait_for_isr(1, 2)
    cut = events(world, NetworkCut)[-1]
    assert cut.joint == (2, CONTROLLER)
    assert "sides: {1} | {3}, bridged by {2, controller}" in text_of(cut)
    assert not any(x.fenced for x in world.status().brokers), "both halves reach the controller"
    world.heal()
    world.wait_for_isr(1, 2, 3)
    with pytest.raises(ClusterError, match="no node is left to be the bridge"):
        world.bridge([1, "controller"], [2, 3])


def test_slow_link__a_follower_answers_later_and_so_does_acks_all(world: Any) -> None:
    with world.slow_link(1, [2, 3], latency_ms=30, jitter_ms=10):
        began = world.now_ms
        assert world.produce(b"v", to=1).partition.error_code == ErrorCode.NONE
        assert world.now_ms - began >= 25
    began = events(world, NetworkShaped)
    assert text_of(began[0]) == "{1} and {2, 3}: latency 30 ms, jitter 10 ms normal"
    assert began[-1].restored
    assert world.edges() == set(), "as it was built"


def test_lose__replication_continues_over_lossy_links(world: Any) -> None:
    with world.lose(1, 2, share=0.3):
        for _ in range(5):
            assert world.produce(b"v", to=1).partition.error_code == ErrorCode.NONE
    world.wait_for_isr(1, 2, 3)
    world.wait(lambda: world.partition().lag == {2: 0, 3: 0}, "lag of nothing")


def test_limit_bandwidth__a_follower_needs_time_in_proportion_to_bytes(world: Any) -> None:
    with world.limit_bandwidth(1, 3, bytes_per_s=20_000, one_way=True):
        began = world.now_ms
        world.produce(*[b"v"] * 200, to=1)
        assert world.now_ms - began >= 60, "200 records are 1.8 kB, and each fetch has its own"


def test_heal__restores_the_links_of_one_broker(world: Any) -> None:
    world.cut(1, 2)
    world.slow_link(2, 3, latency_ms=5)
    world.slow_link(1, "controller", latency_ms=5)
    world.heal(2)
    assert world.edges() == {(1, CONTROLLER), (CONTROLLER, 1)}
    world.heal("controller", 1)
    assert world.edges() == set()


def test_verbs__refuse_the_impossible_with_a_reason(world: Any) -> None:
    for call, words in (
        (lambda: world.isolate(9), "there is no broker 9; the brokers are 1, 2, 3"),
        (lambda: world.isolate(1, [1, 2]), r"\{1\} cannot be on both sides"),
        (lambda: world.isolate("rack z"), "rack z: no such rack; there are none"),
        (lambda: world.isolate("contoller"), "contoller: no such node; did you mean controller"),
        (lambda: world.isolate([]), "no node is named"),
        (lambda: world.lose(1, 2, share=1), "share=1: must be less than 1; use isolate"),
        (lambda: world.limit_bandwidth(1, 2, bytes_per_s=0), "^bytes_per_s=0: must be at least 1"),
        (lambda: world.slow_link(1, 2, latency_ms=-1), "latency_ms=-1: must be at least 0"),
        (lambda: world.slow_link(1, 2, distribution="norml"), "did you mean normal"),
    ):
        with pytest.raises(ClusterError, match=words):
            call()  # type: ignore[no-untyped-call]  # lambdas of a world of any kind


def test_rack__isolate_cuts_off_all_its_brokers(make_world: Any) -> None:
    racks = [{"id": n, "rack": rack} for n, rack in ((1, "a"), (2, "a"), (3, "b"))]
    topics = {"orders": {"assignment": [[1, 2, 3]]}}
    world = make_world(Topology.of(brokers=racks, topics=topics, profile="fast"))
    with world.isolate("rack b", ["rack a", "controller"]):
        assert events(world, NetworkCut)[-1].sides[0][:2] == (1, 2)
        world.wait_for_isr(1, 2)
    world.wait_for_isr(1, 2, 3)
