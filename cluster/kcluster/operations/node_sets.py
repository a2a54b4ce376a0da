"""Network faults between sets of nodes: which links are meant, if they are possible, how to undo.

Owns: NetworkControl, the sets that are meant where none is named, refusals.  Never: cuts or shapes
a link itself (links.py does), reads a word for nodes (targets.py does), waits.
Kafka: iptables and tc on the machines of brokers and clients; Jepsen's net and nemesis/partition.

Clients by name are the project's own and, on the live driver, those from outside by client.id or IP
address, with the wildcards `*` and `?`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from kcluster.config.files.problems import unknown
from kcluster.contract import CONTROLLER_ID
from kcluster.network.graph import graph_of
from kcluster.network.node_ids import FIRST_OUTSIDE_ID
from kcluster.network.shapes import DISTRIBUTIONS, LinkShape
from kcluster.operations.errors import ClusterError
from kcluster.operations.links import Links
from kcluster.operations.settled import Settled
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher

Ids = Sequence[int]
"""The ids of nodes."""
Undo = Callable[[], None]

ANYBODY: Final = "*"
"""The pattern of all clients from outside."""


class NetworkControl:
    """The network of one cluster, between two dispatches, in the driver's thread.  Each verb
    returns a callable that undoes it, and raises ClusterError with the reason if it is refused."""

    def __init__(self, plan: Plan, dispatcher: Dispatcher, links: Links, settled: Settled) -> None:
        self._plan = plan
        self._dispatcher = dispatcher
        self._links = links
        self._settled = settled

    # ------------------------------------------------------------------------------------ verbs

    def isolate(self, nodes: Ids, others: Ids | None = None, *, one_way: bool = False) -> Undo:
        """Cut `nodes` off from `others`, by default from all nodes but clients from outside;
        `one_way`: only messages from `nodes` are lost."""
        links = self._links.isolate(*self._ends(nodes, others), one_way=one_way)
        return lambda: self._links.heal_links(links)

    def bridge(self, left: Ids, right: Ids) -> Undo:
        """Cut two sets off from each other; nodes in neither reach both and form a bridge."""
        first, second = self._ends(left, right)
        if all(node in first or node in second for node in self.servers):
            raise ClusterError("no node is left to be the bridge; use isolate instead")
        links = self._links.isolate(first, second)
        return lambda: self._links.heal_links(links)

    def slow_link(
        self,
        nodes: Ids,
        others: Ids | None = None,
        *,
        latency_ms: float = 0,
        jitter_ms: float = 0,
        distribution: str = "normal",
        one_way: bool = False,
    ) -> Undo:
        """Add latency and jitter to messages between `nodes` and `others`.  `distribution`:
        constant, uniform, normal, or exponential, which has a long tail."""
        if distribution not in DISTRIBUTIONS:
            raise ClusterError(f"distribution: {unknown('one', distribution, DISTRIBUTIONS)}")
        if min(latency_ms, jitter_ms) < 0:
            raise ClusterError("latency and jitter must be 0 or more")
        shape = LinkShape(
            round(latency_ms * 1000),
            round(jitter_ms * 1000),
            distribution if jitter_ms else "constant",
        )
        return self._shape(nodes, others, shape, one_way)

    def lose(
        self, nodes: Ids, others: Ids | None = None, *, share: float, one_way: bool = False
    ) -> Undo:
        """Lose a share (0 to 1) of the messages between `nodes` and `others`.  TCP retransmits them
        with growing timeouts, so all arrive in the end, unless that takes 30 s."""
        if not 0 <= share < 1:
            raise ClusterError(
                f"share={share:g}: must be at least 0 and less than 1; use isolate to lose all"
            )
        return self._shape(nodes, others, LinkShape(loss=share), one_way)

    def limit_bandwidth(
        self, nodes: Ids, others: Ids | None = None, *, bytes_per_s: int, one_way: bool = False
    ) -> Undo:
        """Limit the bandwidth of each link between `nodes` and `others`, in each direction."""
        if bytes_per_s < 1:
            raise ClusterError(
                f"bytes_per_s={bytes_per_s}: must be at least 1; use isolate to lose all"
            )
        return self._shape(nodes, others, LinkShape(bytes_per_s=bytes_per_s), one_way)

    def heal(self, nodes: Ids | None = None, others: Ids | None = None) -> None:
        """Heal cuts and remove shapes: of all links, of those of `nodes`, or of those between
        `nodes` and `others`."""
        if nodes is None:
            self._links.heal()
            return
        for node in nodes:
            for other in (None,) if others is None else others:
                self._links.heal(node, other)

    def graph(self) -> Any:
        """A networkx.DiGraph of the present network: nodes with `kind` (broker, controller, client)
        and `rack`, and an edge for each direction that is not cut."""
        racks = {spec.id: spec.rack for spec in self._plan.topology.brokers if spec.rack}
        kinds = dict.fromkeys(self._plan.addresses, "broker")
        kinds[CONTROLLER_ID] = "controller"
        return graph_of(self._dispatcher.fabric, kinds, racks)

    def _shape(self, nodes: Ids, others: Ids | None, shape: LinkShape, one_way: bool) -> Undo:
        """Shape the links from `nodes` to `others`; without `others` all links of `nodes`, those
        among them too."""
        if others is None and len(nodes) > 1:
            ends = tuple(nodes), self.all_nodes
        else:
            ends = self._ends(nodes, others)
        layers = self._links.shape(*ends, shape, one_way=one_way)
        return lambda: self._links.remove_layers(layers)

    # ------------------------------------------------------------------------------------ nodes

    @property
    def servers(self) -> tuple[int, ...]:
        """Brokers, and the controller."""
        return (*self._plan.addresses, self._settled.controller_id)

    @property
    def clients(self) -> tuple[int, ...]:
        """The project's own clients, and all from outside."""
        return (*self._own.keys(), *self._outside(ANYBODY))

    @property
    def all_nodes(self) -> tuple[int, ...]:
        """Brokers, the controller, the project's own clients; others must be named."""
        return (*self.servers, *self._own)

    def client(self, name: str) -> tuple[int, ...]:
        """Clients by name, client.id or a pattern."""
        own = tuple(node for node, known in self._own.items() if fnmatchcase(known, name))
        if own and "*" not in name:
            return own
        node_ids = (*own, *self._outside(name))
        if not node_ids:
            raise ClusterError(f"client {name}: {unknown('client', name, self._own.values())}")
        return node_ids

    def host(self, pattern: str) -> tuple[int, ...]:
        """Clients from outside by IP address, or a pattern."""
        found = self._outside(pattern, by_host=True)
        if not found:
            raise ClusterError(f"host {pattern}: clients have no addresses in virtual time")
        return found

    @property
    def _own(self) -> dict[int, str]:
        clients = self._dispatcher.fabric.clients
        return {node: name for node, name in clients.items() if node < FIRST_OUTSIDE_ID}

    def _outside(self, pattern: str, by_host: bool = False) -> tuple[int, ...]:
        return self._dispatcher.outlet.outside_clients(pattern, by_host)

    def _ends(self, nodes: Ids, others: Ids | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The two sets, which have no node in common."""
        first = tuple(nodes)
        if others is None:
            second = tuple(node for node in self.all_nodes if node not in first)
        else:
            second = tuple(others)
        both = [node for node in first if node in second]
        if both:
            raise ClusterError(f"{self._links.names(both)} cannot be on both sides")
        if not second:
            raise ClusterError("there are no other nodes")
        return first, second
