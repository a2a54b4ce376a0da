"""The network as a graph: who reaches whom, which sides a cut makes, who joins them.

Owns: Sides, and the networkx graph of a fabric.  Never: changes a link (fabric.py).
Kafka: no counterpart.

Nothing travels over a third node, clients least of all; but what the brokers decide does, over the
controller.  So a side is a set of brokers, with the controller, that reach each other both ways, if
need be over others of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kcluster.contract import CONTROLLER_ID
from kcluster.network.fabric import Fabric


class Sides(Struct, frozen=True):
    """What cuts make of a network.  `groups`: each sorted, by first node; a client is of a side if
    it reaches that one only.  `joint`: brokers, or the controller, that reach all sides both ways:
    a bridge, if there are any.  `astride`: clients that reach more than one."""

    groups: tuple[tuple[int, ...], ...]
    joint: tuple[int, ...] = ()
    astride: tuple[int, ...] = ()


def graph_of(fabric: Fabric, kinds: Mapping[int, str], racks: Mapping[int, str]) -> Any:
    """A networkx.DiGraph: nodes with `kind` and `rack`, an edge for each way that is not cut, with
    `latency_ms` as built and `shapes`, in words.  Clients have links to brokers only."""
    import networkx

    graph = networkx.DiGraph()
    everybody = (*fabric.node_ids, *fabric.clients)
    for node in everybody:
        graph.add_node(node, kind=kinds.get(node, "client"), rack=racks.get(node))
        if node in fabric.clients:
            graph.nodes[node]["name"] = fabric.clients[node]
    for a in everybody:
        for b in everybody:
            if a == b or fabric.is_cut(a, b):
                continue
            if any(x in fabric.clients and kinds.get(y) != "broker" for x, y in ((a, b), (b, a))):
                continue
            shapes = [str(shape) for shape in fabric.shapes_of(a, b)]
            graph.add_edge(a, b, latency_ms=fabric.latency_us(a, b) / 1000, shapes=shapes)
    return graph


def sides_of(fabric: Fabric) -> Sides:
    """The sides of the network as it is now."""
    if not fabric.cuts:
        return Sides(((*fabric.node_ids, *fabric.clients),))
    # 0.15 s to import, and only a partition needs it.
    import networkx

    servers = fabric.node_ids
    hurt = {node for cut in fabric.cuts for node in cut if not fabric.clients.keys() & {*cut}}
    groups = _groups(networkx, fabric, [node for node in servers if node in hurt])
    # Those whose links are all whole join the others, if these are parted at all.
    joint = tuple(node for node in servers if node not in hurt)
    if len(groups) < 2:
        groups, joint = [servers], ()
    sides = [list(group) for group in groups]
    parted: list[tuple[int, ...]] = []
    astride: list[int] = []
    for client in fabric.clients:
        reached = [side for side in sides if _reaches(fabric, client, side)]
        if len(reached) > 1:
            astride.append(client)
        elif reached:
            reached[0].append(client)
        else:
            parted.append((client,))
    return Sides((*map(tuple, sides), *parted), joint, tuple(astride))


def parts_of(fabric: Fabric) -> list[tuple[int, ...]]:
    """The same of brokers and the controller alone; those that somebody joins are one."""
    if not fabric.cuts:
        return [fabric.node_ids]
    import networkx

    return _groups(networkx, fabric, list(fabric.node_ids))


def _groups(networkx: Any, fabric: Fabric, nodes: list[int]) -> list[tuple[int, ...]]:
    graph = networkx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((a, b) for a in nodes for b in nodes if a != b and not fabric.is_cut(a, b))
    groups = networkx.strongly_connected_components(graph)
    return sorted(tuple(sorted(group)) for group in groups)


def _reaches(fabric: Fabric, client: int, side: list[int]) -> bool:
    return any(
        not fabric.is_cut(client, node) and not fabric.is_cut(node, client)
        for node in side
        if node in fabric.node_ids and node != CONTROLLER_ID
    )
