"""One process of the cluster, as a driver sees it: a node that is up, paused or down.

Owns: the state of a process, and its disk, which outlives it.  Never: changes that state
(dispatch.py does, for a user or a scenario).  Kafka: the JVM around a broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import CONTROLLER_ID, Input, Node, Reply
from kcluster.controller.node_view import ControllerNodeView
from kcluster.deaths import ProcessState
from kcluster.events.brokers import LostRange


class ProcessDisk(Protocol):
    """The part of a `kcluster.partition.disk.Disk` that dispatch.py needs."""

    def lose_unflushed(self) -> Sequence[LostRange]: ...
    def wipe(self) -> object: ...


class Process:
    """A node, its state, and the events that wait for it.

    `life`: 0 at first, increased by 1 at each death; messages to an earlier life are not delivered.
    `build_node`: makes the node of the next life, on the same disk.  The node of the controller's
    process is a ControllerNodeView, any other a BrokerNodeView: simulated ones, or mirrors of a
    real Kafka's.
    """

    __slots__ = (
        "accepts_clients", "build_node", "deadline_ms", "disk", "inbox", "is_removed", "last_node",
        "life", "node", "node_id", "state", "touched",
    )  # fmt: skip

    def __init__(
        self, node_id: int, build_node: Callable[[], Node], disk: ProcessDisk | None = None
    ) -> None:
        self.node_id = node_id
        self.build_node = build_node
        self.disk = disk
        self.node: Node | None = None
        self.last_node: Node | None = None
        """The present node, or the last one after the process has ended."""
        self.state = ProcessState.DOWN
        self.accepts_clients = False
        """Whether the ports of the broker's present life are open."""
        self.is_removed = False
        """Whether the process is down for good, so that nothing waits for its return."""
        self.life = 0
        self.inbox: deque[Input] = deque()
        """Events that arrived while the process was paused, in order."""
        self.deadline_ms: int | None = None
        """The node's deadline after its last step; None while paused or down."""
        self.touched = False

    @property
    def broker(self) -> BrokerNodeView | None:
        """The broker that runs in this process; None while it is down."""
        return None if self.node_id == CONTROLLER_ID else self.node  # type: ignore[return-value]  # a node of its kind

    @property
    def last_broker(self) -> BrokerNodeView | None:
        """The broker that runs in this process, or ran last."""
        return None if self.node_id == CONTROLLER_ID else self.last_node  # type: ignore[return-value]  # a node of its kind

    @property
    def controller(self) -> ControllerNodeView | None:
        """The controller that runs in this process; None while it is down."""
        return self.node if self.node_id == CONTROLLER_ID else None  # type: ignore[return-value]  # a node of its kind

    @property
    def last_controller(self) -> ControllerNodeView | None:
        """The controller that runs in this process, or ran last."""
        return self.last_node if self.node_id == CONTROLLER_ID else None  # type: ignore[return-value]  # a node of its kind


class Outlet(Protocol):
    """The clients' side of a driver: it takes replies, and opens and closes connections."""

    def reply(self, node_id: int, reply: Reply) -> None:
        """Send a broker's reply."""

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        """Close a client's connection."""

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        """Give a broker that is down, or new, this number of ports for its next start."""

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        """The network's node of outside clients whose client.id or address matches; none in virtual
        time."""

    def process_changed(self, process: Process, was: ProcessState) -> None:
        """Close, pause or resume the sockets of a process whose state was `was`."""

    def accept_clients(self, node_id: int) -> None:
        """Open the ports of a broker."""
