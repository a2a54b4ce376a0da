"""The sides that cuts make, the nodes that join them, and the network as a graph."""

from __future__ import annotations

import pytest

from kcluster.network.fabric import Fabric
from kcluster.network.graph import Sides, graph_of, parts_of, sides_of
from kcluster.network.shapes import LinkShape

SHOP = 100_000


def fabric_of(*cuts: tuple[int, int], client: bool = False) -> Fabric:
    fabric = Fabric((1, 2, 3, 3000))
    if client:
        fabric.clients[SHOP] = "shop"
    for a, b in cuts:
        fabric.cut(a, b)
    return fabric


@pytest.mark.parametrize(
    ("cuts", "groups", "joint"),
    [
        ((), [(1, 2, 3, 3000)], ()),
        (((1, 2), (1, 3), (1, 3000)), [(1,), (2, 3, 3000)], ()),
        (((1, 2),), [(1,), (2,)], (3, 3000)),
        (((1, 2), (1, 3000)), [(1,), (2, 3000)], (3,)),
        (((1, 2), (3, 3000)), [(1, 2, 3, 3000)], ()),
    ],
)
def test_sides__are_nodes_that_reach_each_other(
    cuts: tuple[tuple[int, int], ...], groups: list[tuple[int, ...]], joint: tuple[int, ...]
) -> None:
    assert sides_of(fabric_of(*cuts)) == Sides(tuple(groups), joint)


def test_sides__one_way_is_not_enough_to_be_on_the_same_side() -> None:
    fabric = fabric_of()
    for other in (2, 3, 3000):
        fabric.cut(1, other, one_way=True)
    assert sides_of(fabric).groups == ((1,), (2, 3, 3000))


def test_sides__clients_belong_to_the_sides_they_reach_and_join_none() -> None:
    fabric = fabric_of((1, 2), (1, 3), (1, 3000), client=True)
    assert sides_of(fabric) == Sides(((1,), (2, 3, 3000)), (), (SHOP,))
    fabric.cut(SHOP, 1, one_way=True)
    assert sides_of(fabric).groups == ((1,), (2, 3, 3000, SHOP))
    for broker in (2, 3, 3000):
        fabric.cut(SHOP, broker)
    assert sides_of(fabric).groups == ((1,), (2, 3, 3000), (SHOP,))


def test_parts__are_one_if_a_node_joins_them() -> None:
    fabric = fabric_of((1, 2), client=True)
    assert parts_of(fabric) == [(1, 2, 3, 3000)]
    fabric.cut(1, 3)
    fabric.cut(1, 3000)
    assert parts_of(fabric) == [(1,), (2, 3, 3000)]


def test_graph__has_kinds_racks_latencies_shapes_and_no_cut_edges() -> None:
    fabric = fabric_of((1, 2), client=True)
    fabric.set_latency(1, 3, 2.5)
    fabric.shape(3, 1, LinkShape(10_000, 2_000, "normal"))
    graph = graph_of(fabric, {1: "broker", 2: "broker", 3: "broker", 3000: "controller"}, {1: "a"})
    assert graph.nodes[1] == {"kind": "broker", "rack": "a"}
    assert graph.nodes[SHOP] == {"kind": "client", "rack": None, "name": "shop"}
    assert not graph.has_edge(1, 2)
    assert graph.edges[1, 3] == {"latency_ms": 2.5, "shapes": []}
    assert graph.edges[3, 1]["shapes"] == ["latency 10 ms, jitter 2 ms normal"]
    assert sorted(graph[SHOP]) == [1, 2, 3]
