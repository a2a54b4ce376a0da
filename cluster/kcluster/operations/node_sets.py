"""Sets of nodes at the ends of links: their choice, and refusals.  Owns: NodeSets, the sets if none
is named, refusals.  Never: cuts or shapes a link itself (links.py does), reads a word for nodes
(targets.py does), waits.  Kafka: iptables and tc on the machines of brokers and clients; Jepsen's
net and nemesis/partition.

Clients by name are the project's own and, on the live driver, clients from outside by client.id or
IP address, with the wildcards `*` and `?`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from kcluster.config.files.problems import unknown
from kcluster.contract import CONTROLLER_ID
from kcluster.network.graph import graph_of
from kcluster.network.node_ids import FIRST_OUTSIDE_ID
from kcluster.operations.errors import ClusterError
from kcluster.operations.links import Links
from kcluster.operations.settled import Settled
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher

Ids = Sequence[int]
"""The ids of nodes."""

ANYBODY: Final = "*"
"""The pattern of all clients from outside."""


class NodeSets:
    """The nodes of one cluster, between two dispatches, in the driver's thread."""

    def __init__(self, plan: Plan, dispatcher: Dispatcher, links: Links, settled: Settled) -> None:
        self._plan = plan
        self._dispatcher = dispatcher
        self._links = links
        self._settled = settled

    def graph(self) -> Any:
        """A networkx.DiGraph of the present network: nodes with `kind` (broker, controller, client)
        and `rack`, and an edge for each direction that is not cut."""
        racks = {spec.id: spec.rack for spec in self._plan.topology.brokers if spec.rack}
        kinds = dict.fromkeys(self._plan.addresses, "broker")
        kinds[CONTROLLER_ID] = "controller"
        return graph_of(self._dispatcher.fabric, kinds, racks)

    # ------------------------------------------------------------------------------------ nodes

    @property
    def servers(self) -> tuple[int, ...]:
        """Brokers, and the controller."""
        return (*self._plan.addresses, self._settled.controller_id)

    @property
    def clients(self) -> tuple[int, ...]:
        """The project's own clients, and all clients from outside."""
        return (*self._own.keys(), *self._outside(ANYBODY))

    @property
    def all_nodes(self) -> tuple[int, ...]:
        """Brokers, the controller, the project's own clients; clients from outside must be
        named."""
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

    def ends(self, nodes: Ids, others: Ids | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The two ends of links, which have no node in common; without `others`, the second end has
        all nodes that are not `nodes`.  Raises ClusterError, with the reason, if there are no such
        sets."""
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
