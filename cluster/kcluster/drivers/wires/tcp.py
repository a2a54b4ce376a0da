"""The project's own clients over real TCP, in the live driver's thread.

Owns: the sockets of simulated clients, their deadlines, what is on its way between them and the
brokers while a link is slow.  Never: what a client does (clients/), when a broker answers.
Kafka: NetworkClient's Selector.

The same as in virtual time (virtual_time.py), but with bytes: the fabric's latency, loss and cuts
hold between a client's id and a broker.  TCP itself runs over loopback and is always there: what
the fabric holds back is not written, and what came is not handed over.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, Final

import gevent
import gevent.monkey

from kcluster.clients.wire import ClientStateMachine, broker_of
from kcluster.drivers.live import LiveDriver
from kcluster.network.fabric import Link
from kcluster.network.node_ids import FIRST_CLIENT_ID
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import FrameReader, decode_response_frame, encode_request_frame

READ_SIZE_BYTES: Final = 256 << 10
MAX_FRAME_BYTES: Final = 100 << 20
ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}
"""Where a broker that listens everywhere is reached."""

_PlainSocket: Final = gevent.monkey.get_original("socket", "socket")
_READ, _WRITE = 1, 2


class LiveClients:
    """All simulated clients of a live cluster; for use in the driver's thread (`driver.call`).

    `seed`: of the clients' own random numbers.
    """

    def __init__(self, driver: LiveDriver, seed: int) -> None:
        self.driver = driver
        self.clients: dict[int, ClientStateMachine] = {}
        self.sockets: dict[ClientSocket, None] = {}
        """Those that are open, also when their client wants to hear no more."""
        self.hub = gevent.get_hub()
        self.read_buffer = memoryview(bytearray(READ_SIZE_BYTES))
        self._seed = seed
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._timer: Any = None
        self._is_inside = False
        """Between `enter` and `leave`."""
        self._is_closed = False
        self._broken: dict[ClientSocket, None] = {}
        """Something of these was lost in a cut: when the link is whole again, both ends hear."""
        driver.dispatcher.heal_sinks = (*driver.dispatcher.heal_sinks, self._on_link_healed)

    def add_client(self, client: ClientStateMachine) -> LiveWire:
        """Let a client begin; its wire has the id by which links to it are named."""
        client_id = FIRST_CLIENT_ID + len(self.clients)
        wire = LiveWire(self, client_id, Random(f"{self._seed}/{client_id}"))
        self.clients[client_id] = client
        self.driver.dispatcher.fabric.clients[client_id] = getattr(client, "name", "")
        self.enter()
        client.start(wire, self.now_ms)
        self.leave()
        return wire

    def close(self) -> None:
        """Close every socket; nobody is told."""
        self._is_closed = True
        for sock in tuple(self.sockets):
            sock.close()
        if self._timer is not None:
            self._timer.close()
        self._heap.clear()

    # ------------------------------------------------------------------------------ time

    @property
    def now_ms(self) -> int:
        """The cluster's time."""
        return self.driver.now_ms()

    def enter(self) -> None:
        """Control has come from the hub: time has passed."""
        self._is_inside = True
        self.driver.wake()

    def leave(self) -> None:
        """Do what is due, and go on when something is again."""
        if self._is_closed:
            return
        self._run_due()
        self._is_inside = False
        self._arm()
        self.driver.settle_soon()

    def _run_due(self) -> None:
        self._run_heap()
        for client in tuple(self.clients.values()):
            if client.deadline_ms is not None and client.deadline_ms <= self.now_ms:
                client.on_tick(self.now_ms)
        self._run_heap()

    def _run_heap(self) -> None:
        heap, dispatcher = self._heap, self.driver.dispatcher
        while heap and heap[0][0] <= dispatcher.now_us:
            heappop(heap)[2]()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        due_us = [self._heap[0][0]] if self._heap else []
        due_us += [x.deadline_ms * 1000 for x in self.clients.values() if x.deadline_ms is not None]
        if due_us:
            delay_us = max(0, min(due_us) - self.driver.dispatcher.now_us)
            self._timer = self.hub.loop.timer(delay_us / 1e6)
            self._timer.start(self._on_timer, update=True)

    def _on_timer(self) -> None:
        self.enter()
        self.leave()

    def later(self, at_us: int, deed: Callable[[], None]) -> None:
        """Do something at a time to come, or as soon as what is going on is done."""
        self._sequence += 1
        heappush(self._heap, (at_us, self._sequence, deed))
        if not self._is_inside:
            self._arm()  # whoever owns a client had it do something

    def carry(
        self, sock: ClientSocket, link: Link, deed: Callable[[], None], message: Any = None
    ) -> None:
        """Let a message, or the end of a connection (None), pass over a link: in order, late, or
        not at all.  A connection that lost a message is broken."""
        dispatcher = self.driver.dispatcher
        delay_us = dispatcher.fabric.delay_us(*link, dispatcher.now_us, message)
        is_lost = delay_us is None
        if delay_us is not None and delay_us < 0:
            # Lost for good: nothing behind it gets through, until the connection is reset.
            delay_us, is_lost = -delay_us, message is not None
            dispatcher.on_lost(link, delay_us)
        if is_lost and message is not None:
            self._broken[sock] = None
        if delay_us is None:
            return
        order = sock.last_arrival_us
        arrival_us = order[link] = max(dispatcher.now_us + delay_us, order.get(link, 0))

        def arrive() -> None:
            if dispatcher.fabric.is_cut(*link):
                if message is not None:
                    self._broken[sock] = None
            elif not is_lost:
                deed()

        self.later(arrival_us, arrive)

    def _on_link_healed(self, link: Link) -> None:
        """What was lost in a cut is not sent again: both ends find their connection broken."""
        for sock in tuple(self._broken):
            if sock.ends == link:
                del self._broken[sock]
                self.later(self.driver.dispatcher.now_us, sock.on_broken)


class LiveWire:
    """A client's way to the brokers: one socket to each, made when it is first used."""

    def __init__(self, clients: LiveClients, client_id: int, rng: Random) -> None:
        self.client_id = client_id
        self.rng = rng
        self._clients = clients
        self._sockets: dict[int, ClientSocket] = {}
        self._correlation_id = 0

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Whom it may ask first."""
        return tuple(self._clients.driver.plan.addresses)

    def send(
        self, broker_id: int, api_key: int, api_version: int, body: Any, *, answered: bool = True
    ) -> int:
        """Send a request; returns its correlation id.  `answered`: False for acks=0."""
        clients = self._clients
        sock = self._sockets.get(broker_id)
        if sock is None or not sock.is_open:
            sock = self._sockets[broker_id] = ClientSocket(clients, self.client_id, broker_id)
        self._correlation_id += 1
        buffers = encode_request_frame(
            api_key, api_version, self._correlation_id, f"client-{self.client_id}", body
        )
        asked = (self._correlation_id, api_key, api_version) if answered else None
        data = b"".join(buffers)
        opened = sock
        link = (self.client_id, broker_of(broker_id))
        clients.carry(opened, link, lambda: opened.write(data, asked), data)
        return self._correlation_id

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker; what was asked over it gets no answer."""
        sock = self._sockets.pop(broker_id, None)
        if sock is not None and sock.is_open:
            sock.is_open = False
            self._clients.carry(sock, (self.client_id, broker_of(broker_id)), sock.close)


class ClientSocket:
    """One connection of a client to a broker.  The hub calls it when it can be read or written."""

    __slots__ = (
        "_asked", "_broker_id", "_client_id", "_clients", "_name", "_readable", "_reader",
        "_socket", "_unsent", "_writable", "is_open", "last_arrival_us",
    )  # fmt: skip

    def __init__(self, clients: LiveClients, client_id: int, name: int) -> None:
        self.is_open = True
        """As the client sees it."""
        self.last_arrival_us: dict[Link, int] = {}
        """By way: nothing arrives before what was sent before it."""
        self._clients = clients
        self._client_id = client_id
        self._broker_id = broker_of(name)
        self._name = name
        """What the client calls it: not the broker's id if it is the second to that broker."""
        self._reader = FrameReader(MAX_FRAME_BYTES)
        self._asked: deque[tuple[int, int, int]] = deque()
        """(correlation id, API, version) of what the broker has not answered."""
        self._unsent = bytearray()
        self._socket: Any = None
        """None before the first bytes have come over the link, and after the end."""
        self._readable: Any = None
        self._writable: Any = None

    # --------------------------------------------------------------------------- writing

    def write(self, data: bytes, asked: tuple[int, int, int] | None) -> None:
        """Bytes have come over the link; the first of them open the connection.  They are lost if
        either end has closed it."""
        if self._socket is None and self.is_open:
            self._connect()
        if not self.is_open or self not in self._clients.sockets:
            return
        if asked is not None:
            self._asked.append(asked)
        self._unsent += data
        if not self._writable.active:
            self._flush()

    def _connect(self) -> None:
        clients = self._clients
        port = clients.driver.ports[self._broker_id]
        host = ANY_ADDRESS.get(port.host, port.host)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = self._socket = _PlainSocket(family, socket.SOCK_STREAM)
        clients.sockets[self] = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = clients.hub.loop
        self._readable = loop.io(sock.fileno(), _READ)
        self._writable = loop.io(sock.fileno(), _WRITE)
        # What comes of it shows when the socket can be written.
        sock.connect_ex((host, port.port))
        self._writable.start(self._on_writable)

    def _on_writable(self) -> None:
        self._clients.enter()
        self._writable.stop()
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.on_broken()
        else:
            if not self._readable.active:
                self._readable.start(self._on_readable)
            self._flush()
        self._clients.leave()

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent_bytes = self._socket.send(self._unsent)
                del self._unsent[:sent_bytes]
        except BlockingIOError:
            self._writable.start(self._on_writable)
        except OSError:
            self.on_broken()

    # --------------------------------------------------------------------------- reading

    def _on_readable(self) -> None:
        clients = self._clients
        clients.enter()
        room = clients.read_buffer
        try:
            size_bytes = self._socket.recv_into(room)
        except BlockingIOError:
            clients.leave()
            return
        except OSError:
            size_bytes = 0
        if size_bytes:
            frames: list[memoryview] = []
            self._reader.feed(room[:size_bytes], frames)
            for frame in frames:
                self._take(frame)
        else:
            self.on_broken()
        clients.leave()

    def _take(self, frame: memoryview) -> None:
        correlation_id, api_key, version = self._asked.popleft()
        if api_key == ApiKey.API_VERSIONS and version and _is_refused(frame):
            version = 0  # in which a broker says that it does not know the one asked for (KIP-511)
        answered, body = decode_response_frame(api_key, version, frame)
        assert answered == correlation_id, (answered, correlation_id)
        link = (self._broker_id, self._client_id)
        self._clients.carry(self, link, lambda: self._tell_reply(correlation_id, body), frame)

    def _tell_reply(self, correlation_id: int, body: Any) -> None:
        if self.is_open:
            client = self._clients.clients[self._client_id]
            client.on_reply(self._name, correlation_id, body, self._clients.now_ms)

    # ---------------------------------------------------------------------------- the end

    @property
    def ends(self) -> Link:
        """The link that it is on, from the client."""
        return self._client_id, self._broker_id

    def on_broken(self) -> None:
        """The broker's end is closed, or was never open: its client will hear."""
        self.close()
        self._clients.carry(self, (self._broker_id, self._client_id), self._tell_disconnected)

    def _tell_disconnected(self) -> None:
        if self.is_open:
            self.is_open = False
            client = self._clients.clients[self._client_id]
            client.on_disconnected(self._name, self._clients.now_ms)

    def close(self) -> None:
        """Let go of the socket."""
        if self._clients.sockets.pop(self, self) is self:
            return
        self._readable.stop()
        self._readable.close()
        self._writable.stop()
        self._writable.close()
        self._socket.close()
        self._unsent.clear()


def _is_refused(frame: memoryview) -> bool:
    """Whether an answer to ApiVersions is UNSUPPORTED_VERSION, the same place in all versions."""
    return int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
