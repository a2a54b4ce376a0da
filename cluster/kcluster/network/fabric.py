"""The links between nodes: how long a message takes, and where nothing gets through.

Owns: latency, shapes (shapes.py) and cuts, one way each.  Never: carries a message
(runtime/dispatch.py does), knows what a node is.
Kafka: no counterpart; this is the network between brokers, as tc and iptables would shape it in a
test of Kafka itself.

A cut is silence, not an error: whoever sends into it is told nothing (contract rule 8).
What is done to a link adds to what was done before: shapes lie on each other as layers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcluster.contract import Rng
from kcluster.network.shapes import LOST, RESET_US, Layer, Shape

Link = tuple[int, int]
"""(source node id, destination node id)."""


class Fabric:
    """All links of one cluster.  Every node reaches every other unless the link is cut.  `rng`: for
    links that jitter or lose; they need one.  `node_ids`: brokers and the controller, sorted;
    `clients`: names by node id.

    `is_plain`: no link is cut or slow: whoever delivers need not ask further; nor, unless
    `has_cuts`, whether one is cut.  `changes`: how often a link was changed.
    """

    __slots__ = (
        "_cuts", "_default_us", "_latencies_us", "_layers", "_rng", "changes", "clients",
        "has_cuts", "is_plain", "node_ids",
    )  # fmt: skip

    def __init__(
        self, node_ids: Iterable[int], default_latency_ms: float = 0, rng: Rng | None = None
    ) -> None:
        self.node_ids: tuple[int, ...] = tuple(sorted(node_ids))
        self.clients: dict[int, str] = {}
        self._rng = rng
        self._layers: dict[Link, list[Layer]] = {}
        self._default_us = _to_us(default_latency_ms)
        self._latencies_us: dict[Link, int] = {}
        self._cuts: dict[Link, None] = {}
        self.is_plain = True
        self.has_cuts = False
        self.changes = 0
        self._look()

    def delay_us(
        self, source: int, destination: int, now_us: int = 0, message: Any = None
    ) -> int | None:
        """Microseconds that a message sent now takes; None if the link is cut.  Less than 0: the
        message is lost for good, and after so many its connection is reset."""
        link = (source, destination)
        if link in self._cuts:
            return None
        total_us = self._latencies_us.get(link, self._default_us)
        if self._layers and link in self._layers:
            assert self._rng is not None, "a fabric with shaped links needs its rng"
            for layer in self._layers[link]:
                wait_us = layer.delay_us(now_us + total_us, message, self._rng)
                if wait_us == LOST:
                    return -RESET_US
                total_us += wait_us
        return total_us

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

    def shape(self, source: int, destination: int, shape: Shape) -> Layer:
        """Lay a shape on one way of a link, on top of what there is."""
        layer = Layer(shape)
        self._layers.setdefault((source, destination), []).append(layer)
        self._look()
        return layer

    def unshape(self, source: int, destination: int, layer: Layer) -> bool:
        """Take a layer away; whether it was still there."""
        layers = self._layers.get((source, destination), [])
        if layer not in layers:
            return False
        layers.remove(layer)
        if not layers:
            del self._layers[source, destination]
        self._look()
        return True

    def smooth(self, a: int | None = None, b: int | None = None) -> tuple[Link, ...]:
        """Take all layers away: of all links, of those that touch `a`, or of those between `a` and
        `b`, both ways.  Returns the links that had some, sorted."""
        smoothed = tuple(link for link in self.shaped if _touches(link, a, b))
        for link in smoothed:
            del self._layers[link]
        self._look()
        return smoothed

    @property
    def shaped(self) -> tuple[Link, ...]:
        """The links with layers, sorted."""
        return tuple(sorted(self._layers))

    def shapes_of(self, source: int, destination: int) -> tuple[Shape, ...]:
        """What lies on one way of a link."""
        return tuple(layer.shape for layer in self._layers.get((source, destination), ()))

    def latency_us(self, source: int, destination: int) -> int:
        """The latency of one way of a link as it was built."""
        return self._latencies_us.get((source, destination), self._default_us)

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

    def _look(self) -> None:
        self.changes += 1
        self.has_cuts = bool(self._cuts)
        self.is_plain = not (
            self._cuts or self._layers or self._default_us or any(self._latencies_us.values())
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
