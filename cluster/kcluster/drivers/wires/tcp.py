"""The wires of the project's own clients over real TCP; virtual.py has the wires of virtual time.

Owns: the sockets of these clients, their deadlines and the timer for them, in the live driver's
thread.  Never: acts as a client (clients/), decides a message's fate on a link
(network/transit.py). Kafka: NetworkClient and its Selector.

The fabric's latency, loss and cuts apply between a client's id and a broker.  The TCP connection
itself runs over loopback, which is always up: a request is written to the socket after it has
passed the link, and a reply is given to its client after it has passed the link.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Any, Final

import gevent
import gevent.monkey
from msgspec import Struct

from kcluster.clients.logins import SSL_HANDSHAKE_FAILED, refuse, with_logins
from kcluster.clients.wire import ClientStateMachine, broker_of
from kcluster.drivers.live import LiveDriver
from kcluster.network.fabric import Link
from kcluster.network.node_ids import FIRST_CLIENT_ID
from kcluster.network.transit import CarriedConnection, Transit
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import FrameReader, decode_response_frame, encode_request_frame
from kcluster.protocol.messages import Message
from kcluster.security.client_access import ClientAccess

if TYPE_CHECKING:
    from kcluster.drivers.tls.client_socket import TlsClientSocket

READ_SIZE_BYTES: Final = 256 << 10
MAX_FRAME_BYTES: Final = 100 << 20
ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}
"""The address at which to reach a broker that listens on all addresses."""

_PlainSocket: Final = gevent.monkey.get_original("socket", "socket")
_READ, _WRITE = 1, 2


class _SentRequest(Struct, frozen=True):
    """A request on its way.  `expected`: (correlation id, API, version) of its reply, None for
    acks=0; `body`: the message, from which the network computes its size."""

    data: bytes
    expected: tuple[int, int, int] | None
    body: Message


class _SentReply(Struct, frozen=True):
    """A reply on its way."""

    correlation_id: int
    body: Message


class LiveClients:
    """All of the project's own clients in a live cluster; for the driver's thread (`driver.call`).

    `seed`: for the clients' random numbers.
    """

    def __init__(self, driver: LiveDriver, seed: int) -> None:
        self.driver = driver
        self.clients: dict[int, ClientStateMachine] = {}
        self._client_count = 0
        self._wires: dict[int, LiveWire] = {}
        self.sockets: dict[ClientSocket, None] = {}
        """The sockets that are open to the broker, even after their client has closed its end."""
        self.hub = gevent.get_hub()
        self.read_buffer = memoryview(bytearray(READ_SIZE_BYTES))
        self._seed = seed
        self._heap: list[tuple[int, int, Callable[[], object]]] = []
        self._sequence = 0
        self._timer: Any = None
        self._is_inside = False
        """Whether the code runs between `enter` and `leave`."""
        self._is_closed = False
        self._transit: Transit[ClientSocket] = Transit(
            driver.dispatcher.fabric, self, self, self._on_lost
        )
        driver.dispatcher.heal_sinks = (*driver.dispatcher.heal_sinks, self._on_link_healed)
        driver.clock_sinks = (*driver.clock_sinks, self._arm)
        driver.end_sinks = (*driver.end_sinks, self.close)

    def add_client(
        self, client: ClientStateMachine, kafka_id: str = "", access: ClientAccess | None = None
    ) -> LiveWire:
        """Start a client; returns its wire, whose `client_id` names links to it.  `kafka_id`: its
        client.id; without it, an id that marks a client with a ledger.  `access`: how it logs in;
        None: as the topology's first user, if the listener demands a user."""
        access = self.driver.plan.default_access if access is None else access
        client_id = FIRST_CLIENT_ID + self._client_count
        self._client_count += 1
        name = self.driver.dispatcher.fabric.add_client(client_id, getattr(client, "name", ""))
        rng = Random(f"{self._seed}/client {name}")
        wire = self._wires[client_id] = LiveWire(self, client_id, kafka_id, rng, access)
        started = self.clients[client_id] = with_logins(client, access, lambda: self.now_ms)
        self.enter()
        started.start(wire, self.now_ms)
        self.leave()
        return wire

    def remove_client(self, client_id: int) -> None:
        """Close the connections of a finished client, which is not notified."""
        self.enter()
        self._wires.pop(client_id).disconnect_all()
        self.leave()

    def close(self) -> None:
        """Close every socket; clients are not notified."""
        self._is_closed = True
        for sock in tuple(self.sockets):
            sock.close()
        self._arm()
        self._heap.clear()

    # ------------------------------------------------------------------------------ time

    @property
    def now_ms(self) -> int:
        """The cluster's time."""
        return self.driver.now_ms()

    @property
    def now_us(self) -> int:
        """Set the time at the beginning of a call of the hub."""
        return self.driver.dispatcher.now_us

    def enter(self) -> None:
        """Begin a call of the hub: time has passed."""
        self._is_inside = True
        self.driver.wake()

    def leave(self) -> None:
        """Run all due callbacks, and set the timer for the next one."""
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
        if self._is_closed or self.driver.is_clock_paused:
            return
        due_us = [self._heap[0][0]] if self._heap else []
        due_us += [x.deadline_ms * 1000 for x in self.clients.values() if x.deadline_ms is not None]
        if due_us:
            self._timer = self.hub.loop.timer(self.driver.delay_s(min(due_us)))
            self._timer.start(self._on_timer, update=True)

    def _on_timer(self) -> None:
        self.enter()
        self.leave()

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time, or as soon as the current callback has returned.  Part of
        Clock."""
        self._sequence += 1
        heappush(self._heap, (at_us, self._sequence, callback))
        if not self._is_inside:
            self._arm()  # a user called in the driver's thread, so no `leave` will follow

    # ----------------------------------------------------------- the ends of connections

    def connect(self, client_id: int, name: int, access: ClientAccess) -> ClientSocket:
        """Open a connection; the socket connects when the first request has passed the link."""
        return ClientSocket(self, client_id, name, access)

    def transmit(self, sock: ClientSocket, request: _SentRequest) -> None:
        """Send a request from a client to its broker."""
        self._transit.to_broker(sock, request)

    def transmit_reply(self, sock: ClientSocket, correlation_id: int, body: Message) -> None:
        """Send a reply from the socket to the client."""
        self._transit.to_client(sock, _SentReply(correlation_id, body))

    def hang_up(self, sock: ClientSocket) -> None:
        """Close the client's end of a connection."""
        self._transit.close_from_client(sock)

    def on_socket_closed(self, sock: ClientSocket) -> None:
        """Take note that the broker has closed its end of a socket, or never opened it."""
        self._transit.close_from_broker(sock)

    def secure(self, sock: socket.socket, client: ClientSocket) -> TlsClientSocket:
        """Begin TLS on a connected socket."""
        tls = self.driver.tls
        assert tls is not None, "a listener has it"
        return tls.client_socket(sock, client.host, client.user)

    def on_refused(self, sock: ClientSocket) -> None:
        """Report that a TLS handshake has failed."""
        client = self.clients[sock.client_id]
        sock.is_open = sock.broker_end_is_open = False
        refuse(client, sock.name, SSL_HANDSHAKE_FAILED, self.now_ms)

    def at_broker(self, connection: ClientSocket, message: _SentRequest) -> bool:
        """Write a request that has passed the link.  Part of Ends."""
        connection.write(message.data, message.expected)
        return True

    def at_client(self, connection: ClientSocket, message: _SentReply) -> None:
        """Deliver a reply that has passed the link.  Part of Ends."""
        client = self.clients[connection.client_id]
        client.on_reply(connection.name, message.correlation_id, message.body, self.now_ms)

    def close_at_broker(self, connection: ClientSocket) -> None:
        """Close the broker's end.  Part of Ends."""
        connection.close_when_sent()

    def close_at_client(self, connection: ClientSocket) -> None:
        """Deliver the end of a connection that has passed the link.  Part of Ends."""
        self.clients[connection.client_id].on_disconnected(connection.name, self.now_ms)

    def _on_link_healed(self, link: Link) -> None:
        self._transit.link_healed(link)

    def _on_lost(self, link: Link, at_us: int) -> None:
        self.driver.dispatcher.on_lost(link, at_us)


class LiveWire:
    """A client's access to the brokers: one socket to each, opened on first use."""

    def __init__(
        self, clients: LiveClients, client_id: int, kafka_id: str, rng: Random, access: ClientAccess
    ) -> None:
        self.client_id = client_id
        self._access = access
        self._kafka_id = kafka_id or f"client-{client_id}"
        self.rng = rng
        self._clients = clients
        self._sockets: dict[int, ClientSocket] = {}
        self._correlation_id = 0

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of the client's bootstrap brokers."""
        return self._clients.driver.plan.brokers_with(self._access.listener)

    def send(
        self,
        broker_id: int,
        api_key: int,
        api_version: int,
        body: Message,
        *,
        answered: bool = True,
    ) -> int:
        """Send a request; returns its correlation id.  `answered`: False for acks=0."""
        clients = self._clients
        sock = self._sockets.get(broker_id)
        if sock is None or not sock.is_open:
            sock = self._sockets[broker_id] = clients.connect(
                self.client_id, broker_id, self._access
            )
        self._correlation_id += 1
        buffers = encode_request_frame(
            api_key, api_version, self._correlation_id, self._kafka_id, body
        )
        expected = (self._correlation_id, api_key, api_version) if answered else None
        clients.transmit(sock, _SentRequest(b"".join(buffers), expected, body))
        return self._correlation_id

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker; requests under way on it get no reply."""
        sock = self._sockets.pop(broker_id, None)
        if sock is not None and sock.is_open:
            self._clients.hang_up(sock)

    def disconnect_all(self) -> None:
        """Close all connections."""
        for broker_id in tuple(self._sockets):
            self.disconnect(broker_id)


class ClientSocket(CarriedConnection):
    """One connection of a client to a broker.  The hub calls it when it is readable or writable."""

    __slots__ = (
        "_access",
        "_awaited",
        "_clients",
        "_closes_when_sent",
        "_readable",
        "_reader",
        "_socket",
        "_tls",
        "_unsent",
        "_writable",
        "client_id",
        "host",
        "name",
        "user",
    )  # fmt: skip

    def __init__(
        self, clients: LiveClients, client_id: int, name: int, access: ClientAccess
    ) -> None:
        super().__init__((client_id,), broker_of(name))
        self._access = access
        self.user = access.user
        self.client_id = client_id
        self.name = name
        """The broker's id, plus SECOND_CONNECTION for the client's second connection to it."""
        self._clients = clients
        self._reader = FrameReader(MAX_FRAME_BYTES)
        self._awaited: deque[tuple[int, int, int]] = deque()
        """(correlation id, API, version) of the requests that the broker has not answered."""
        self._unsent = bytearray()
        self._closes_when_sent = False
        self.host = ""
        """The address of the broker, once the socket connects."""
        self._socket: Any = None
        """The socket; None before the first request has passed the link.  It is kept after it is
        closed."""
        self._tls: TlsClientSocket | None = None
        """The same socket, once it is connected to a listener with TLS."""
        self._readable: Any = None
        self._writable: Any = None

    # --------------------------------------------------------------------------- writing

    def write(self, data: bytes, expected: tuple[int, int, int] | None) -> None:
        """Send bytes that have passed the link; the first ones open the connection."""
        if self._socket is None:
            self._connect()
        if expected is not None:
            self._awaited.append(expected)
        self._unsent += data
        if not self._writable.active:
            self._flush()

    def _connect(self) -> None:
        clients = self._clients
        at = clients.driver.plan.listeners_of(self.broker_id).index(self._access.listener)
        listens_at, port = clients.driver.address(self.broker_id, at)
        host = self.host = ANY_ADDRESS.get(listens_at, listens_at)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = self._socket = _PlainSocket(family, socket.SOCK_STREAM)
        clients.sockets[self] = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = clients.hub.loop
        self._readable = loop.io(sock.fileno(), _READ)
        self._writable = loop.io(sock.fileno(), _WRITE)
        # The outcome shows when the socket becomes writable.
        sock.connect_ex((host, port))
        self._writable.start(self._on_writable)

    def _on_writable(self) -> None:
        driver = self._clients.driver
        if driver.is_clock_paused:
            self._writable.stop()
            driver.on_resumed(self._write_again)
            return
        self._clients.enter()
        self._writable.stop()
        if self._tls is None and self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.on_closed()
        elif self._is_secured():
            if not self._readable.active:
                self._readable.start(self._on_readable)
            self._flush()
        self._clients.leave()

    def _is_secured(self) -> bool:
        """Whether the connection may carry requests; begins or continues its TLS handshake if it
        has not ended."""
        if not self._access.protocol.has_tls:
            return True
        if self._tls is None:
            self._tls = self._socket = self._clients.secure(self._socket, self)
        if self._tls.is_secured:
            return True
        try:
            self._tls.handshake()
        except BlockingIOError:
            if self._tls.waits_to_write:
                self._writable.start(self._on_writable)
            elif not self._readable.active:
                self._readable.start(self._on_readable)
            return False
        except OSError:  # SSLError too
            self.close()
            self._clients.on_refused(self)
            return False
        return True

    def _write_again(self) -> None:
        if self in self._clients.sockets:
            self._writable.start(self._on_writable)

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent_bytes = self._socket.send(self._unsent)
                del self._unsent[:sent_bytes]
        except BlockingIOError:
            self._writable.start(self._on_writable)
        except OSError:
            self.on_closed()
        else:
            if self._closes_when_sent:
                self.close()

    # --------------------------------------------------------------------------- reading

    def _on_readable(self) -> None:
        clients = self._clients
        if clients.driver.is_clock_paused:
            self._readable.stop()
            clients.driver.on_resumed(self._read_again)
            return
        clients.enter()
        if self._tls is not None and not self._tls.is_secured:
            if self._is_secured():
                self._flush()
        else:
            while self._read() and self._tls is not None and self._tls.has_unread:
                pass
        clients.leave()

    def _read(self) -> bool:
        """Take what has arrived; False if the connection has ended."""
        room = self._clients.read_buffer
        try:
            size_bytes = self._socket.recv_into(room)
        except BlockingIOError:
            return True
        except OSError:
            size_bytes = 0
        if not size_bytes:
            self.on_closed()
            return False
        frames: list[memoryview] = []
        self._reader.feed(room[:size_bytes], frames)
        for frame in frames:
            self._take(frame)
        return self in self._clients.sockets

    def _read_again(self) -> None:
        if self in self._clients.sockets:
            self._readable.start(self._on_readable)

    def _take(self, frame: memoryview) -> None:
        correlation_id, api_key, version = self._awaited.popleft()
        if api_key == ApiKey.API_VERSIONS and version and _is_refused(frame):
            version = 0  # a broker reports an unknown version in it (KIP-511)
        answered, body = decode_response_frame(api_key, version, frame)
        assert answered == correlation_id, (answered, correlation_id)
        self._clients.transmit_reply(self, correlation_id, body)

    # --------------------------------------------------------------------------- the end

    def on_closed(self) -> None:
        """Close the connection, because the broker has closed its end, or never opened it."""
        self.close()
        self._clients.on_socket_closed(self)

    def close_when_sent(self) -> None:
        """Close the socket once the kernel has taken everything that was written to it."""
        if self._unsent and self in self._clients.sockets:
            self._closes_when_sent = True
        else:
            self.close()

    def close(self) -> None:
        """Close the socket now."""
        if self._clients.sockets.pop(self, self) is self:
            return
        self._readable.stop()
        self._readable.close()
        self._writable.stop()
        self._writable.close()
        self._socket.close()
        self._unsent.clear()


def _is_refused(frame: memoryview) -> bool:
    """Whether an ApiVersions response is UNSUPPORTED_VERSION. Its error code comes first in all
    versions."""
    return int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
