"""Foreign clients as nodes of the network, by client.id or address.

Owns: their node ids, and the ids of each client.  Never: carries a message (outside.py,
memory/network.py), decides its fate on a link (network/transit.py). Kafka: the machines of clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from kcluster.network.fabric import Fabric
from kcluster.network.node_ids import FIRST_OUTSIDE_ID

MAX_REMEMBERED: Final = 10_000


class ClientNodes:
    """One node for each pattern.  When their number, `changes`, grows, results of `matching` are
    outdated."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self.ids: dict[tuple[bool, str], int] = {}
        """Node id by (whether the pattern matches addresses, pattern)."""
        self._found: dict[tuple[str | None, str], tuple[int, ...]] = {}
        """The nodes whose patterns match, by client.id and address."""

    @property
    def changes(self) -> int:
        """The number of nodes, which grows when a pattern is added."""
        return len(self.ids)

    def find(self, pattern: str, by_host: bool, broker_ids: Iterable[int]) -> int:
        """The node of all clients whose client.id or address matches a pattern.  A new node adds no
        latency to its links."""
        node = self.ids.get((by_host, pattern))
        if node is None:
            node = self.add(pattern, by_host)
            for broker_id in broker_ids:
                self._fabric.set_latency(node, broker_id, 0)
        if node not in self._fabric.clients:
            self._fabric.clients[node] = f"at {pattern}" if by_host else pattern
        return node

    def add(self, pattern: str, by_host: bool) -> int:
        """Add a node, which the fabric lists among the clients from its first use on."""
        node = self.ids[by_host, pattern] = FIRST_OUTSIDE_ID + len(self.ids)
        self._found.clear()
        return node

    def matching(self, client_id: str | None, host: str) -> tuple[int, ...]:
        """The nodes of a client, in the order in which they were added."""
        key = (client_id, host)
        nodes = self._found.get(key)
        if nodes is None:
            if len(self._found) >= MAX_REMEMBERED:
                self._found.clear()
            nodes = self._found[key] = tuple(
                node
                for (by_host, pattern), node in self.ids.items()
                if fnmatchcase(host if by_host else client_id or "", pattern)
            )
        return nodes
