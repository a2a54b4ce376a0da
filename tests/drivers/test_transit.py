"""What a client sees of its connections over links that fail: the same on either clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster import rule
from kcluster.config.topology.model import Topology
from kcluster.contract import ConnectionClosed, Input
from kcluster.deaths import DeathKind
from kcluster.drivers.wires.tcp import LiveClients
from kcluster.network.shapes import RESET_US, LinkShape
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.runtime.dispatch import Dispatcher
from tests.rig.cluster import LiveRig, VirtualRig
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import batch, produce_request

LIMIT_MS = 5_000
TOPICS = {"orders": {"partitions": 1, "assignment": [[1]]}}
TOPOLOGY = Topology.of(brokers=2, topics=TOPICS, profile="fast")


class Listening:
    """A client that records its callbacks: (correlation id, reply), or (0, None) for the end."""

    name = "listening"

    def __init__(self) -> None:
        self.deadline_ms: int | None = None
        self.heard: list[tuple[int, Any]] = []

    def start(self, wire: Any, now_ms: int) -> None:
        self.wire: Any = wire

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.heard.append((correlation_id, body))

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.heard.append((0, None))

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError

    @property
    def ends(self) -> int:
        """How many of its connections it knows to have ended."""
        return sum(body is None for _, body in self.heard)

    @property
    def replies(self) -> list[int]:
        return [number for number, body in self.heard if body is not None]


class VirtualSide(VirtualRig):
    """One client of a cluster in virtual time."""

    def __init__(self) -> None:
        super().__init__(TOPOLOGY)
        self.open()
        self.run_for(2_000)
        self.client = Listening()
        self.add_client(self.client)

    def do(self, function: Callable[[], Any]) -> Any:
        result = function()
        self.time.settle()
        return result


class LiveSide(LiveRig):
    """One client of a live cluster."""

    def __init__(self) -> None:
        super().__init__(TOPOLOGY)
        self.client = Listening()
        self.wires = self.do(lambda: LiveClients(self.driver, 1))
        self.do(lambda: self.wires.add_client(self.client))

    def do(self, function: Callable[[], Any]) -> Any:
        return self.driver.call(function).result(PATIENCE_S)

    def run_for(self, duration_ms: int) -> None:
        until_ms = self.do(self.driver.now_ms) + duration_ms
        self.wait(lambda: self.driver.now_ms() >= until_ms, "time")

    def finish(self) -> None:
        self.do(self.wires.close)
        super().finish()


@pytest.fixture(params=[VirtualSide, LiveSide], ids=["virtual", "live"])
def side(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = request.param()
    yield made
    made.finish()


def wait(side: Any, condition: Callable[[], bool], what: str = "such state") -> None:
    """Return when `condition()` holds; fail after 5 s of the cluster's time."""
    side.wait(condition, what, limit_ms=LIMIT_MS)


def ask(side: Any, broker_id: int = 1) -> int:
    """Have the client ask for metadata; its correlation id."""
    wire, body = side.client.wire, m.MetadataRequest(topics=None)
    number: int = side.do(lambda: wire.send(broker_id, ApiKey.METADATA, 9, body))
    return number


def produce(side: Any) -> int:
    """Have the client append one record to orders-0."""
    body = produce_request("orders", 0, batch(b"value"), acks=1)
    wire = side.client.wire
    number: int = side.do(lambda: wire.send(1, ApiKey.PRODUCE, 11, body))
    return number


def log_end(side: Any) -> int:
    logs = side.dispatcher.processes[1].disk.logs.values()
    return sum(log.log_end_offset for log in logs)


def connect(side: Any) -> None:
    """The client and broker 1 have a connection, over which nothing is under way."""
    ask(side)
    wait(side, lambda: len(side.client.heard) == 1)
    side.client.heard.clear()


def closed_at(dispatcher: Dispatcher, node_id: int) -> list[ConnectionClosed]:
    """A list that collects the connections whose end a broker learns of."""
    seen: list[ConnectionClosed] = []

    def tap(now_us: int, to: int, event: Input) -> None:
        if to == node_id and isinstance(event, ConnectionClosed):
            seen.append(event)

    dispatcher.tap = tap
    return seen


def delay(side: Any, latency_ms: int, *, of: str = "both") -> None:
    node = side.client.wire.client_id
    fabric = side.dispatcher.fabric
    if of in ("requests", "both"):
        side.do(lambda: fabric.set_latency(node, 1, latency_ms, one_way=True))
    if of in ("replies", "both"):
        side.do(lambda: fabric.set_latency(1, node, latency_ms, one_way=True))


def test_close__messages_sent_before_it_still_arrive(side: Any) -> None:
    connect(side)
    delay(side, 30)
    before = log_end(side)
    produce(side)
    side.do(lambda: side.client.wire.disconnect(1))
    wait(side, lambda: log_end(side) == before + 1)
    assert side.client.heard == [], "its client has closed its end"


def test_close__messages_over_a_new_connection_arrive_too(side: Any) -> None:
    delay(side, 30)
    before = log_end(side)
    produce(side)
    side.do(lambda: side.client.wire.disconnect(1))
    wait(side, lambda: log_end(side) == before + 1)


def test_close__during_a_cut_is_found_by_the_broker_when_the_link_heals(side: Any) -> None:
    connect(side)
    seen = closed_at(side.dispatcher, 1)
    node = side.client.wire.client_id
    side.do(lambda: side.verbs.links.cut(node, 1))
    side.do(lambda: side.client.wire.disconnect(1))
    side.run_for(20)
    assert seen == []
    side.do(side.verbs.links.heal)
    wait(side, lambda: len(seen) == 1)
    assert side.client.heard == []


def test_close__during_a_cut_is_found_when_the_link_heals(side: Any) -> None:
    connect(side)
    node = side.client.wire.client_id
    side.do(lambda: side.verbs.links.cut(node, 1))
    side.do(lambda: side.verbs.kill(1, DeathKind.KILL))
    side.do(lambda: side.verbs.start(1))
    side.run_for(20)
    assert side.client.heard == []
    side.do(side.verbs.links.heal)
    wait(side, lambda: side.client.ends == 1)


def test_close__by_the_broker_reaches_the_client_after_the_links_delay(side: Any) -> None:
    # It still sends over the old connection, and both are lost together: had it opened another,
    # the record would be appended, and yet be lost for the client when the end arrives.
    connect(side)
    delay(side, 200)
    before = log_end(side)
    name = side.do(lambda: side.verbs.add_rule(rule(api="Metadata", close="before", times=1)))
    ask(side)
    side.run_for(250)
    assert side.client.heard == [], "the end is under way"
    produce(side)
    wait(side, lambda: side.client.ends == 1)
    side.run_for(600)
    assert log_end(side) == before
    assert side.client.heard == [(0, None)], "and once only"
    side.do(lambda: side.verbs.remove_rule(name))


def test_close__by_the_broker_is_a_separate_event(side: Any) -> None:
    connect(side)
    seen = closed_at(side.dispatcher, 1)
    side.do(lambda: side.verbs.add_rule(rule(api="Metadata", close="before")))
    ask(side)
    wait(side, lambda: side.client.ends == 1)
    wait(side, lambda: len(seen) == 1)


def test_connect__a_request_in_flight_to_a_broker_that_died_is_refused(side: Any) -> None:
    delay(side, 150)
    ask(side)
    side.do(lambda: side.verbs.kill(1, DeathKind.KILL))
    side.run_for(180)
    assert side.client.heard == [], "it arrived just now"
    wait(side, lambda: side.client.ends == 1)


def test_connect__a_restarted_broker_refuses_until_it_is_unfenced(side: Any) -> None:
    # As 4.4.0: its port opens 3 ms after its log says that it has been unfenced.
    delay(side, 30)
    ask(side)
    side.do(lambda: side.verbs.kill(1, DeathKind.KILL))
    side.do(lambda: side.verbs.start(1))
    wait(side, lambda: side.client.ends == 1)
    assert not side.verbs.settled.is_registered(1), "the session of its earlier life goes on"
    wait(side, lambda: side.verbs.settled.is_serving(1))
    number = ask(side)
    wait(side, lambda: side.client.replies == [number])


def lose_next(side: Any, link: tuple[int, int], function: Callable[[], Any]) -> None:
    """Call `function`; its message over this link is lost for good."""
    layers = side.do(
        lambda: side.verbs.links.shape(
            (link[0],), (link[1],), LinkShape(loss=0.999_999_999), one_way=True
        )
    )
    function()
    side.do(lambda: side.verbs.links.remove_layers(layers))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> int:
    """The time after which a sender gives up a lost message, in ms; short."""
    reset_us = 600_000
    assert reset_us < RESET_US
    for module in ("shapes", "fabric"):
        monkeypatch.setattr(f"kcluster.network.{module}.RESET_US", reset_us)
    return reset_us // 1000


@pytest.mark.pure_python
def test_loss__nothing_behind_a_lost_request_arrives(side: Any, soon: int) -> None:
    connect(side)
    before = log_end(side)
    link = (side.client.wire.client_id, 1)
    lose_next(side, link, lambda: ask(side))
    produce(side)
    wait(side, lambda: side.client.ends == 1)
    side.run_for(50)
    assert log_end(side) == before
    assert side.client.heard == [(0, None)]


@pytest.mark.pure_python
def test_loss__nothing_behind_a_lost_reply_arrives(side: Any, soon: int) -> None:
    connect(side)
    before = log_end(side)
    lose_next(side, (1, side.client.wire.client_id), lambda: (ask(side), side.run_for(20)))
    produce(side)
    wait(side, lambda: log_end(side) == before + 1, "append, though requests still arrive")
    wait(side, lambda: side.client.ends == 1)
    assert side.client.heard == [(0, None)]


@pytest.mark.pure_python
def test_loss__resets_the_connection_that_lost_something_and_no_other(side: Any, soon: int) -> None:
    second = 1 + (1 << 30)
    connect(side)
    ask(side, second)
    wait(side, lambda: len(side.client.heard) == 1)
    side.client.heard.clear()
    link = (side.client.wire.client_id, 1)
    lose_next(side, link, lambda: ask(side))
    side.run_for(soon // 2)
    lose_next(side, link, lambda: ask(side, second))
    wait(side, lambda: side.client.ends == 1)
    side.run_for(soon // 4)
    assert side.client.ends == 1, "the second is given up later"
    wait(side, lambda: side.client.ends == 2)
