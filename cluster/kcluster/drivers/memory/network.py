"""TCP in virtual time: connections of bytes between clients and brokers, over the fabric's links.

Owns: these connections, the retransmission of SYNs, the network nodes of each client. Never:
decides a message's fate on a link (network/transit.py) or at an end (stream.py), or which
connections are served (sockets/listener.py). Kafka: the network between a client's machine and a
broker's.

Every client is the node `*`, whose links have a latency, and the nodes of the patterns that its
client.id or address matches.  The client.id is read from the first request that a connection sends.
# DIFFERS: a connection can be made across a cut by client.id, and only its first request is lost. #
DIFFERS: acknowledged bytes make room for the writer at once, not one latency later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct as Packing
from typing import Any, Final, Protocol, final

from kcluster.drivers.client_nodes import ClientNodes
from kcluster.drivers.memory.acceptor import MemoryAcceptor
from kcluster.drivers.memory.stream import (
    Address,
    Buffer,
    Message,
    Packet,
    Signal,
    StreamEnd,
    unanswered_end,
)
from kcluster.network.fabric import Fabric, Link
from kcluster.network.transit import CarriedConnection, Transit
from kcluster.runtime.dispatch import Dispatcher

CLIENT_LATENCY_MS: Final = 0.2
"""The latency of one direction between a client and a broker, if the topology sets no
default_latency_ms."""
SYN_TIMEOUT_US: Final = 1_000_000
"""The time after which a SYN is sent again, doubled for each retransmission.  Linux:
TCP_TIMEOUT_INIT."""
SYN_RETRIES: Final = 6
"""The number of retransmissions of a SYN; the connection fails after 127 s.  Linux:
tcp_syn_retries."""
FIRST_PORT: Final = 32768
LAST_PORT: Final = 60999
"""The highest port of a client.  Linux: ip_local_port_range."""
EVERYBODY: Final = "*"

_SIZE_AND_HEADER: Final = Packing(">ihhih")
"""The layout of a request's size, API key, version, correlation id, and length of the client.id."""
_CONTROLLED_SHUTDOWN: Final = 7

Door = tuple[int, int]
"""A listener: the broker's id, and the listener's place among those of the broker."""

PacketSink = Callable[[int, "StreamConnection", bool, bytes], None]
"""Called with (µs, connection, whether it goes to the broker, the bytes) at the time of sending."""


class MemoryClock(Protocol):
    """A driver's clock, with callbacks."""

    @property
    def now_us(self) -> int:
        """The current time."""

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time."""


@final
class StreamConnection(CarriedConnection):
    """A connection of a client to a broker.  `number`: its place in the run, from 1."""

    __slots__ = (
        "_head", "_network", "_seen_changes", "broker_end", "client_end", "client_id", "door",
        "is_encrypted", "number", "syn_was_dropped",
    )  # fmt: skip

    def __init__(
        self, network: MemoryNetwork, number: int, door: Door, here: Address, there: Address
    ) -> None:
        super().__init__((), door[0])
        self.door = door
        self.number = number
        self.is_encrypted = False
        """Whether packets are TLS, so that a trace has the plaintext instead, from the broker's
        end."""
        self.client_id: str | None = None
        self.broker_end: StreamEnd | None = None
        self.client_end = StreamEnd(here, there, self, False)
        self._network = network
        self.syn_was_dropped = True
        """Whether the next SYN is due: none was sent yet, or the backlog was full when the last one
        arrived."""
        self._head: bytes | None = b""
        """The first bytes that the client has sent, until its client.id is known."""
        self._seen_changes = -1

    def send(self, sender: StreamEnd, message: Message) -> None:
        """Send a message over the fabric.  Part of Cable."""
        is_from_client = sender is self.client_end
        if isinstance(message, Packet) and not self.is_encrypted:
            self.show(is_from_client, message.body)
        self._network.carry(self, is_from_client, message)

    def show(self, is_to_broker: bool, data: Buffer) -> None:
        """Show plaintext to the trace, and read the client's id in it.  TLS: when the broker reads
        or writes it."""
        if is_to_broker and self._head is not None:
            self._read_client_id(self._head + data)
        self._network.show(self, is_to_broker, data)

    def has_read(self, reader: StreamEnd, size_bytes: int) -> None:
        """Let the other end write.  Part of Cable."""
        writer = self.broker_end if reader is self.client_end else self.client_end
        if writer is not None:
            writer.may_write(size_bytes)

    def update_nodes(self, clients: ClientNodes) -> None:
        """Look up the nodes of this client again, if they may have changed."""
        if self._seen_changes != clients.changes:
            self._seen_changes = clients.changes
            self.set_clients(clients.matching(self.client_id, self.client_end.local_address[0]))

    def _read_client_id(self, head: bytes) -> None:
        self._head = head
        if len(head) < _SIZE_AND_HEADER.size:
            return
        _, api_key, version, _, size_bytes = _SIZE_AND_HEADER.unpack_from(head)
        end = _SIZE_AND_HEADER.size + max(0, size_bytes)
        if len(head) < end:
            return
        self._head = None
        if size_bytes >= 0 and (api_key, version) != (_CONTROLLED_SHUTDOWN, 0):
            self.client_id = head[_SIZE_AND_HEADER.size : end].decode(errors="replace")
            self._seen_changes = -1

    def begin_again(self) -> None:
        """Prepare for the next SYN, because the connection broke while it was being made."""
        self.is_open = self.broker_end_is_open = True
        self.is_reset = self.lost_to_broker = self.lost_to_client = False


class MemoryNetwork:
    """All connections of one run.  `acceptors`: the ports of running processes."""

    def __init__(
        self, clock: MemoryClock, dispatcher: Dispatcher, acceptors: Mapping[Door, MemoryAcceptor]
    ) -> None:
        self._clock = clock
        self._dispatcher = dispatcher
        self._fabric: Fabric = dispatcher.fabric
        self._acceptors = acceptors
        self._transit: Transit[StreamConnection] = Transit(
            dispatcher.fabric, clock, self, self._on_lost
        )
        dispatcher.heal_sinks = (*dispatcher.heal_sinks, self._transit.link_healed)
        self._clients = ClientNodes(dispatcher.fabric)
        self._everybody = self._clients.add(EVERYBODY, by_host=False)
        self._count = 0
        self._ports = 0
        self.packet_sinks: tuple[PacketSink, ...] = ()

    def find(self, pattern: str, by_host: bool) -> int:
        """The node of all clients whose client.id or address matches a pattern."""
        return self._clients.find(pattern, by_host, self._dispatcher.processes)

    def add_broker(self, broker_id: int, default_latency_ms: float) -> None:
        """Give the links of all clients to this broker their latency."""
        for node in self._clients.ids.values():
            self._fabric.set_latency(node, broker_id, 0)
        latency_ms = default_latency_ms or CLIENT_LATENCY_MS
        self._fabric.set_latency(self._everybody, broker_id, latency_ms)

    # ------------------------------------------------------------------------------ connecting

    def connect(
        self, here: Address, address: Address, door: Door | None, *, is_encrypted: bool = False
    ) -> StreamEnd:
        """Connect a client at `here` to the address of this listener, which may be encrypted;
        None: there is none.  Port 0: any port."""
        if not here[1]:
            here = (here[0], FIRST_PORT + self._ports % (LAST_PORT - FIRST_PORT + 1))
            self._ports += 1
        if door is None:
            end = unanswered_end(here, address)
            self._clock.at(self._clock.now_us, end.reset)
            return end
        self._count += 1
        connection = StreamConnection(self, self._count, door, here, address)
        connection.is_encrypted = is_encrypted
        self._send_syn(connection, 0)
        return connection.client_end

    def _send_syn(self, connection: StreamConnection, attempt: int) -> None:
        end = connection.client_end
        if not end.is_connecting:
            return
        if attempt > SYN_RETRIES:
            end.time_out()
            return
        if connection.syn_was_dropped:
            # Other SYNs are under way, or the fabric itself sends lost ones again.
            connection.syn_was_dropped = False
            self.carry(connection, True, Signal.SYN)
        again_us = self._clock.now_us + (SYN_TIMEOUT_US << attempt)
        self._clock.at(again_us, partial(self._send_syn, connection, attempt + 1))

    def _on_syn(self, connection: StreamConnection) -> None:
        acceptor = self._acceptors.get(connection.door)
        if acceptor is None or not acceptor.is_open:
            self.carry(connection, False, Signal.RESET)
        elif acceptor.has_room:
            client = connection.client_end
            end = StreamEnd(client.remote_address, client.local_address, connection, True)
            connection.broker_end = end
            self.carry(connection, False, Signal.SYN_ACK)
            acceptor.arrived(end)
        else:
            connection.syn_was_dropped = True

    # -------------------------------------------------------------------------------- carrying

    def show(self, connection: StreamConnection, is_to_broker: bool, data: Buffer) -> None:
        """Show bytes that are sent to whoever traces them."""
        for sink in self.packet_sinks:
            sink(self._clock.now_us, connection, is_to_broker, bytes(data))

    def carry(self, connection: StreamConnection, is_to_broker: bool, message: Message) -> None:
        """Send a message over the client's links."""
        connection.update_nodes(self._clients)
        if is_to_broker:
            self._transit.to_broker(connection, message)
        else:
            self._transit.to_client(connection, message)

    def at_broker(self, connection: StreamConnection, message: Any) -> bool:
        """Take a message that has arrived at the broker's machine, which always answers.  Part of
        Ends."""
        if message is Signal.SYN:
            self._on_syn(connection)
        elif connection.broker_end is not None:
            connection.broker_end.arrive(message)
        return True

    def at_client(self, connection: StreamConnection, message: Any) -> None:
        """Take a message that has arrived at the client's machine.  Part of Ends."""
        connection.client_end.arrive(message)

    def close_at_broker(self, connection: StreamConnection) -> None:
        """Break the broker's end.  Part of Ends."""
        if connection.broker_end is not None:
            connection.broker_end.reset()

    def close_at_client(self, connection: StreamConnection) -> None:
        """Break the client's end; a connection that is not yet made is tried again.  Part of
        Ends."""
        if connection.client_end.is_connecting:
            connection.begin_again()
            self.carry(connection, True, Signal.SYN)
        else:
            connection.client_end.reset()

    def _on_lost(self, link: Link, at_us: int) -> None:
        self._dispatcher.on_lost(link, at_us)
