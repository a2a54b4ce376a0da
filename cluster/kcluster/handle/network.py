"""Faults in the network of a cluster: `cluster.network.cut(1, 2)`, or `cluster.cut(1, 2)`.

Owns: these methods, NetworkFault (which undoes one).  Never: defines the effect of a fault
(actions/network.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from kcluster.handle.port import VerbPort

if TYPE_CHECKING:
    from kcluster.operations.targets import Nodes


class NetworkFault:
    """A fault in the network.  Calling it undoes just this fault; so does the end of a `with`."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo = undo

    def __call__(self) -> None:
        """Undo the fault; later calls do nothing."""
        self._undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self()


class Network:
    """The links between the nodes of a cluster.  How nodes are named: VerbPort.find.

    with cluster.isolate(1): ...
    cluster.slow_link("rack a", "rack b", latency_ms=40, jitter_ms=5)
    cluster.isolate("client billing*", [1, 2])
    """

    def __init__(self, port: VerbPort) -> None:
        self._port = port

    def __call__(self) -> Any:
        """A networkx.DiGraph of the present network: nodes with `kind` (broker, controller, client)
        and `rack`, and an edge for each direction that is not cut."""
        return self._port.call(self._port.verbs.network.graph)

    def cut(self, a: Nodes, b: Nodes, one_way: bool = False) -> NetworkFault:
        """Cut the links from `a` to `b`, and back unless `one_way`."""
        return self.isolate(a, b, one_way=one_way)

    def isolate(
        self, nodes: Nodes, others: Nodes | None = None, *, one_way: bool = False
    ) -> NetworkFault:
        """Cut `nodes` off from `others`, by default from all nodes but clients from outside;
        `one_way`: only messages from `nodes` are lost."""
        return self._fault("isolate", nodes=nodes, others=others, one_way=one_way)

    def bridge(self, left: Nodes, right: Nodes) -> NetworkFault:
        """Cut two sets of nodes off from each other.  Nodes in neither set reach both, and form a
        bridge."""
        return self._fault("bridge", left=left, right=right)

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
        between `nodes` and `others`; without `others` on all links of `nodes`, including links
        between two of them."""
        return self._fault(
            "slow",
            nodes=nodes,
            others=others,
            latency_ms=latency_ms,
            jitter_ms=jitter_ms,
            distribution=distribution,
            one_way=one_way,
        )

    def lose(
        self, nodes: Nodes, others: Nodes | None = None, *, share: float, one_way: bool = False
    ) -> NetworkFault:
        """Lose a share (0 to 1) of the messages between `nodes` and `others`: TCP retransmits them,
        with growing timeouts."""
        return self._fault("lose", nodes=nodes, others=others, share=share, one_way=one_way)

    def limit_bandwidth(
        self, nodes: Nodes, others: Nodes | None = None, *, bytes_per_s: int, one_way: bool = False
    ) -> NetworkFault:
        """Limit the bandwidth of each link between `nodes` and `others`, in each direction."""
        return self._fault(
            "limit_bandwidth", nodes=nodes, others=others, bytes_per_s=bytes_per_s, one_way=one_way
        )

    def heal(self, nodes: Nodes | None = None, others: Nodes | None = None) -> None:
        """Heal cuts and remove shapes: of all links, of the links of `nodes`, or of the links
        between `nodes` and `others`."""
        self._port.perform("heal", nodes=nodes, others=others)

    def _fault(self, verb: str, **values: Any) -> NetworkFault:
        undo = self._port.perform(verb, **values).undo
        return NetworkFault(lambda: self._port.call(undo))
