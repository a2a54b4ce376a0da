"""The rules of network/transit.py, one by one, on a clock that the test sets."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcluster.network.fabric import Fabric, Link
from kcluster.network.shapes import RESET_US, LinkShape
from kcluster.network.transit import CarriedConnection, Transit

BROKER, CLIENT = 1, 100
TO_BROKER, TO_CLIENT = (CLIENT, BROKER), (BROKER, CLIENT)


class Bench:
    """A broker, a client, and a clock."""

    def __init__(self, seed: int = 1) -> None:
        self.now_us = 0
        self.fabric = Fabric((BROKER, 2), streams=lambda name: Random(seed))
        self.lost: list[tuple[Link, int]] = []
        self.broker_is_up = True
        self.at_the_broker: list[Any] = []
        self.at_the_client: list[Any] = []
        self._heap: list[tuple[int, int, Callable[[], object]]] = []
        self._sequence = 0
        self.transit: Transit[CarriedConnection] = Transit(
            self.fabric, self, self, lambda link, at_us: self.lost.append((link, at_us))
        )

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        self._sequence += 1
        heappush(self._heap, (at_us, self._sequence, callback))

    def run(self, until_us: int) -> None:
        while self._heap and self._heap[0][0] <= until_us:
            self.now_us, _, callback = heappop(self._heap)
            callback()
        self.now_us = until_us

    def connect(self) -> CarriedConnection:
        return CarriedConnection((CLIENT,), BROKER)

    def heal(self) -> None:
        for link in self.fabric.heal():
            for direction in (link, link[::-1]):
                self.transit.link_healed((direction[0], direction[1]))

    def at_broker(self, connection: CarriedConnection, message: Any) -> bool:
        if self.broker_is_up:
            self.at_the_broker.append(message)
        return self.broker_is_up

    def at_client(self, connection: CarriedConnection, message: Any) -> None:
        self.at_the_client.append(message)

    def close_at_broker(self, connection: CarriedConnection) -> None:
        self.at_the_broker.append("end")

    def close_at_client(self, connection: CarriedConnection) -> None:
        self.at_the_client.append("end")


def test_order__a_late_message_delays_those_behind_it_and_the_end_comes_last() -> None:
    bench = Bench()
    connection = bench.connect()
    bench.fabric.set_latency(CLIENT, BROKER, 5)
    bench.transit.to_broker(connection, "a")
    bench.fabric.set_latency(CLIENT, BROKER, 0)
    bench.transit.to_broker(connection, "b")
    bench.transit.close_from_client(connection)
    bench.run(4_999)
    assert bench.at_the_broker == []
    bench.run(5_000)
    assert bench.at_the_broker == ["a", "b", "end"]


def test_order__each_direction_and_each_connection_by_itself() -> None:
    bench = Bench()
    first, second = bench.connect(), bench.connect()
    bench.fabric.set_latency(CLIENT, BROKER, 5, one_way=True)
    bench.transit.to_broker(first, "a")
    bench.transit.to_client(first, "x")
    bench.fabric.set_latency(CLIENT, BROKER, 0, one_way=True)
    bench.transit.to_broker(second, "b")
    bench.run(0)
    assert (bench.at_the_broker, bench.at_the_client) == (["b"], ["x"])


def test_delay__a_message_under_way_survives_a_cut_that_heals_before_it_arrives() -> None:
    bench = Bench()
    connection = bench.connect()
    bench.fabric.set_latency(CLIENT, BROKER, 5)
    bench.transit.to_broker(connection, "a")
    bench.fabric.cut(CLIENT, BROKER)
    bench.run(4_000)
    bench.heal()
    bench.run(5_000)
    assert (bench.at_the_broker, bench.at_the_client) == (["a"], [])


def test_delay__one_that_arrives_during_a_cut_is_lost_and_breaks_its_connection() -> None:
    bench = Bench()
    connection = bench.connect()
    bench.fabric.set_latency(CLIENT, BROKER, 5)
    bench.transit.to_client(connection, "x")
    bench.run(1_000)
    bench.transit.to_client(connection, "y")
    bench.fabric.cut(CLIENT, BROKER)
    bench.run(5_500)
    bench.heal()
    bench.run(20_000)
    assert bench.at_the_client == ["end"], "nothing from behind the gap in the stream"
    assert bench.at_the_broker == ["end"]


def test_cut__is_silence_until_the_link_heals() -> None:
    bench = Bench()
    connection, idle = bench.connect(), bench.connect()
    bench.fabric.cut(CLIENT, BROKER)
    bench.transit.to_broker(connection, "a")
    bench.run(10 * RESET_US)
    assert (bench.at_the_broker, bench.at_the_client, bench.lost) == ([], [], [])
    bench.heal()
    bench.run(bench.now_us)
    assert (bench.at_the_broker, bench.at_the_client) == (["end"], ["end"])
    bench.transit.to_broker(idle, "b")
    bench.run(bench.now_us)
    assert bench.at_the_broker == ["end", "b"], "an idle connection outlives the cut"


def test_heal__of_one_direction_only_the_client_learns_when_the_other_heals() -> None:
    bench = Bench()
    connection = bench.connect()
    bench.fabric.cut(CLIENT, BROKER)
    bench.transit.to_broker(connection, "a")
    assert bench.fabric.heal_link(*TO_BROKER)
    bench.transit.link_healed(TO_BROKER)
    bench.run(1_000)
    assert (bench.at_the_broker, bench.at_the_client) == (["end"], [])
    bench.heal()
    bench.run(2_000)
    assert (bench.at_the_broker, bench.at_the_client) == (["end"], ["end"])


def test_close__a_message_for_a_closed_end_is_answered_with_the_end_and_once_only() -> None:
    bench = Bench()
    connection = bench.connect()
    bench.fabric.set_latency(CLIENT, BROKER, 5)
    bench.transit.close_from_broker(connection)
    bench.transit.to_broker(connection, "a")
    bench.run(20_000)
    assert (bench.at_the_broker, bench.at_the_client) == ([], ["end"])
    assert not connection.is_open


def test_close__a_broker_that_is_down_ends_the_connection_once() -> None:
    bench = Bench()
    bench.broker_is_up = False
    connection = bench.connect()
    bench.transit.to_broker(connection, "a")
    bench.transit.to_broker(connection, "b")
    bench.run(0)
    assert (bench.at_the_broker, bench.at_the_client) == ([], ["end"])


def test_close__the_client_gets_nothing_more_once_it_has_closed() -> None:
    bench = Bench()
    connection = bench.connect()
    bench.fabric.set_latency(CLIENT, BROKER, 5)
    bench.transit.to_client(connection, "x")
    bench.transit.close_from_client(connection)
    bench.transit.close_from_client(connection)
    bench.run(20_000)
    assert (bench.at_the_broker, bench.at_the_client) == (["end"], [])


def test_links__of_several_nodes_add_up_and_one_cut_is_enough() -> None:
    bench = Bench()
    bench.fabric.set_latency(CLIENT, BROKER, 5)
    bench.fabric.set_latency(CLIENT + 1, BROKER, 3)
    connection = CarriedConnection((CLIENT, CLIENT + 1), BROKER)
    bench.transit.to_broker(connection, "a")
    bench.run(7_999)
    assert bench.at_the_broker == []
    bench.run(8_000)
    assert bench.at_the_broker == ["a"]
    bench.fabric.cut(CLIENT + 1, BROKER)
    bench.transit.to_broker(connection, "b")
    bench.heal()
    bench.run(30_000)
    assert (bench.at_the_broker, bench.at_the_client) == (["a", "end"], ["end"])


def test_reset__comes_when_the_sender_gives_up_unless_the_link_is_cut_then() -> None:
    for is_cut in (False, True):
        bench = Bench()
        connection = bench.connect()
        layer = bench.fabric.shape(CLIENT, BROKER, LinkShape(loss=0.999_999_999))
        bench.transit.to_broker(connection, "a")
        bench.fabric.remove_layer(CLIENT, BROKER, layer)
        bench.transit.to_broker(connection, "b")
        bench.run(RESET_US - 1)
        assert (bench.at_the_broker, bench.at_the_client) == ([], [])
        assert bench.lost == [(TO_BROKER, RESET_US)]
        if is_cut:
            bench.fabric.cut(CLIENT, BROKER)
            bench.run(2 * RESET_US)
            assert (bench.at_the_broker, bench.at_the_client) == ([], [])
            bench.heal()
        bench.run(3 * RESET_US)
        assert (bench.at_the_broker, bench.at_the_client) == (["end"], ["end"])


SHAPES = st.builds(
    LinkShape,
    latency_us=st.integers(0, 50_000),
    jitter_us=st.integers(0, 50_000),
    distribution=st.sampled_from(("constant", "uniform", "exponential")),
    loss=st.sampled_from((0.0, 0.1, 0.9)),
)
STEPS = st.lists(
    st.one_of(
        st.sampled_from(("request", "reply", "cut", "cut back", "heal", "close", "hang up")),
        st.integers(0, 300_000),
        SHAPES,
    ),
    max_size=60,
)


@settings(max_examples=150)
@given(st.integers(0, 1_000), STEPS)
def test_stream__is_a_prefix_of_what_was_sent_and_its_end_comes_once(
    seed: int, steps: list[Any]
) -> None:
    bench = Bench(seed)
    connection = bench.connect()
    requests: list[Any] = []
    replies: list[Any] = []
    for number, step in enumerate(steps):
        match step:
            case "request":
                if connection.is_open:
                    requests.append(number)
                    bench.transit.to_broker(connection, number)
            case "reply":
                if connection.broker_end_is_open:
                    replies.append(number)
                    bench.transit.to_client(connection, number)
            case "cut":
                bench.fabric.cut(*TO_BROKER, one_way=True)
            case "cut back":
                bench.fabric.cut(*TO_CLIENT, one_way=True)
            case "heal":
                bench.heal()
            case "close":
                bench.transit.close_from_broker(connection)
            case "hang up":
                bench.transit.close_from_client(connection)
            case LinkShape():
                bench.fabric.shape(*TO_BROKER, step)
                bench.fabric.shape(*TO_CLIENT, step)
            case _:
                bench.run(bench.now_us + step)
    was_closed = not (connection.is_open and connection.broker_end_is_open)
    bench.fabric.clear_shapes()
    bench.heal()
    bench.run(bench.now_us + 100 * RESET_US)
    for sent, arrived in (requests, bench.at_the_broker), (replies, bench.at_the_client):
        messages = [message for message in arrived if message != "end"]
        assert messages == sent[: len(messages)]
        assert arrived in (messages, [*messages, "end"])
        if connection.is_open and connection.broker_end_is_open:
            assert messages == sent, "nothing is missing on a connection that is not broken"
    if was_closed:
        assert (connection.is_open, connection.broker_end_is_open) == (False, False)
