"""The network as a graph: the nodes that reach each other, and the sides into which cuts divide
them.

Owns: Sides, and the networkx graph of a fabric.  Never: changes a link (fabric.py).
Kafka: no counterpart.

Messages do not pass through a third node, but the effects of decisions do: brokers that do not
reach each other still follow the same controller.  So a side is a strongly connected component: a
set of brokers and the controller whose members all reach each other in both directions, directly or
through other members.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from msgspec import Struct

from kcluster.contract import CONTROLLER_ID
from kcluster.network.fabric import Fabric


class Sides(Struct, frozen=True):
    """The division of a network by cuts.  `groups`: the sides, each sorted, in the order of their
    first nodes; a client belongs to a side if it reaches no other side.  `joint`: brokers, or the
    controller, that reach all sides in both directions: a bridge.  `astride`: clients that reach
    several sides."""

    groups: tuple[tuple[int, ...], ...]
    joint: tuple[int, ...] = ()
    astride: tuple[int, ...] = ()


def graph_of(fabric: Fabric, kinds: Mapping[int, str], racks: Mapping[int, str]) -> Any:
    """A networkx.DiGraph: nodes with `kind` and `rack`, an edge for each direction that is not cut,
    with `latency_ms` (without shapes) and `shapes` (as text).  Clients link to brokers only."""
    graph = _networkx().DiGraph()
    all_nodes = (*fabric.node_ids, *fabric.clients)
    for node in all_nodes:
        graph.add_node(node, kind=kinds.get(node, "client"), rack=racks.get(node))
        if node in fabric.clients:
            graph.nodes[node]["name"] = fabric.clients[node]
    for a in all_nodes:
        for b in all_nodes:
            if a == b or fabric.is_cut(a, b):
                continue
            if any(x in fabric.clients and kinds.get(y) != "broker" for x, y in ((a, b), (b, a))):
                continue
            shapes = [str(shape) for shape in fabric.shapes_of(a, b)]
            graph.add_edge(a, b, latency_ms=fabric.latency_us(a, b) / 1000, shapes=shapes)
    return graph


def sides_of(fabric: Fabric) -> Sides:
    """The current sides of the network."""
    if not fabric.cuts:
        return Sides(((*fabric.node_ids, *fabric.clients),))
    servers = fabric.node_ids
    touched = {node for cut in fabric.cuts for node in cut if not fabric.clients.keys() & {*cut}}
    groups = _groups(_networkx(), fabric, [node for node in servers if node in touched])
    # Nodes without a cut link join the others, if the others are divided at all.
    joint = tuple(node for node in servers if node not in touched)
    if len(groups) < 2:
        groups, joint = [servers], ()
    sides = [list(group) for group in groups]
    divided: list[tuple[int, ...]] = []
    astride: list[int] = []
    for client in fabric.clients:
        reached = [side for side in sides if _reaches(fabric, client, side)]
        if len(reached) > 1:
            astride.append(client)
        elif reached:
            reached[0].append(client)
        else:
            divided.append((client,))
    return Sides((*map(tuple, sides), *divided), joint, tuple(astride))


def parts_of(fabric: Fabric) -> list[tuple[int, ...]]:
    """The sides of brokers and the controller alone; sides that a bridge joins count as one."""
    if not fabric.cuts:
        return [fabric.node_ids]

    return _groups(_networkx(), fabric, list(fabric.node_ids))


def _networkx() -> ModuleType:
    """The library; its import takes 0.15 s, and only a partition needs it."""
    import networkx

    return cast("ModuleType", networkx)


def _groups(networkx: ModuleType, fabric: Fabric, nodes: list[int]) -> list[tuple[int, ...]]:
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
