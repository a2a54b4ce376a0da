"""The graph of a cut network in pure Python, instead of networkx.

Owns: DiGraph as far as kcluster/network/graph.py uses it, and its strongly connected components.
Never: is imported where networkx is.  Kafka: no counterpart.

A cluster has a few dozen nodes at most, so a component is found by two searches, forward and
backward from a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_Edges = dict[int, dict[int, None]]


class DiGraph:
    """A directed graph of node ids."""

    def __init__(self) -> None:
        self.successors: _Edges = {}
        self.predecessors: _Edges = {}

    def add_nodes_from(self, nodes: Iterable[int]) -> None:
        """Add nodes without edges."""
        for node in nodes:
            self.successors.setdefault(node, {})
            self.predecessors.setdefault(node, {})

    def add_edges_from(self, edges: Iterable[tuple[int, int]]) -> None:
        """Add edges, (from, to), with their nodes."""
        for start, end in edges:
            self.add_nodes_from((start, end))
            self.successors[start][end] = None
            self.predecessors[end][start] = None


def strongly_connected_components(graph: DiGraph) -> Iterator[set[int]]:
    """The largest sets of nodes whose members all reach each other."""
    left = dict.fromkeys(graph.successors)
    while left:
        node = next(iter(left))
        found = _reached(graph.successors, node) & _reached(graph.predecessors, node)
        for each in sorted(found):
            del left[each]
        yield found


def _reached(edges: _Edges, node: int) -> set[int]:
    reached = {node}
    open_nodes = [node]
    while open_nodes:
        for each in edges[open_nodes.pop()]:
            if each not in reached:
                reached.add(each)
                open_nodes.append(each)
    return reached
