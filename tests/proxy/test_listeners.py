"""The ports of the proxy before a real Kafka, which are known before its brokers serve."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from gevent.queue import Queue

from kcluster.drivers.sockets.acceptor import ReservedPort
from kcluster.proxy.listeners import PortTaken, ReservedPorts


@pytest.fixture
def reserved() -> Iterator[ReservedPort]:
    port = ReservedPort("127.0.0.1", 0)
    yield port
    port.release()


def ports_on(reserved: ReservedPort, accepted: Queue[int]) -> ReservedPorts:
    def accept(broker_id: int, sock: socket.socket) -> None:
        accepted.put(broker_id)
        sock.close()

    brokers = {1: ("10.0.0.1", 9092)}
    return ReservedPorts("127.0.0.1", {1: reserved.port}, brokers, accept, print)


def test_ports__open_while_the_broker_serves(reserved: ReservedPort) -> None:
    reserved.lend()
    accepted: Queue[int] = Queue()
    ports = ports_on(reserved, accepted)
    address = ("127.0.0.1", reserved.port)
    assert ports.learn(1, ("10.0.0.1", 9092)) == reserved.port
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        ports.open(1)
        ports.open(1)
        socket.create_connection(address).close()
        assert accepted.get(timeout=10) == 1
        ports.shut(1)
        ports.shut(1)
    ports.open(1)
    ports.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def test_ports__of_another_process_are_taken(reserved: ReservedPort) -> None:
    """A port that was not lent stays closed to a proxy, as to any other program."""
    with pytest.raises(PortTaken, match="Address already in use") as caught:
        ports_on(reserved, Queue()).open(1)
    assert caught.value.is_used
