"""Three nodes that keep what they get, under a real dispatcher, fabric and links.

Owns: Net, and Echo, its nodes.  Never: asserts what a test is about; runs a broker (rig/cluster.py
does): what a dispatcher guarantees must hold for any node, and shows best on one that does little.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kcluster.contract import (
    Effect,
    Input,
    PeerRequest,
    PeerResponse,
    Reply,
    Send,
    Shutdown,
    Stopped,
    Tick,
)
from kcluster.deaths import ProcessState
from kcluster.events.brokers import LostRange
from kcluster.network.fabric import Fabric
from kcluster.operations.links import Links
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import Process


class Echo:
    """Answers PeerRequests with their body; sends given messages when it starts or ticks."""

    def __init__(self, node_id: int, net: Net) -> None:
        self.node_id = node_id
        self.net = net
        self.deadline_ms: int | None = None
        self.to_send: list[Send] = []

    def step(self, now_ms: int, event: Input) -> Sequence[Effect]:
        self.net.log.append((now_ms, self.node_id, event))
        match event:
            case PeerRequest(source=source, request_id=number, body=body) if body != "ignore":
                return [Send(source, PeerResponse(self.node_id, number, body))]
            case Tick():
                self.deadline_ms = None
                sent, self.to_send = self.to_send, []
                return sent
            case Shutdown() if not self.net.is_stubborn:
                return [Stopped()]
        return []


class Disk:
    def __init__(self) -> None:
        self.fate: list[str] = []

    def lose_unflushed(self) -> tuple[LostRange, ...]:
        self.fate.append("lost")
        return (LostRange("orders", 0, 1, 4),)

    def wipe(self) -> None:
        self.fate.append("wiped")


class Net:
    """Three echoing nodes."""

    is_stubborn = False

    def __init__(self) -> None:
        self.log: list[tuple[int, int, Input]] = []
        self.notes: list[Any] = []
        self.fabric = Fabric((1, 2, 3))
        self.disk = Disk()
        processes = [Process(n, partial(Echo, n, self), self.disk) for n in (1, 2, 3)]
        self.dispatcher = Dispatcher(self.fabric, processes, self)
        self.links = Links(self.dispatcher)
        self.dispatcher.note_sinks = (self.notes.append,)
        for node_id in (1, 2, 3):
            self.dispatcher.start(node_id)
        self.log.clear()

    def send(self, source: int, *sends: Send) -> None:
        """Have a node send at the present time."""
        node: Any = self.dispatcher.processes[source].node
        node.to_send = list(sends)
        self.dispatcher.dispatch(source, Tick())

    def ask(self, source: int, to: int, number: int = 1, body: str = "hello") -> None:
        self.send(source, Send(to, PeerRequest(source, number, body)))

    def got(self, node_id: int) -> list[Input]:
        return [event for _, n, event in self.log if n == node_id and not isinstance(event, Tick)]

    def state(self, node_id: int) -> ProcessState:
        return self.dispatcher.processes[node_id].state

    def requests(self, node_id: int) -> list[int]:
        """The numbers of the requests that a node got."""
        return [it.request_id for it in self.got(node_id) if isinstance(it, PeerRequest)]

    def reply(self, node_id: int, reply: Reply) -> None:
        raise AssertionError

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        raise AssertionError

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        raise AssertionError

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        return ()

    def process_changed(self, process: Process, was: ProcessState) -> None:
        pass

    def accept_clients(self, node_id: int) -> None:
        pass
