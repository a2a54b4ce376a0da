"""Our cluster in virtual time, with requests and responses as bytes.

Owns: carrying frames to and from virtual brokers.  Never: decides which requests are sent.

Bytes go through the same Channel as over TCP; only the sockets and the clock are simulated.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from compare.systems import our_topology
from kcluster.broker.channel import Channel
from kcluster.broker.node import BrokerNode
from kcluster.clients.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.conform.broker_ids import SAME_IDS
from kcluster.conform.references import Reference
from kcluster.conform.systems import ANY_VERSION, CLOSED, PLAINTEXT, SILENT
from kcluster.contract import LoginFailed, Reply, Request
from kcluster.drivers.wires.virtual import ClientConnection
from kcluster.handle.virtual import VirtualDriver
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ProtocolError

START_MS: Final = 1_795_000_000_000
"""Some time in 2026."""


class Virtual:
    """Our three brokers."""

    name = "kcluster"
    settle_ms = 40
    ids = SAME_IDS

    def __init__(
        self, reference: Reference, seed: int = 1, topology: Topology | None = None
    ) -> None:
        """`topology`: another one than the recorded cluster's."""
        chosen = topology or our_topology(reference)
        self.driver = VirtualDriver(chosen, seed, start_ms=START_MS)
        self.driver.open()
        self.driver.run_for(2_000)
        self._channels: dict[tuple[int, int], Channel] = {}
        self._clients: dict[tuple[str, int], _Client] = {}

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        return self.driver.plan.addresses

    @property
    def endpoints(self) -> dict[int, dict[str, tuple[str, int]]]:
        return {id_: {PLAINTEXT: address} for id_, address in self.addresses.items()}

    @property
    def controller_ports(self) -> dict[int, int]:
        return {}  # its controller has no listener

    def newest(self, api: ApiKey) -> int:
        return ANY_VERSION

    def now_ms(self) -> int:
        return self.driver.now_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self.driver.run_for(duration_ms)

    def channel(self, broker: int) -> Channel | None:
        """The channel of the broker's current process; None while it is down."""
        process = self.driver.dispatcher.processes[broker]
        if not isinstance(process.node, BrokerNode):
            return None
        found = self._channels.get((broker, process.life))
        if found is None:
            found = self._channels[broker, process.life] = Channel(process.node)
        return found

    def connect(self, on: str, broker: int, listener: str) -> None:
        assert listener == PLAINTEXT, "in_memory.py has the other listeners"
        self.close(on, broker)
        self._clients[on, broker] = _Client(self, broker)

    def send(self, on: str, broker: int, frame: bytes) -> None:
        if (on, broker) not in self._clients:
            self.connect(on, broker, PLAINTEXT)
        self._clients[on, broker].send(frame)

    def receive(self, on: str, broker: int, limit_ms: int) -> bytes | str:
        client = self._clients.get((on, broker))
        if client is None:
            return CLOSED
        self.driver.run_until_condition(client.has_news, limit_ms)
        if client.frames:
            return client.frames.popleft()
        if not client.is_closed:
            return SILENT
        self.close(on, broker)
        return CLOSED

    def close(self, on: str, broker: int) -> None:
        client = self._clients.pop((on, broker), None)
        if client is not None:
            client.close()

    def close_all(self, broker: int) -> None:
        for on, to in tuple(self._clients):
            if to == broker:
                self.close(on, to)

    def operate(self, verb: str, broker: int) -> None:
        if verb == "start":
            self.driver.start(broker)
            return
        self.driver.kill(broker, "clean" if verb == "stop" else "kill")
        process = self.driver.dispatcher.processes[broker]
        self.driver.run_until_condition(lambda: process.node is None, 60_000)


class _Client:
    """One connection with bytes in and out, as a client of the virtual driver."""

    deadline_ms: int | None = None

    def __init__(self, system: Virtual, broker: int) -> None:
        self._system = system
        self._broker = broker
        self._channel = system.channel(broker)
        self._asked: deque[Request] = deque()
        self._connection: ClientConnection | None = None
        self.frames: deque[bytes] = deque()
        self.is_closed = self._channel is None
        wire = system.driver.add_client(self)
        if not self.is_closed:
            self._connection = system.driver.time.connect(wire.client_id, broker)

    def has_news(self) -> bool:
        return self.is_closed or bool(self.frames)

    def send(self, frame: bytes) -> None:
        driver = self._system.driver
        if self.is_closed or self._connection is None or self._channel is None:
            return
        body = memoryview(bytearray(frame[4:]))
        try:
            received = self._channel.receive(
                body, self._connection.connection_id, "127.0.0.1", driver.now_ms
            )
        except ProtocolError:
            self.close()
            return
        if isinstance(received, Request):
            self._asked.append(received)
            self._connection.unanswered += 1
            driver.time.transmit(self._connection, received)
            driver.run_for(0)
        else:
            assert not isinstance(received, LoginFailed), "the listener has no SASL"
            self.frames.append(b"".join(received)[4:])

    def close(self) -> None:
        self.is_closed = True
        if self._connection is not None and self._connection.is_open:
            self._system.driver.time.hang_up(self._connection)
            self._system.driver.run_for(0)

    # ------------------------------------------------------------------ callbacks

    def start(self, wire: Wire, now_ms: int) -> None:
        pass

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        # Requests without a response (acks=0) are still in the queue.
        while self._asked[0].correlation_id != correlation_id:
            self._asked.popleft()
        reply = Reply(self._asked.popleft(), body)
        assert self._channel is not None
        self.frames.append(b"".join(self._channel.answer(reply))[4:])

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.is_closed = True

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("it has no deadline")
