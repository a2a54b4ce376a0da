"""A listener for each broker of the cluster behind the proxy, and one for its bootstrap servers.

Owns: the ports, which broker each stands for, accepting connections.  Never: reads a connection
(connection.py), decides on an address in an answer (addresses.py).
Kafka: advertised.listeners, SocketServer's Acceptor.

With a base port P the bootstrap servers' listener has P, and broker N has P + 1 + N, so that a
broker keeps its port when the proxy starts again.  With 0, or if that is no port, the kernel
chooses.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import gevent

from kcluster.drivers.sockets.connection import IoWatcher
from kcluster.hosts import is_loopback
from kcluster.proxy.addresses import Address

BACKLOG: Final = 1024
RETRY_ACCEPT_S: Final = 0.1
MAX_PORT: Final = 65535
BOOTSTRAP: Final = -1
"""Instead of a broker's id, for the bootstrap servers."""
WILDCARDS: Final = ("0.0.0.0", "::", "")

Accepted = Callable[[int, socket.socket], None]
"""Takes a new connection: (broker id, socket)."""


class PortTaken(Exception):
    """The error for a port that cannot be opened; str() is one line.  `is_used`: whether another
    program has it."""

    def __init__(self, problem: str, *, is_used: bool) -> None:
        super().__init__(problem)
        self.is_used = is_used


class ProxyPort:
    """One open port.  `broker_id`: the broker, BOOTSTRAP for the bootstrap servers."""

    def __init__(
        self, broker_id: int, host: str, port: int, accepted: Accepted, log: Callable[[str], None]
    ) -> None:
        self.broker_id = broker_id
        self._accepted = accepted
        self._log = log
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            self._socket.listen(BACKLOG)
        except OSError as error:
            self._socket.close()
            problem = f"cannot listen on {host}:{port}: {error.strerror}"
            raise PortTaken(problem, is_used=error.errno == errno.EADDRINUSE) from None
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._watcher: IoWatcher = gevent.get_hub().loop.io(self._socket.fileno(), 1)
        self._watcher.start(self._on_arrival)

    def _on_arrival(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    return  # the client has gone already
                self._log(f"cannot accept a connection: {error.strerror}")
                self._watcher.stop()
                gevent.spawn_later(RETRY_ACCEPT_S, self._accept_again)
                return
            self._accepted(self.broker_id, sock)

    def _accept_again(self) -> None:
        if self._socket.fileno() >= 0:
            self._watcher.start(self._on_arrival)

    def close(self) -> None:
        """Close the port."""
        self._watcher.stop()
        self._watcher.close()
        self._socket.close()


class BrokerPorts(Protocol):
    """The ports of a proxy.  `brokers`: the address of each known broker in the cluster."""

    brokers: dict[int, Address]

    @property
    def bootstrap_port(self) -> int:
        """The port that stands for the bootstrap servers; 0 if there is none."""

    def learn(self, broker_id: int, address: Address) -> int:
        """The port that stands for a broker with this address in the cluster."""

    def ports(self) -> dict[int, int]:
        """The port of each broker, by id."""

    def advertised_host(self, sock: socket.socket) -> str:
        """The host under which a client has reached the proxy."""

    def close(self) -> None:
        """Close all ports."""


class ReservedPorts:
    """Ports that are known before their brokers serve, and open only while they do.  `ports`: the
    port for each broker; `brokers`: the address of each broker."""

    bootstrap_port = 0

    def __init__(
        self,
        host: str,
        ports: Mapping[int, int],
        brokers: Mapping[int, Address],
        accepted: Accepted,
        log: Callable[[str], None],
    ) -> None:
        self.brokers = dict(brokers)
        self._host = host
        self._ports = dict(ports)
        self._accepted = accepted
        self._log = log
        self._open: dict[int, ProxyPort] = {}

    def open(self, broker_id: int) -> None:
        """Open the port of a broker; twice is once.  PortTaken."""
        if broker_id not in self._open:
            port = self._ports[broker_id]
            self._open[broker_id] = ProxyPort(
                broker_id, self._host, port, self._accepted, self._log
            )

    def shut(self, broker_id: int) -> None:
        """Close the port of a broker, if it is open."""
        port = self._open.pop(broker_id, None)
        if port is not None:
            port.close()

    def learn(self, broker_id: int, _address: Address) -> int:
        return self._ports[broker_id]

    def ports(self) -> dict[int, int]:
        return dict(self._ports)

    def advertised_host(self, sock: socket.socket) -> str:
        return reached_host(self._host, sock)

    def close(self) -> None:
        for broker_id in tuple(self._open):
            self.shut(broker_id)


class ProxyPorts:
    """All ports of the proxy.  `on_new`: called with each broker that gets a listener, or another
    address in the cluster."""

    def __init__(
        self,
        host: str,
        base_port: int,
        accepted: Accepted,
        on_new: Callable[[int, Address, int], None],
        log: Callable[[str], None],
    ) -> None:
        self._host = host
        self._base_port = base_port
        self._accepted = accepted
        self._on_new = on_new
        self._log = log
        self.brokers: dict[int, Address] = {}
        """The address of each known broker in the cluster."""
        self._open: dict[int, ProxyPort] = {}
        self.bootstrap_port = self._listen(BOOTSTRAP, base_port).port

    def learn(self, broker_id: int, address: Address) -> int:
        """The port that stands for a broker with this address in the cluster."""
        known = self.brokers.get(broker_id)
        if known == address:
            return self._open[broker_id].port
        self.brokers[broker_id] = address
        listener = self._open.get(broker_id)
        if listener is None:
            port = self._base_port + 1 + broker_id if self._base_port else 0
            listener = self._listen(broker_id, port if port <= MAX_PORT else 0)
        self._on_new(broker_id, address, listener.port)
        return listener.port

    def ports(self) -> dict[int, int]:
        """The port of each broker, by id."""
        return {x.broker_id: x.port for x in self._open.values() if x.broker_id != BOOTSTRAP}

    def advertised_host(self, sock: socket.socket) -> str:
        """The host under which a client has reached the proxy."""
        return reached_host(self._host, sock)

    def _listen(self, broker_id: int, port: int) -> ProxyPort:
        try:
            listener = ProxyPort(broker_id, self._host, port, self._accepted, self._log)
        except PortTaken as taken:
            if broker_id == BOOTSTRAP or not port:
                raise
            self._log(f"{taken}; broker {broker_id} gets another port")
            listener = ProxyPort(broker_id, self._host, 0, self._accepted, self._log)
        self._open[broker_id] = listener
        return listener

    def close(self) -> None:
        """Close all ports."""
        for listener in self._open.values():
            listener.close()
        self._open.clear()


def is_own(address: Address, host: str, port: int) -> bool:
    """Whether an address leads to this machine's listener on `host` and `port`."""
    name, number = address
    if number != port:
        return False
    if host in WILDCARDS:
        return is_loopback(name)
    return name == host or {name, host} == {"localhost", "127.0.0.1"}


def reached_host(host: str, sock: socket.socket) -> str:
    """The host under which a client has reached a proxy that listens on `host`."""
    if host not in WILDCARDS:
        return host
    reached: str = sock.getsockname()[0]
    return reached
