"""TCP in virtual time: connections are made, cut, broken and ended as on a network."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from kcluster import do, rule
from kcluster.config.topology.model import Topology
from kcluster.drivers.memory.acceptor import BACKLOG
from kcluster.drivers.memory.stream import StreamEnd
from kcluster.handle.world_cluster import WorldCluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_request

SECOND_US = 1_000_000
ORDERS = {"orders": {"assignment": [[1, 2, 3]]}}


class World:
    """A cluster whose clients are ends of connections; times are µs since it served."""

    def __init__(self, seed: int = 1, **keys: Any) -> None:
        self.lines: list[str] = []
        topology = Topology.of(**{"brokers": 3, "topics": ORDERS, **keys})
        self.cluster = WorldCluster(topology, seed, log=self.lines.append)
        self.driver = self.cluster.driver
        self.packets: list[str] = []
        self.driver.network.packet_sinks = (self._on_packet,)
        self.cluster.open()
        self.began_us = self.driver.now_us

    def _on_packet(self, now_us: int, connection: Any, is_to_broker: bool, data: bytes) -> None:
        way = "->" if is_to_broker else "<-"
        content = hashlib.sha1(data).hexdigest()
        self.packets.append(f"{now_us} {way} {connection.number} {len(data)} {content}")

    @property
    def now_us(self) -> int:
        return self.driver.now_us - self.began_us

    def connect(self, broker_id: int = 1) -> StreamEnd:
        """It has connected."""
        end = self.begin_to_connect(broker_id)
        self.until(lambda: not end.is_connecting)
        assert end.is_connected
        return end

    def begin_to_connect(self, broker_id: int = 1) -> StreamEnd:
        return self.driver.connect(*self.cluster.plan.addresses[broker_id])

    def until(self, condition: Callable[[], bool], limit_us: int = 5 * SECOND_US) -> None:
        assert self.driver.advance(self.driver.now_us + limit_us, condition), "not in time"

    def pass_us(self, duration_us: int) -> None:
        self.driver.advance(self.driver.now_us + duration_us, lambda: False)

    def read(self, end: StreamEnd, size_bytes: int = 1 << 20) -> bytes:
        """What arrives next."""
        self.until(lambda: end.is_readable)
        return end.read(size_bytes)


@pytest.fixture
def world() -> World:
    return World()


def request(api_key: ApiKey, version: int, body: Any, client_id: str = "shop") -> bytes:
    return b"".join(encode_request_frame(api_key, version, 1, client_id, body))


def question(client_id: str = "shop") -> bytes:
    return request(ApiKey.METADATA, 9, m.MetadataRequest(topics=None), client_id)


def produce(size_bytes: int = 10) -> bytes:
    body = produce_request("orders", 0, batch(bytes(size_bytes)))
    return request(ApiKey.PRODUCE, 11, body)


def fetch(max_wait_ms: int) -> bytes:
    body = fetch_request("orders", fetch_partition(), max_wait_ms=max_wait_ms, min_bytes=1 << 20)
    return request(ApiKey.FETCH, 11, body)


# ------------------------------------------------------------------------------ connecting


def test_connect__takes_one_round_trip_and_so_does_a_request(world: World) -> None:
    end = world.begin_to_connect()
    assert end.is_connecting
    assert not end.is_writable
    world.until(lambda: end.is_writable)
    assert world.now_us == 400
    end.write(question())
    assert world.read(end)
    assert world.now_us == 800


def test_connect__uses_the_latency_of_the_topology() -> None:
    world = World(network={"default_latency_ms": 3})
    world.connect()
    assert world.now_us == 6_000


def test_connect__to_a_dead_broker_is_refused(world: World) -> None:
    world.cluster.kill(1, wait=False)
    end = world.begin_to_connect()
    world.until(lambda: not end.is_connecting)
    assert end.is_readable
    assert end.is_writable
    assert end.take_error() == errno.ECONNREFUSED


def test_connect__to_a_port_of_nobody_is_refused(world: World) -> None:
    end = world.driver.connect("brokers.kcluster", 1)
    world.until(lambda: not end.is_connecting)
    assert end.error == errno.ECONNREFUSED
    assert world.driver.hosts == {"brokers.kcluster": "192.0.2.1"}
    by_address = world.driver.connect("192.0.2.1", 9092, local=("192.0.2.200", 5))
    world.until(lambda: by_address.is_connected)
    assert by_address.local_address == ("192.0.2.200", 5)


def test_connect__to_a_paused_broker_succeeds_and_nobody_answers(world: World) -> None:
    world.cluster.pause(1, wait=False)
    end = world.connect()
    end.write(question())
    world.pass_us(SECOND_US)
    assert not end.is_readable
    world.cluster.resume(1, wait=False)
    assert world.read(end)


def test_connect__beyond_the_backlog_waits_for_a_syn_that_is_sent_again(world: World) -> None:
    world.cluster.pause(1, wait=False)
    ends = [world.begin_to_connect() for _ in range(BACKLOG + 1)]
    world.pass_us(SECOND_US // 2)
    assert [end.is_connected for end in ends].count(False) == 1
    world.cluster.resume(1, wait=False)
    world.until(lambda: ends[-1].is_connected)
    assert world.now_us == SECOND_US + 400


def test_connect__across_a_cut_waits_until_it_heals_or_for_two_minutes(world: World) -> None:
    with world.cluster.isolate("clients", 1):
        end = world.begin_to_connect()
        world.pass_us(10 * SECOND_US)
        assert end.is_connecting
    world.until(lambda: end.is_connected, 1_000)
    end.write(question())
    assert world.read(end)
    with world.cluster.isolate("clients", 1):
        hopeless = world.begin_to_connect()
        began_us = world.now_us
        world.until(lambda: bool(hopeless.error), 200 * SECOND_US)
    assert hopeless.error == errno.ETIMEDOUT
    assert world.now_us == began_us + 127 * SECOND_US


def test_connect__over_a_very_bad_link_takes_long_and_holds() -> None:
    world = World(seed=3)
    world.cluster.lose("clients", 1, share=0.9)
    ends = [world.begin_to_connect() for _ in range(30)]
    world.pass_us(126 * SECOND_US)
    connected = [end for end in ends if end.is_connected]
    assert len(connected) > 10
    world.cluster.heal()
    for end in connected:
        assert not end.is_readable, "nothing has reset it"
        end.write(question())
        assert world.read(end)


def test_connect__an_answer_that_comes_too_late_is_refused(world: World) -> None:
    world.cluster.slow_link("clients", 1, latency_ms=70_000)
    end = world.begin_to_connect()
    world.until(lambda: bool(end.error), 200 * SECOND_US)
    assert end.take_error() == errno.ETIMEDOUT
    world.pass_us(100 * SECOND_US)
    assert not end.is_connected
    world.pass_us(100 * SECOND_US)
    assert not world.driver.listeners[1][0].connections


def test_connect__a_client_may_give_up(world: World) -> None:
    end = world.begin_to_connect()
    end.close()
    world.pass_us(SECOND_US)
    assert not world.driver.listeners[1][0].connections


# --------------------------------------------------------------------------------- the end


def test_kill__ends_connections_with_a_fin_and_unread_ones_with_a_reset(world: World) -> None:
    idle, asking = world.connect(), world.connect()
    world.cluster.pause(1, wait=False)
    waiting = world.connect()
    for _ in range(3):
        asking.write(produce(300_000))
    world.pass_us(1_000)
    world.cluster.kill(1, wait=False)
    world.pass_us(1_000)
    assert idle.read(1) == b""
    # The broker had not read all of its requests, and it had not accepted the third connection.
    assert asking.error == errno.ECONNRESET
    assert waiting.error == errno.ECONNRESET
    assert idle.write(question()) > 0
    world.pass_us(1_000)
    assert idle.take_error() == errno.EPIPE, "the machine of the dead process resets it"


def test_a_half_closed_connection__is_closed_by_the_broker_like_a_closed_one(world: World) -> None:
    end = world.connect()
    end.write(fetch(max_wait_ms=500))
    end.close_write()
    assert world.read(end) == b""
    assert not world.driver.listeners[1][0].connections


def test_a_broken_client__is_forgotten_with_its_request(world: World) -> None:
    end = world.connect()
    end.write(fetch(max_wait_ms=60_000))
    world.pass_us(1_000)
    end.abort()
    world.until(lambda: not world.driver.listeners[1][0].connections)
    assert world.lines == []


def test_idle__connections_are_closed_once_their_time_is_over() -> None:
    world = World(brokers=1, topics={}, config={"connections.max.idle.ms": "10000"})
    end = world.connect()
    world.pass_us(9 * SECOND_US)
    assert not end.is_readable
    world.until(lambda: end.is_readable, 3 * SECOND_US)
    assert end.read(1) == b""


# --------------------------------------------------------------------------------- the links


def test_cut__by_client_id_is_silence_and_a_reset_when_it_heals(world: World) -> None:
    billing, shop = world.connect(), world.connect()
    for end, name in ((billing, "billing-1"), (shop, "shop")):
        end.write(question(name))
        assert world.read(end)
    fault = world.cluster.isolate("client billing*", 1)
    for end, name in ((billing, "billing-1"), (shop, "shop")):
        end.write(question(name))
    assert world.read(shop)
    world.pass_us(60 * SECOND_US)
    assert not billing.is_readable
    fault()
    world.until(lambda: billing.is_readable, 1_000)
    assert billing.take_error() == errno.ECONNRESET
    again = world.connect()
    again.write(question("billing-1"))
    assert world.read(again)


def test_cut__an_answer_under_way_is_lost(world: World) -> None:
    end = world.connect()
    end.write(question())
    world.pass_us(300)
    with world.cluster.isolate(1, "clients", one_way=True):
        world.pass_us(SECOND_US)
        assert not end.is_readable
    world.pass_us(1_000)
    assert end.error == errno.ECONNRESET


def test_cut__a_killed_broker_is_noticed_only_when_it_heals(world: World) -> None:
    end = world.connect()
    with world.cluster.isolate("clients", 1):
        world.cluster.kill(1, wait=False)
        world.pass_us(SECOND_US)
        assert not end.is_readable
    world.pass_us(1_000)
    assert end.is_readable


def test_slow_link__delays_and_a_bandwidth_counts_bytes(world: World) -> None:
    end = world.connect()
    end.write(question())
    world.read(end)
    before_us = world.now_us
    with world.cluster.slow_link("client shop", 1, latency_ms=20):
        end.write(question())
        world.read(end)
    assert world.now_us == before_us + 40_400
    before_us = world.now_us
    with world.cluster.limit_bandwidth("client shop", 1, bytes_per_s=100_000):
        end.write(produce(100_000))
        world.read(end)
    assert 1_000_000 < world.now_us - before_us < 1_200_000


def test_loss__delays_a_request_by_a_retransmission(world: World) -> None:
    end = world.connect()
    world.cluster.lose("clients", 1, share=0.5)
    took_us = []
    for _ in range(10):
        before_us = world.now_us
        end.write(question())
        world.until(lambda: end.is_readable, 60 * SECOND_US)
        end.read(1 << 20)
        took_us.append(world.now_us - before_us)
    assert min(took_us) == 400
    assert max(took_us) > 200_000


# ----------------------------------------------------------------------------- and all of it


def test_a_rule__silences_a_connection_until_it_is_removed(world: World) -> None:
    name = world.cluster.add_rule(rule(api="Metadata", client="billing", drop="request"))
    end = world.connect()
    end.write(question("billing"))
    world.pass_us(10 * SECOND_US)
    assert not end.is_readable
    world.cluster.remove_rule(name)
    assert world.read(end) == b""


def test_a_large_answer__passes_as_its_reader_makes_room(world: World) -> None:
    writer, reader = world.connect(), world.connect()
    for _ in range(4):
        writer.write(produce(900_000))
        world.read(writer)
    body = fetch_request("orders", fetch_partition(partition_max_bytes=50 << 20))
    reader.write(request(ApiKey.FETCH, 11, body))
    world.pass_us(SECOND_US)
    (connection,) = (
        x for x in world.driver.listeners[1][0].connections.values() if x._unsent_bytes
    )
    assert connection._unsent_bytes > 2_000_000
    data = b""
    while len(data) < 3_600_000:
        data += world.read(reader, 100_000)
    assert int.from_bytes(data[:4], "big") + 4 == len(data)
    assert not reader.is_readable


def story(seed: int) -> tuple[list[str], list[str]]:
    """Packets and events of a run with faults."""
    world = World(seed)
    world.cluster.lose("clients", 1, share=0.3)
    end = world.connect()
    for _ in range(5):
        end.write(produce())
        world.until(lambda: end.is_readable, 60 * SECOND_US)
        end.read(1 << 20)
    world.cluster.kill(1)
    return world.packets, [repr(entry) for entry in world.cluster.events()]


def test_the_same_seed__gives_the_same_trace_to_the_byte() -> None:
    assert story(7) == story(7)
    assert story(7) != story(8)


def test_verdict__counts_what_clients_sent_in_bytes(world: World) -> None:
    end = world.connect()
    for _ in range(3):
        end.write(produce())
        world.read(end)
    verdict = world.cluster.verdict()
    assert verdict
    assert "sent 3" in str(verdict)
    assert world.cluster.run_info().clock == "virtual"


def test_add_broker__is_reached_like_the_others(world: World) -> None:
    do(world.cluster, "add_broker", id=4)
    world.cluster.wait_for("settled", within=30)
    assert world.cluster.plan.addresses[4] == ("brokers.kcluster", 9095)
    before_us = world.now_us
    end = world.connect(4)
    end.write(question())
    assert world.read(end)
    assert world.now_us == before_us + 800


def test_network__lists_clients_once_somebody_has_named_them(world: World) -> None:
    end = world.connect()
    end.write(question())
    assert world.read(end)
    assert world.cluster.status().clients == {}
    with world.cluster.isolate("client shop", 1):
        assert list(world.cluster.status().clients.values()) == ["shop"]
