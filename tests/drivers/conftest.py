"""The same world on either driver: `world` is a cluster that a test does things to.

A world of the live driver is a `Cluster` and a socket per broker; one of the virtual driver a
`VirtualDriver` and one simulated client.  Both answer `ask` with the decoded answer.
"""

from __future__ import annotations

import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID, Note
from kcluster.drivers.virtual import VirtualDriver
from kcluster.drivers.wires.virtual import ClientWire
from kcluster.handle.cluster import Cluster
from kcluster.operations.status import ClusterStatus, PartitionStatus, cluster_status
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.records.records import Record, build_batch

LIMIT_MS = 10_000
PRODUCE_VERSION = 11

ORDERS = {
    "orders": {"partitions": 2, "replication_factor": 3, "assignment": [[1, 2, 3], [2, 3, 1]]}
}


class World(ABC):
    """What both drivers' worlds share."""

    @abstractmethod
    def status(self) -> ClusterStatus: ...

    @abstractmethod
    def notes(self) -> list[Note]: ...

    @abstractmethod
    def now_ms(self) -> int: ...

    @abstractmethod
    def ask(self, broker_id: int, api_key: int, version: int, body: Any) -> Any: ...

    handle: Any
    """The `Cluster` or the `VirtualDriver`: what is the same in both is asked of it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.handle, name)

    @abstractmethod
    def wait(self, condition: Callable[[], bool], what: str) -> None: ...

    def partition(self, topic: str = "orders", partition: int = 0) -> PartitionStatus:
        found = [
            status
            for status in self.status().partitions
            if (status.topic, status.partition) == (topic, partition)
        ]
        return found[0]

    def produce(self, broker_id: int, records: int, acks: int = -1) -> Any:
        """Append to orders-0 at a broker; its partition response."""
        batch = build_batch(Record(at, 1_000, None, b"%d" % at, ()) for at in range(records))
        data = m.ProduceRequest.PartitionProduceData(index=0, records=bytes(batch))
        topic = m.ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
        body = m.ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[topic])
        answer = self.ask(broker_id, ApiKey.PRODUCE, PRODUCE_VERSION, body)
        return answer.responses[0].partition_responses[0]

    def edges(self) -> set[tuple[int, int]]:
        """The links that are not as they were built."""
        graph = self.handle.network()
        nodes = [node for node in graph if node <= CONTROLLER_ID]
        whole = {(a, b) for a in nodes for b in nodes if a != b}
        shaped = {(a, b) for a, b, shapes in graph.edges(data="shapes") if shapes}
        return (whole - set(graph.edges)) | shaped

    def wait_for_isr(self, *members: int) -> None:
        self.wait(lambda: sorted(self.partition().isr) == sorted(members), f"ISR {members}")


class LiveWorld(World):
    def __init__(self, topology: Topology) -> None:
        self.cluster = Cluster(topology, seed=1)
        self.cluster.open()
        self.handle = self.cluster
        self.kill = self.cluster.kill
        self.start = self.cluster.start
        self.pause, self.resume = self.cluster.pause, self.cluster.resume
        self.move, self.elect = self.cluster.move, self.cluster.elect

        self._look = self.cluster.status

    def status(self) -> ClusterStatus:
        return self._look()

    def ask(self, broker_id: int, api_key: int, version: int, body: Any) -> Any:
        with socket.create_connection(self.cluster.plan.addresses[broker_id], timeout=5) as sock:
            sock.sendall(b"".join(encode_request_frame(api_key, version, 7, "test", body)))
            frame = read_frame(sock)
        correlation_id, answer = decode_response_frame(api_key, version, frame)
        assert correlation_id == 7
        return answer

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        # Conditions look at the status, which the driver's thread gives: so poll, but from within.
        plan, dispatcher = self.cluster.plan, self.cluster.driver.dispatcher
        self._look = lambda: cluster_status(plan, dispatcher)
        try:
            self.cluster._wait(condition, LIMIT_MS / 1000, f"no {what}")
        finally:
            self._look = self.cluster.status

    def notes(self) -> list[Note]:
        return [entry.note for entry in self.cluster.events()]

    def now_ms(self) -> int:
        return self.cluster.driver.now_ms()

    def close(self) -> None:
        self.cluster.__exit__(None, None, None)


class OneAnswer:
    """A simulated client that records what it receives."""

    deadline_ms = None

    def __init__(self) -> None:
        self.answers: dict[int, Any] = {}
        self.lost: list[int] = []

    def start(self, wire: ClientWire, now_ms: int) -> None:
        self.wire = wire

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.answers[correlation_id] = body

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.lost.append(broker_id)

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError


class VirtualWorld(World):
    def __init__(self, topology: Topology) -> None:
        self.handle = self.driver = VirtualDriver(topology, seed=1)
        self.driver.open()
        self.client = OneAnswer()
        self.driver.add_client(self.client)
        self.pause, self.resume = self.driver.pause, self.driver.resume
        self.elect = self.driver.elect
        self.wait(self.driver.verbs.settled.all_serving, "start")

    def status(self) -> ClusterStatus:
        return self.driver.status()

    def kill(self, broker_id: int, how: str = "kill") -> None:
        self.driver.kill(broker_id, how)
        settled = self.driver.verbs.settled
        self.wait(lambda: settled.is_down(broker_id), "death")
        self.wait(lambda: settled.is_without(broker_id), "life without it")

    def start(self, broker_id: int) -> None:
        self.driver.start(broker_id)
        settled = self.driver.verbs.settled
        self.wait(lambda: settled.is_serving(broker_id), "start")

    def move(self, topic: str, partition: int, to: int) -> None:
        self.driver.move(topic, partition, to)
        settled = self.driver.verbs.settled
        self.wait(lambda: settled.is_led_by(topic, partition, to), "move")

    def ask(self, broker_id: int, api_key: int, version: int, body: Any) -> Any:
        asked = self.client.wire.send(broker_id, api_key, version, body)
        self.wait(lambda: asked in self.client.answers, "answer")
        return self.client.answers.pop(asked)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        assert self.driver.run_until_condition(condition, LIMIT_MS), f"no {what}"

    def notes(self) -> list[Note]:
        return self.driver.notes

    def now_ms(self) -> int:
        return self.driver.now_ms

    def close(self) -> None:
        pass


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        assert chunk, f"closed after {len(data)} of {size} bytes"
        data += chunk
    return data


def read_frame(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    return read_exactly(sock, size)


def no_error(answer: Any) -> bool:
    return answer.error_code == ErrorCode.NONE


@pytest.fixture(params=["live", "virtual"])
def make_world(request: pytest.FixtureRequest) -> Iterator[Callable[[Topology], Any]]:
    made: list[Any] = []

    def make(topology: Topology) -> Any:
        kind = LiveWorld if request.param == "live" else VirtualWorld
        made.append(kind(topology))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: Callable[[Topology], Any]) -> Any:
    return make_world(Topology.of(brokers=3, topics=ORDERS, profile="fast"))
