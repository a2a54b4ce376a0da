"""The links between nodes: how long a message takes, and where nothing gets through.

Owns: latency, shapes (shapes.py) and cuts, one way each.  Never: carries a message
(runtime/dispatch.py does), knows what a node is.
Kafka: no counterpart; this is the network between brokers, as tc and iptables would shape it in a
test of Kafka itself.

A cut is silence, not an error: whoever sends into it is told nothing (contract rule 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cluster.contract import Rng
from cluster.network.shapes import Shape, ShapedLink

Link = tuple[int, int]
"""(source node id, destination node id)."""


class Fabric:
    """All links of one cluster.  Every node reaches every other unless the link is cut.  `rng`: for
    links that jitter or lose; they need one.

    `is_plain`: no link is cut or slow: whoever delivers need not ask further.
    """

    __slots__ = (
        "_cuts", "_default_us", "_latencies_us", "_rng", "_shaped", "is_plain", "node_ids",
    )  # fmt: skip

    def __init__(
        self, node_ids: Iterable[int], default_latency_ms: float = 0, rng: Rng | None = None
    ) -> None:
        self.node_ids: tuple[int, ...] = tuple(sorted(node_ids))
        self._rng = rng
        self._shaped: dict[Link, ShapedLink] = {}
        self._default_us = _to_us(default_latency_ms)
        self._latencies_us: dict[Link, int] = {}
        self._cuts: dict[Link, None] = {}
        self.is_plain = True
        self._look()

    def delay_us(
        self, source: int, destination: int, now_us: int = 0, message: Any = None
    ) -> int | None:
        """Microseconds that a message sent now takes; None if the link is cut."""
        link = (source, destination)
        if link in self._cuts:
            return None
        if self._shaped and link in self._shaped:
            assert self._rng is not None, "a fabric with shaped links needs its rng"
            return self._shaped[link].delay_us(now_us, message, self._rng)
        return self._latencies_us.get(link, self._default_us)

    def is_cut(self, source: int, destination: int) -> bool:
        """Whether messages from `source` to `destination` vanish."""
        return (source, destination) in self._cuts

    @property
    def cuts(self) -> tuple[Link, ...]:
        """The links that are cut, sorted."""
        return tuple(sorted(self._cuts))

    def set_default_latency(self, latency_ms: float) -> None:
        """Latency of every link that has none of its own."""
        self._default_us = _to_us(latency_ms)
        self._look()

    def set_latency(self, a: int, b: int, latency_ms: float, *, one_way: bool = False) -> None:
        """Latency from `a` to `b`, and back unless `one_way`."""
        for link in _links(a, b, one_way):
            self._latencies_us[link] = _to_us(latency_ms)
        self._look()

    def shape(self, source: int, destination: int, shape: Shape | None) -> None:
        """Give one way of a link a shape, instead of its latency; None: take it away."""
        if shape is None:
            self._shaped.pop((source, destination), None)
        else:
            self._shaped[source, destination] = ShapedLink(shape)
        self._look()

    def unshape(self) -> None:
        """Take every shape away."""
        self._shaped.clear()
        self._look()

    def shape_of(self, source: int, destination: int) -> Shape | None:
        """The shape of one way of a link, None if it has none."""
        shaped = self._shaped.get((source, destination))
        return None if shaped is None else shaped.shape

    def cut(self, a: int, b: int, *, one_way: bool = False) -> tuple[Link, ...]:
        """Cut `a` to `b`, and back unless `one_way`; returns the links that were whole before."""
        fresh = tuple(link for link in _links(a, b, one_way) if link not in self._cuts)
        for link in fresh:
            self._cuts[link] = None
        self._look()
        return fresh

    def heal(self, a: int | None = None, b: int | None = None) -> tuple[Link, ...]:
        """Undo cuts: all of them; those that touch `a`; or those between `a` and `b`, both ways.
        Returns the links that were cut before, sorted."""
        healed = tuple(link for link in self.cuts if _touches(link, a, b))
        for link in healed:
            del self._cuts[link]
        self._look()
        return healed

    def mend(self, source: int, destination: int) -> bool:
        """Undo the cut of one way of a link; whether it was cut."""
        was_cut = self._cuts.pop((source, destination), False) is None
        self._look()
        return was_cut

    def sides(self) -> list[tuple[int, ...]]:
        """The groups of nodes that still reach each other both ways, if need be over others;
        one group when the network is whole.  Each group sorted, groups by first node."""
        if not self._cuts:
            return [self.node_ids]
        # 0.2 s to import, and only a partition needs it.
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.node_ids)
        graph.add_edges_from(
            (a, b)
            for a in self.node_ids
            for b in self.node_ids
            if a != b and (a, b) not in self._cuts
        )
        groups = networkx.strongly_connected_components(graph)
        return sorted(tuple(sorted(group)) for group in groups)

    def _look(self) -> None:
        self.is_plain = not (
            self._cuts or self._shaped or self._default_us or any(self._latencies_us.values())
        )


def _links(a: int, b: int, one_way: bool) -> tuple[Link, ...]:
    return ((a, b),) if one_way else ((a, b), (b, a))


def _touches(link: Link, a: int | None, b: int | None) -> bool:
    if a is None:
        return True
    return a in link if b is None else link in ((a, b), (b, a))


def _to_us(latency_ms: float) -> int:
    assert latency_ms >= 0, latency_ms
    return round(latency_ms * 1000)
