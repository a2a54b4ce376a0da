"""Clients from outside on a network that fails: known by client.id, over TCP and in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster import do, rule
from kcluster.config.topology.model import Topology
from kcluster.events.words import text_of
from kcluster.handle.virtual import VirtualDriver
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from tests.rig.byte_worlds import KINDS, ByteWorld
from tests.rig.lines import read_frame
from tests.rig.patience import PATIENCE_S

SHORT_S = 0.15
"""So long nothing comes: the answer takes a millisecond."""


class Caller:
    """One connection that asks for metadata, under a client.id."""

    def __init__(self, world: ByteWorld, broker_id: int, client_id: str) -> None:
        self.client_id = client_id
        self.sock = world.connect(broker_id)
        self.requests = 0

    def send(self) -> None:
        self.requests += 1
        body = m.MetadataRequest(topics=None)
        frame = encode_request_frame(ApiKey.METADATA, 9, self.requests, self.client_id, body)
        self.sock.sendall(b"".join(frame))

    def is_answered(self) -> bool:
        number, answer = decode_response_frame(ApiKey.METADATA, 9, read_frame(self.sock))
        return number == self.requests and len(answer.brokers) == 2

    def ask(self) -> bool:
        self.send()
        return self.is_answered()

    def is_unanswered(self) -> bool:
        self.sock.settimeout(SHORT_S)
        try:
            return self.sock.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self.sock.settimeout(PATIENCE_S)

    def is_closed(self) -> bool:
        """A live driver ends a broken connection with a FIN, the one in memory with a RST."""
        try:
            return bool(self.sock.recv(1) == b"")
        except ConnectionResetError:
            return True


Call = Callable[[int, str], Caller]


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> Iterator[ByteWorld]:
    topics = {"orders": {"assignment": [[1, 2]]}}
    made = KINDS[request.param](Topology.of(brokers=2, topics=topics, profile="fast"))
    yield made
    made.finish()


@pytest.fixture
def cluster(world: ByteWorld) -> Any:
    return world.cluster


def now_s(cluster: Any) -> float:
    """The cluster's clock."""
    return float(cluster.driver.clock_ms()) / 1000


@pytest.fixture
def call(world: ByteWorld) -> Iterator[Call]:
    """Creates callers: `call(broker id, client.id)`."""
    made: list[Caller] = []

    def make(broker_id: int, client_id: str) -> Caller:
        made.append(Caller(world, broker_id, client_id))
        return made[-1]

    yield make
    for caller in made:
        caller.sock.close()


def test_isolate__a_client_by_id_gets_no_answer_from_that_broker_only(
    cluster: Any, call: Call
) -> None:
    billing = call(1, "billing-1")
    assert billing.ask()
    with cluster.isolate("client billing-*", 1):
        late = call(1, "billing-2")
        billing.send()
        late.send()
        assert billing.is_unanswered()
        assert late.is_unanswered(), "nor over a new connection"
        assert call(2, "billing-1").ask()
        assert call(1, "shop").ask()
    assert billing.is_closed(), "lost messages are not sent again"
    assert late.is_closed()
    assert call(1, "billing-1").ask()
    assert cluster.driver.outside is None, "the driver inspects no outside clients any more"


def test_isolate__an_idle_connection_survives_the_cut(cluster: Any, call: Call) -> None:
    billing = call(1, "billing")
    assert billing.ask()
    with cluster.isolate("client billing", "brokers"):
        pass
    assert billing.ask()


def test_isolate__one_way_serves_the_request_and_loses_the_answer(cluster: Any, call: Call) -> None:
    caller = call(1, "shop")
    with cluster.isolate(1, "clients", one_way=True):
        caller.send()
        assert caller.is_unanswered()
    assert caller.is_closed()


def test_isolate__affects_outside_clients_only_if_named(cluster: Any, call: Call) -> None:
    caller = call(1, "shop")
    with cluster.isolate(1):
        assert caller.ask()
    with cluster.isolate(1, [2, "controller", "clients"]):
        note = cluster.events()[-1].note
        assert "{2, controller, clients from outside}" in text_of(note.event)
        caller.send()
        assert caller.is_unanswered()
    assert caller.is_closed()


def test_isolate__a_client_by_its_address(cluster: Any, call: Call) -> None:
    caller = call(1, "shop")
    with cluster.isolate("host 127.0.*", 1):
        caller.send()
        assert caller.is_unanswered()
    with cluster.isolate("host 10.*", 1):
        assert call(1, "shop").ask()


def test_slow_link__delays_both_directions_and_keeps_answers_in_order(
    cluster: Any, call: Call
) -> None:
    caller = call(1, "shop")
    with cluster.slow_link("client shop", 1, latency_ms=20, jitter_ms=5, distribution="uniform"):
        began = now_s(cluster)
        assert caller.ask()
        assert now_s(cluster) - began >= 0.03
        for _ in range(4):
            caller.send()
        caller.requests -= 4
        for _ in range(4):
            caller.requests += 1
            assert caller.is_answered()
    assert call(1, "shop").ask()
    assert cluster.driver.outside is None, "the driver inspects no outside clients any more"


def test_action__names_outside_clients_as_scenario_files_do(cluster: Any, call: Call) -> None:
    undo = do(cluster, "isolate", nodes="client billing*", others="1")
    billing, shop = call(1, "billing-7"), call(1, "shop")
    billing.send()
    assert shop.ask()
    assert billing.is_unanswered()
    undo()
    assert billing.is_closed()
    undo = do(cluster, "slow", nodes="clients", others="1", latency="20ms")
    began = now_s(cluster)
    assert shop.ask()
    assert now_s(cluster) - began >= 0.035
    undo()


def test_rule__and_network_faults_combine(cluster: Any, call: Call) -> None:
    name = cluster.add_rule(rule(api="Metadata", client="billing", delay_ms=30))
    with cluster.slow_link("client billing", 1, latency_ms=20):
        began = now_s(cluster)
        assert call(1, "billing").ask()
        assert now_s(cluster) - began >= 0.065
    cluster.remove_rule(name)


def test_find__virtual_time_has_no_clients_from_outside() -> None:
    driver = VirtualDriver(Topology.of(brokers=1), 1)
    with pytest.raises(ClusterError, match="client billing: no such client"):
        driver.isolate("client billing")
    with pytest.raises(ClusterError, match="clients have no addresses in virtual time"):
        driver.isolate("host 127.0.0.1")
