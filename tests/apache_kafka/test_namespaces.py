"""The network of a real Kafka's nodes: the commands of tc, and with root on Linux their effect.

The nodes here are sockets, which are made in the namespaces.
"""

from __future__ import annotations

import ctypes
import ipaddress
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from kcluster.apache_kafka import reaper
from kcluster.apache_kafka.namespaces import (
    HOST,
    LinkTraffic,
    NodeNetwork,
    check_possible,
    class_command,
    filter_command,
    free_net,
    state_commands,
)
from kcluster.network.shapes import LinkShape
from kcluster.operations.errors import ClusterError

CLONE_NEWNET = 0x40000000
ONE, OTHER = 1, 2


# ------------------------------------------------------------------------------- commands


def test_commands__of_a_link() -> None:
    assert class_command("eth0", 11) == (
        "class add dev eth0 parent 1: classid 1:b htb rate 40gbit quantum 60000"
    )
    assert filter_command("eth0", 11, "dst 10.1.2.11", "flowid 1:b") == (
        "filter add dev eth0 parent 1: prio 11 protocol ip u32 match ip dst 10.1.2.11 flowid 1:b"
    )


@pytest.mark.parametrize(
    ("state", "rate", "queue"),
    [
        (LinkTraffic(), "40gbit", "pfifo limit 100000"),
        (LinkTraffic(is_cut=True), "40gbit", "pfifo limit 0"),
        (LinkTraffic(True, LinkShape(latency_us=5)), "40gbit", "pfifo limit 0"),
        (LinkTraffic(False, LinkShape(bytes_per_s=125_000)), "1000000bit", "pfifo limit 100000"),
        (
            LinkTraffic(False, LinkShape(latency_us=40_000, jitter_us=5_000, loss=0.015)),
            "40gbit",
            "netem limit 100000 delay 40000us 5000us loss 1.5%",
        ),
    ],
)
def test_commands__of_a_state(state: LinkTraffic, rate: str, queue: str) -> None:
    assert state_commands("eth0", 2, state, has_netem=True) == [
        f"class change dev eth0 parent 1: classid 1:2 htb rate {rate} quantum 60000",
        f"qdisc replace dev eth0 parent 1:2 {queue}",
    ]


def test_free_net__avoids_the_nets_of_the_machine() -> None:
    drawn = iter([0, 1, 2])
    taken = [ipaddress.IPv4Network("10.128.0.0/23")]
    assert str(free_net(taken, lambda below: next(drawn))) == "10.128.2.0/24"
    with pytest.raises(ClusterError, match=r"no network in 10.128.0.0/9 is free"):
        free_net([ipaddress.IPv4Network("10.0.0.0/8")], lambda below: 7)


def test_possible__not_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(ClusterError) as raised:
        check_possible()
    assert str(raised.value) == (
        "network faults on the real ground need root on Linux; this process is not root"
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ClusterError, match="need root on Linux; this is darwin"):
        check_possible()


# --------------------------------------------------------------------------------- effect


@pytest.fixture(scope="module")
def network() -> Iterator[NodeNetwork]:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", reaper.__file__], stdin=subprocess.PIPE, text=True
    ) as beside:
        assert beside.stdin is not None
        stdin = beside.stdin
        try:
            check_possible()
            made = NodeNetwork((ONE, OTHER), lambda *thing: print(json.dumps(thing), file=stdin))
        except ClusterError as error:
            pytest.skip(str(error))
        yield made
        made.close()
        stdin.write('["closed", ""]\n')
        stdin.close()
        assert beside.wait(30) == 0
    names = (made.namespace(ONE), made.address(HOST))
    assert not any(name in listed() for name in names)


def listed() -> str:
    commands = (["ip", "netns", "list"], ["ip", "-4", "-o", "addr"])
    return "".join(
        subprocess.run(one, capture_output=True, text=True, check=True).stdout for one in commands
    )


@pytest.fixture
def whole(network: NodeNetwork) -> Iterator[NodeNetwork]:
    """The network, which is whole before and after a test."""
    yield network
    ends = (HOST, ONE, OTHER)
    for a in ends:
        for b in ends:
            network.heal(a, b)
            network.shape(a, b)


def socket_in(network: NodeNetwork, node: int, kind: socket.SocketKind) -> socket.socket:
    """A socket of a node, bound to its address."""
    made: list[socket.socket] = []

    def make() -> None:  # in a thread, which alone enters the namespace
        if node != HOST:
            with open(f"/run/netns/{network.namespace(node)}") as file:
                assert ctypes.CDLL(None).setns(file.fileno(), CLONE_NEWNET) == 0
        made.append(socket.socket(socket.AF_INET, kind))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    made[0].bind((network.address(node), 0))
    return made[0]


Send = Callable[[int, int], bool]


@pytest.fixture
def arrives(network: NodeNetwork) -> Iterator[Send]:
    """Sends a datagram from one end to another, and waits for it."""
    yield from sending(network, 20)


@pytest.fixture
def arrives_at_once(network: NodeNetwork) -> Iterator[Send]:
    """The same for a datagram that is lost: nobody waits for it for long."""
    yield from sending(network, 0.05)


def sending(network: NodeNetwork, limit_s: float) -> Iterator[Send]:
    sockets = {end: socket_in(network, end, socket.SOCK_DGRAM) for end in (HOST, ONE, OTHER)}

    def send(a: int, b: int) -> bool:
        with suppress(OSError):  # the queue of a cut has no room
            sockets[a].sendto(b"?", sockets[b].getsockname())
        return bool(select.select([sockets[b]], [], [], limit_s)[0] and sockets[b].recv(1))

    yield send
    for one in sockets.values():
        one.close()


@pytest.mark.parametrize(("a", "b"), [(ONE, OTHER), (ONE, HOST), (HOST, ONE)])
def test_network__a_cut_has_one_direction(
    whole: NodeNetwork, arrives: Send, arrives_at_once: Send, a: int, b: int
) -> None:
    whole.cut(a, b)
    assert not arrives_at_once(a, b)
    third = ({HOST, ONE, OTHER} - {a, b}).pop()
    assert all(arrives(*link) for link in ((b, a), (a, third), (third, b)))
    whole.heal(a, b)
    assert arrives(a, b)


def test_network__a_connection_survives_a_cut(whole: NodeNetwork) -> None:
    """What was sent meanwhile arrives after the cut: TCP sends it again."""
    with socket_in(whole, ONE, socket.SOCK_STREAM) as listening:
        listening.listen()
        with socket_in(whole, OTHER, socket.SOCK_STREAM) as client:
            client.connect(listening.getsockname())
            served, _ = listening.accept()
            with served:
                whole.cut(OTHER, ONE)
                client.sendall(b"late")
                assert not select.select([served], [], [], 0.05)[0]
                whole.heal(OTHER, ONE)
                served.settimeout(20)
                assert served.recv(4) == b"late"


def test_network__a_rate_is_kept(whole: NodeNetwork) -> None:
    """Twenty datagrams of 1,000 bytes take 20 s at 1 kB/s."""
    whole.shape(ONE, HOST, LinkShape(bytes_per_s=1_000))
    with (
        socket_in(whole, ONE, socket.SOCK_DGRAM) as sender,
        socket_in(whole, HOST, socket.SOCK_DGRAM) as receiver,
    ):
        for _ in range(20):
            sender.sendto(bytes(1_000), receiver.getsockname())
        receiver.settimeout(20)
        arrived = [len(receiver.recv(2_000))]
        receiver.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                arrived.append(len(receiver.recv(2_000)))
        assert len(arrived) < 20
        assert set(arrived) == {1_000}


def test_network__a_slow_link_has_one_direction(
    whole: NodeNetwork, arrives: Send, arrives_at_once: Send
) -> None:
    whole.shape(ONE, OTHER, LinkShape(latency_us=200_000, jitter_us=1_000))
    assert not arrives_at_once(ONE, OTHER)
    assert arrives(ONE, OTHER)
    assert arrives(OTHER, ONE)
    assert arrives(ONE, HOST)
    whole.shape(ONE, OTHER)
    assert arrives(ONE, OTHER)


@pytest.mark.parametrize(("a", "b"), [(ONE, OTHER), (HOST, ONE)])
def test_network__a_lossy_link_loses_everything_or_nothing(
    whole: NodeNetwork, arrives: Send, arrives_at_once: Send, a: int, b: int
) -> None:
    whole.shape(a, b, LinkShape(loss=1))
    assert not arrives_at_once(a, b)
    whole.shape(a, b, LinkShape(latency_us=1))
    assert arrives(a, b)


def test_network__a_slow_link_is_cut(
    whole: NodeNetwork, arrives: Send, arrives_at_once: Send
) -> None:
    whole.shape(ONE, OTHER, LinkShape(latency_us=1_000))
    whole.cut(ONE, OTHER)
    assert not arrives_at_once(ONE, OTHER)
    whole.heal(ONE, OTHER)
    assert arrives(ONE, OTHER)
    assert whole.state(ONE, OTHER).shape.latency_us == 1_000


def test_network__a_connection_over_a_slow_link(whole: NodeNetwork) -> None:
    """A million bytes arrive whole and in order, also if some packets are lost."""
    whole.shape(ONE, OTHER, LinkShape(latency_us=1_000, jitter_us=500, loss=0.001))
    sent = os.urandom(1_000_000)
    with socket_in(whole, OTHER, socket.SOCK_STREAM) as listening:
        listening.listen()
        with socket_in(whole, ONE, socket.SOCK_STREAM) as client:
            client.connect(listening.getsockname())
            served, _ = listening.accept()
            with served:
                thread = threading.Thread(target=client.sendall, args=(sent,))
                thread.start()
                served.settimeout(20)
                arrived = bytearray()
                while len(arrived) < len(sent):
                    arrived += served.recv(1 << 16)
                thread.join()
    assert arrived == sent


def test_network__jitter_is_uniform(whole: NodeNetwork) -> None:
    shape = LinkShape(latency_us=10, jitter_us=5, distribution="normal")
    with pytest.raises(ClusterError):
        whole.shape(ONE, OTHER, shape)
    assert whole.state(ONE, OTHER) == LinkTraffic()
