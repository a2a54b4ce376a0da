"""The network verbs of both handles, Cluster and VirtualDriver: the same names, the same undoing.

Owns: these methods, Fault.  Never: knows what they do (network.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from kcluster.operations.node_sets import Network, Nodes, Undo

T = TypeVar("T")


class Fault:
    """What was done to the network.  Call it to undo just that, or let a `with` do so."""

    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._is_over = False

    def __call__(self) -> None:
        """Undo it, once."""
        if not self._is_over:
            self._is_over = True
            self._undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self()


class NetworkVerbs(ABC):
    """Deeds on the links between nodes.  Who may be named, and how: network.py.

    with cluster.isolate(1): ...
    cluster.slow_link("rack a", "rack b", latency_ms=40, jitter_ms=5)
    cluster.isolate("client billing*", [1, 2])
    """

    @abstractmethod
    def _on_network(self, deed: Callable[[Network], T]) -> T:
        """Do something between two dispatches."""

    def cut(self, a: Nodes, b: Nodes, one_way: bool = False) -> Fault:
        """Let nothing through from `a` to `b`, nor back unless `one_way`."""
        return self.isolate(a, b, one_way=one_way)

    def isolate(self, nodes: Nodes, others: Nodes | None = None, *, one_way: bool = False) -> Fault:
        """Cut `nodes` off from `others`, by default from everybody else but clients from outside;
        `one_way`: only what `nodes` send is lost."""
        return self._fault(lambda network: network.isolate(nodes, others, one_way=one_way))

    def bridge(self, left: Nodes, right: Nodes) -> Fault:
        """Cut two sets off from each other; whoever is in neither reaches both, and joins them."""
        return self._fault(lambda network: network.bridge(left, right))

    def slow_link(
        self, nodes: Nodes, others: Nodes | None = None, *, latency_ms: float = 0,
        jitter_ms: float = 0, distribution: str = "normal", one_way: bool = False,
    ) -> Fault:  # fmt: skip
        """Add latency, with jitter (`constant`, `uniform`, `normal`, `exponential`), to what
        passes between `nodes` and `others`."""
        return self._fault(
            lambda network: network.slow_link(
                nodes, others, latency_ms=latency_ms, jitter_ms=jitter_ms,
                distribution=distribution, one_way=one_way,
            )
        )  # fmt: skip

    def lose(
        self, nodes: Nodes, others: Nodes | None = None, *, share: float, one_way: bool = False
    ) -> Fault:
        """Lose a share (0 to 1) of the messages between `nodes` and `others`: TCP sends them again,
        later and later."""
        return self._fault(
            lambda network: network.lose(nodes, others, share=share, one_way=one_way)
        )

    def limit_bandwidth(
        self, nodes: Nodes, others: Nodes | None = None, *, bytes_per_s: int,
        one_way: bool = False,
    ) -> Fault:  # fmt: skip
        """Let only so many bytes a second over each link between `nodes` and `others`, each way."""
        return self._fault(
            lambda network: network.limit_bandwidth(
                nodes, others, bytes_per_s=bytes_per_s, one_way=one_way
            )
        )

    def heal(self, nodes: Nodes | None = None, others: Nodes | None = None) -> None:
        """Make links as they were built, whole and no slower: all, those of `nodes`, or those
        between `nodes` and `others`."""
        self._on_network(lambda network: network.heal(nodes, others))

    def network(self) -> Any:
        """A networkx.DiGraph of the network as it is: nodes with `kind` (broker, controller,
        client) and `rack`, and an edge for each way that is not cut."""
        return self._on_network(lambda network: network.graph())

    def _fault(self, deed: Callable[[Network], Undo]) -> Fault:
        undo = self._on_network(deed)
        return Fault(lambda: self._on_network(lambda _: undo()))
