"""The dispatcher's guarantees (contract.py, 1 to 8), on nodes that record their input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.contract import (
    CONTROLLER_ID,
    Effect,
    Input,
    PeerDisconnected,
    PeerRequest,
    PeerResponse,
    Send,
    Start,
    Tick,
)
from kcluster.deaths import DeathKind, ProcessState
from kcluster.events.brokers import BrokerDown
from kcluster.runtime.build import build
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import Process
from tests.runtime.net import Echo, Net


@pytest.fixture
def net() -> Net:
    return Net()


def test_dispatch__a_message_over_a_plain_link_is_answered_in_the_same_dispatch(net: Net) -> None:
    net.ask(1, 2)
    assert net.got(2) == [PeerRequest(1, 1, "hello")]
    assert net.got(1) == [PeerResponse(2, 1, "hello")]


def test_dispatch__messages_go_breadth_first(net: Net) -> None:
    net.send(1, Send(2, PeerRequest(1, 1, "a")), Send(3, PeerRequest(1, 2, "b")))
    assert [node_id for _, node_id, event in net.log if not isinstance(event, Tick)] == [2, 3, 1, 1]


def test_dispatch__a_slow_link_delivers_later_and_keeps_the_order(net: Net) -> None:
    net.fabric.set_latency(1, 2, 5)
    net.ask(1, 2, 1, "ignore")
    net.fabric.set_latency(1, 2, 0)
    net.ask(1, 2, 2, "ignore")
    assert net.got(2) == []
    net.dispatcher.at(4_999)
    assert net.got(2) == []
    net.dispatcher.at(5_000)
    assert net.requests(2) == [1, 2]


def test_dispatch__a_late_driver_delivers_everything_at_its_due_time(net: Net) -> None:
    for node_id, deadline_ms in ((1, 30), (2, 10), (3, 20)):
        node: Any = net.dispatcher.processes[node_id].node
        node.deadline_ms = deadline_ms
        net.dispatcher.dispatch(node_id, PeerDisconnected(9))
    net.log.clear()
    net.dispatcher.at(1_000_000)
    assert net.log == [(10, 2, Tick()), (20, 3, Tick()), (30, 1, Tick())]
    assert net.dispatcher.now_ms == 1000


def test_cut__is_silence(net: Net) -> None:
    net.links.cut(1, 2, one_way=True)
    net.ask(1, 2)
    net.ask(2, 1, 7)
    assert net.got(2) == [], "neither the request of 1 nor its answer gets through"
    assert net.got(1) == [PeerRequest(2, 7, "hello")]


def test_cut__drops_messages_in_flight(net: Net) -> None:
    net.fabric.set_latency(1, 2, 5)
    net.ask(1, 2)
    net.links.cut(1, 2)
    net.dispatcher.at(10_000)
    assert net.got(2) == []


def test_kill__nodes_that_are_not_cut_off_are_notified(net: Net) -> None:
    net.links.cut(1, 3, one_way=True)
    net.dispatcher.take_down(1, DeathKind.KILL)
    assert net.got(2) == [PeerDisconnected(1)]
    assert net.got(3) == []


def test_kill__the_sender_to_a_process_that_is_down_is_notified(net: Net) -> None:
    net.dispatcher.take_down(1, DeathKind.KILL)
    net.log.clear()
    net.ask(2, 1)
    assert net.got(2) == [PeerDisconnected(1)]


@pytest.mark.parametrize(
    ("how", "fate"),
    [(DeathKind.KILL, []), (DeathKind.POWER, ["lost"]), (DeathKind.WIPE, ["wiped"])],
)
def test_kill__the_disk_keeps_what_survives(net: Net, how: DeathKind, fate: list[str]) -> None:
    net.dispatcher.take_down(1, how)
    assert net.disk.fate == fate
    assert BrokerDown(1, how) in [note.event for note in net.notes]


def test_start__an_answer_to_an_earlier_process_does_not_reach_the_next(net: Net) -> None:
    net.fabric.set_latency(2, 1, 5, one_way=True)
    net.ask(1, 2, 1, "for the first life")
    net.dispatcher.take_down(1, DeathKind.KILL)
    net.dispatcher.start(1)
    net.dispatcher.at(20_000)
    assert net.got(1) == [Start()]
    net.ask(1, 2, 1, "for the second life")
    net.dispatcher.at(40_000)
    assert net.got(1)[1:] == [PeerResponse(2, 1, "for the second life")]


def test_start__a_request_parked_for_an_earlier_process_is_answered_to_nobody(net: Net) -> None:
    net.ask(1, 2, 1, "ignore")
    net.dispatcher.take_down(1, DeathKind.KILL)
    net.dispatcher.start(1)
    net.send(2, Send(1, PeerResponse(2, 1, "much later")))
    assert net.got(1) == [Start()]


def test_pause__input_is_kept_and_delivered_in_order(net: Net) -> None:
    net.dispatcher.pause(2)
    net.ask(1, 2, 1)
    net.ask(3, 2, 2)
    assert net.got(2) == []
    net.dispatcher.resume(2)
    assert net.requests(2) == [1, 2]
    assert net.got(1) == [PeerResponse(2, 1, "hello")]


def test_pause__no_ticks_until_it_resumes(net: Net) -> None:
    node: Any = net.dispatcher.processes[2].node
    node.deadline_ms = 10
    net.dispatcher.dispatch(2, PeerDisconnected(9))
    net.dispatcher.pause(2)
    net.log.clear()
    net.dispatcher.at(50_000)
    assert net.log == []
    net.dispatcher.resume(2)
    net.dispatcher.at(50_000)
    assert net.log == [(50, 2, Tick())]


def test_shut_down__a_node_that_stops_is_down_and_others_are_notified(net: Net) -> None:
    net.dispatcher.shut_down(1, limit_us=1_000_000)
    assert net.dispatcher.processes[1].state is ProcessState.DOWN
    assert net.got(2) == [PeerDisconnected(1)]
    assert net.notes[-1].event == BrokerDown(1, DeathKind.CLEAN)


def test_shut_down__a_node_that_does_not_stop_in_time_is_killed(net: Net) -> None:
    net.is_stubborn = True
    net.dispatcher.shut_down(1, limit_us=1_000_000)
    net.dispatcher.at(999_999)
    assert net.state(1) is ProcessState.UP
    net.dispatcher.at(1_000_000)
    assert net.state(1) is ProcessState.DOWN
    assert net.notes[-1].event == BrokerDown(1, DeathKind.KILL)


def test_start_after_shutdown__the_node_is_started_as_soon_as_it_is_down(net: Net) -> None:
    net.is_stubborn = True
    net.dispatcher.shut_down(1, limit_us=1_000_000)
    net.dispatcher.start_after_shutdown(1)
    net.dispatcher.at(1_000_000)
    process = net.dispatcher.processes[1]
    assert (process.state, process.life) == (ProcessState.UP, 1)
    assert not net.dispatcher.is_shutting_down(1)


def test_start_after_shutdown__does_not_start_a_node_that_was_killed_meanwhile(net: Net) -> None:
    net.is_stubborn = True
    net.dispatcher.shut_down(1, limit_us=1_000_000)
    net.dispatcher.start_after_shutdown(1)
    net.dispatcher.take_down(1, DeathKind.KILL)
    net.dispatcher.at(2_000_000)
    assert net.dispatcher.processes[1].state is ProcessState.DOWN


def test_dispatch__a_node_that_ignores_its_ticks_is_detected(net: Net) -> None:
    class Deaf(Echo):
        def step(self, now_ms: int, event: Input) -> Sequence[Effect]:
            self.deadline_ms = 5
            return []

    net.dispatcher.processes[1].node = Deaf(1, net)
    net.dispatcher.dispatch(1, PeerDisconnected(9))
    with pytest.raises(AssertionError, match="time stands still"):
        net.dispatcher.at(6_000)


# ----------------------------------------------------------------------- a driver with little time


def test_cut_short__one_step_at_a_time_the_same_happens(net: Net) -> None:
    """A driver may stop after any step; the rest is delivered in the same order."""
    net.dispatcher.is_time_up = lambda: True
    node: Any = net.dispatcher.processes[1].node
    node.to_send = [Send(to, PeerRequest(1, to, "hello")) for to in (2, 3)]
    net.dispatcher.dispatch(1, Tick())
    turns = 1
    while net.dispatcher.is_cut_short:
        net.dispatcher.run()
        turns += 1
    assert turns == 5, "a tick, two requests, two answers"
    assert net.got(1) == [PeerResponse(2, 2, "hello"), PeerResponse(3, 3, "hello")]


def test_cut_short__the_time_stands_still_until_the_rest_is_delivered(net: Net) -> None:
    dispatcher = net.dispatcher
    dispatcher.is_time_up = lambda: True
    for node_id, at_ms in ((1, 10), (2, 20)):
        node: Any = dispatcher.processes[node_id].node
        node.deadline_ms = dispatcher.processes[node_id].deadline_ms = at_ms
        node.to_send = [Send(3, PeerRequest(node_id, 1, "ignore"))]
    dispatcher.quiet_until_us = 10_000
    seen = []
    for _ in range(10):
        dispatcher.at(30_000)
        seen.append(dispatcher.now_ms)
        if dispatcher.now_ms == 30:
            break
    assert seen == sorted(seen)
    assert [(at_ms, node_id) for at_ms, node_id, _ in net.log] == [
        (10, 1),
        (10, 3),
        (20, 2),
        (20, 3),
    ]
    assert dispatcher.now_ms == 30


def test_start_all__is_one_dispatch(net: Net) -> None:
    for node_id in (1, 2, 3):
        net.dispatcher.take_down(node_id, DeathKind.KILL)
    net.log.clear()
    net.dispatcher.start_all()
    assert [node_id for _, node_id, event in net.log if isinstance(event, Start)] == [1, 2, 3]


def inputs_to_ready(brokers: int) -> int:
    """How many inputs nodes get until all brokers serve."""
    net = Net()
    plan = build(Topology.of(brokers=brokers), 1, {i: [9_000 + i] for i in range(1, brokers + 1)})
    dispatcher = Dispatcher(plan.fabric, plan.processes, net)
    count = 0

    def tap(_now_us: int, _node_id: int, _event: Input) -> None:
        nonlocal count
        count += 1

    dispatcher.tap = tap
    dispatcher.start_all()
    controller: Any = dispatcher.processes[CONTROLLER_ID].node
    assert len(controller.image.brokers) == brokers
    assert not any(broker.fenced for broker in controller.image.brokers.values())
    return count


def test_start_all__each_broker_costs_the_same_however_many_there_are() -> None:
    assert inputs_to_ready(80) - inputs_to_ready(40) <= 1.1 * 2 * (
        inputs_to_ready(40) - inputs_to_ready(20)
    )


def test_interject__nothing_of_a_step_leaves_a_process_that_dies_in_it(net: Net) -> None:
    """Node 1 asks 2 and 3.  Node 2 dies with its answer; the rest of the dispatch follows."""

    def after_step(process: Process) -> None:
        if process.node_id == 2:
            net.dispatcher.interject(lambda: net.dispatcher.take_down(2, DeathKind.KILL))

    net.dispatcher.step_sinks = (after_step,)
    net.send(1, Send(2, PeerRequest(1, 1, "a")), Send(3, PeerRequest(1, 2, "b")))
    assert net.got(2) == [PeerRequest(1, 1, "a")]
    assert net.got(1) == [PeerDisconnected(2), PeerResponse(3, 2, "b")]
