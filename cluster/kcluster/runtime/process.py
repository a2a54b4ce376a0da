"""One process of the cluster, as a driver sees it: a node that lives, is paused, or is gone.

Owns: the state of a process and what outlives it (its disk).  Never: decides when it changes
(dispatch.py carries out what a user or a scenario wants).  Kafka: the JVM around a broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from kcluster.contract import Input, Node, Reply
from kcluster.events.brokers import DeathKind as DeathKind
from kcluster.events.brokers import LostRange


class ProcessState(StrEnum):
    """`paused`: as by SIGSTOP or a long collection of garbage: nothing runs, sockets stay open."""

    UP = "up"
    PAUSED = "paused"
    DOWN = "down"


class Storage(Protocol):
    """What dispatch.py needs of a `kcluster.partition.disk.Disk`."""

    def lose_unflushed(self) -> Sequence[LostRange]: ...
    def wipe(self) -> object: ...


class Process:
    """A node, its state, and what waits for it.

    `life`: 0 at first, one up at each death; what was sent to an earlier life is not delivered.
    `build_node`: makes the node of the next life, on the same disk.
    """

    __slots__ = (
        "build_node", "deadline_ms", "disk", "inbox", "is_removed", "last_node", "life", "node",
        "node_id", "state", "touched",
    )  # fmt: skip

    def __init__(
        self, node_id: int, build_node: Callable[[], Node], disk: Storage | None = None
    ) -> None:
        self.node_id = node_id
        self.build_node = build_node
        self.disk = disk
        self.node: Node | None = None
        self.last_node: Node | None = None
        """The node, also when its process is gone."""
        self.state = ProcessState.DOWN
        self.is_removed = False
        """It is down for good: nobody waits for it."""
        self.life = 0
        self.inbox: deque[Input] = deque()
        """Inputs that came while it was paused, in order."""
        self.deadline_ms: int | None = None
        """The node's deadline after its last step; None while paused or down."""
        self.touched = False


class Outlet(Protocol):
    """The clients' side of a driver: where answers go, and who opens and closes sockets."""

    def reply(self, node_id: int, reply: Reply) -> None:
        """Give a client its answer."""

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        """Close a client's connection."""

    def new_port(self, node_id: int) -> int:
        """A port for a broker that is down, or new, to listen on from its next start on."""

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        """The node of clients from outside whose client.id, or address, fits; none in virtual
        time."""

    def process_changed(self, process: Process, was: ProcessState) -> None:
        """`process.state` is no longer `was`: open, close, silence or wake its sockets."""
