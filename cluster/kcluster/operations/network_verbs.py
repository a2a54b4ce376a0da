"""The network verbs of both handles, Cluster and VirtualDriver.

Owns: these methods, NetworkFault (which undoes one).  Never: decides what a verb does
(node_sets.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kcluster.operations.node_sets import NetworkControl, Undo

if TYPE_CHECKING:
    from kcluster.operations.targets import Nodes

T = TypeVar("T")


class NetworkFault:
    """A fault in the network.  Call it to undo just this fault, or use it in a `with`."""

    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._is_over = False

    def __call__(self) -> None:
        """Undo it; later calls do nothing."""
        if not self._is_over:
            self._is_over = True
            self._undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self()


class NetworkVerbs(ABC):
    """Faults on the links between nodes.  How nodes are named: targets.py.

    with cluster.isolate(1): ...
    cluster.slow_link("rack a", "rack b", latency_ms=40, jitter_ms=5)
    cluster.isolate("client billing*", [1, 2])
    """

    @abstractmethod
    def _on_network(self, action: Callable[[NetworkControl], T]) -> T:
        """Run an action between two dispatches."""

    @abstractmethod
    def find(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of the nodes that are meant now: ids, words (`"leader(orders-0)"`, `"rack a"`,
        `"all but 1"`), or a list of both.  ClusterError if there is none."""

    def _others(self, nodes: Nodes | None) -> tuple[int, ...] | None:
        return None if nodes is None else self.find(nodes)

    def cut(self, a: Nodes, b: Nodes, one_way: bool = False) -> NetworkFault:
        """Cut the links from `a` to `b`, and back unless `one_way`."""
        return self.isolate(a, b, one_way=one_way)

    def isolate(
        self, nodes: Nodes, others: Nodes | None = None, *, one_way: bool = False
    ) -> NetworkFault:
        """Cut `nodes` off from `others`, by default from all nodes but clients from outside;
        `one_way`: only messages from `nodes` are lost."""
        ids, other_ids = self.find(nodes), self._others(others)
        return self._fault(lambda network: network.isolate(ids, other_ids, one_way=one_way))

    def bridge(self, left: Nodes, right: Nodes) -> NetworkFault:
        """Cut two sets off from each other; nodes in neither reach both and form a bridge."""
        first, second = self.find(left), self.find(right)
        return self._fault(lambda network: network.bridge(first, second))

    def slow_link(
        self,
        nodes: Nodes,
        others: Nodes | None = None,
        *,
        latency_ms: float = 0,
        jitter_ms: float = 0,
        distribution: str = "normal",
        one_way: bool = False,
    ) -> NetworkFault:
        """Add latency and jitter (`constant`, `uniform`, `normal`, `exponential`) to messages
        between `nodes` and `others`; without `others` on all links of `nodes`, those among them
        too."""
        ids, other_ids = self.find(nodes), self._others(others)
        return self._fault(
            lambda network: network.slow_link(
                ids,
                other_ids,
                latency_ms=latency_ms,
                jitter_ms=jitter_ms,
                distribution=distribution,
                one_way=one_way,
            )
        )

    def lose(
        self, nodes: Nodes, others: Nodes | None = None, *, share: float, one_way: bool = False
    ) -> NetworkFault:
        """Lose a share (0 to 1) of the messages between `nodes` and `others`: TCP retransmits them,
        with growing timeouts."""
        ids, other_ids = self.find(nodes), self._others(others)
        return self._fault(
            lambda network: network.lose(ids, other_ids, share=share, one_way=one_way)
        )

    def limit_bandwidth(
        self, nodes: Nodes, others: Nodes | None = None, *, bytes_per_s: int, one_way: bool = False
    ) -> NetworkFault:
        """Limit the bandwidth of each link between `nodes` and `others`, in each direction."""
        ids, other_ids = self.find(nodes), self._others(others)
        return self._fault(
            lambda network: network.limit_bandwidth(
                ids, other_ids, bytes_per_s=bytes_per_s, one_way=one_way
            )
        )

    def heal(self, nodes: Nodes | None = None, others: Nodes | None = None) -> None:
        """Heal cuts and remove shapes: of all links, of those of `nodes`, or of those between
        `nodes` and `others`."""
        ids, other_ids = self._others(nodes), self._others(others)
        self._on_network(lambda network: network.heal(ids, other_ids))

    def network(self) -> Any:
        """A networkx.DiGraph of the present network: nodes with `kind` (broker, controller, client)
        and `rack`, and an edge for each direction that is not cut."""
        return self._on_network(lambda network: network.graph())

    def _fault(self, action: Callable[[NetworkControl], Undo]) -> NetworkFault:
        undo = self._on_network(action)
        return NetworkFault(lambda: self._on_network(lambda _: undo()))
