"""The links between nodes, and the fate of each message that is sent over one.

Owns: each link's latency, shapes (shapes.py) and cuts, one direction at a time.  Never: carries a
message (runtime/dispatch.py does between brokers, transit.py for clients), knows what a node is.
Kafka: no counterpart; this is the network that tc and iptables would shape in a test of Kafka.

A cut is silence, not an error: the sender is not notified (contract rule 8).  Impairments add up:
each shape is one more layer on its link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from mypy_extensions import mypyc_attr

from kcluster.contract import Rng
from kcluster.network.shapes import RESET_US, Layer, LinkShape

Link = tuple[int, int]
"""(source node id, destination node id)."""


@mypyc_attr(free_list_len=1)
@final
class Arrives:
    """The message arrives at this time, unless its link is cut before."""

    __slots__ = ("at_us",)

    def __init__(self, at_us: int) -> None:
        self.at_us = at_us

    def __repr__(self) -> str:
        return f"Arrives({self.at_us})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrives) and other.at_us == self.at_us


@final
class Cut:
    """The link is cut: the message vanishes without a notice to either node.  CUT is the only
    instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CUT"


@final
class Resets:
    """The message is lost for good.  Its sender gives up at this time and resets the connection."""

    __slots__ = ("at_us",)

    def __init__(self, at_us: int) -> None:
        self.at_us = at_us

    def __repr__(self) -> str:
        return f"Resets({self.at_us})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resets) and other.at_us == self.at_us


CUT: Final = Cut()
Outcome = Arrives | Cut | Resets
"""The fate of a message."""


class Fabric:
    """All links of one cluster.  Every node reaches every other unless the link is cut.

    `node_ids`: brokers and the controller, sorted; `clients`: names by node id.  `streams`: makes
    the random numbers of a link with jitter or loss, by the link's name.  So a shape less does not
    change the luck of other links.
    `is_unimpaired`: no link is cut, delayed or shaped, so every message arrives at once and
    `transmit` need not be called; `has_cuts`: some link is cut.  `changes`: the number of changes
    of links.
    """

    __slots__ = (
        "_cuts", "_default_us", "_latencies_us", "_layers", "_rngs", "_streams", "changes",
        "clients", "has_cuts", "is_unimpaired", "node_ids",
    )  # fmt: skip

    def __init__(
        self,
        node_ids: Iterable[int],
        default_latency_ms: float = 0,
        streams: Callable[[str], Rng] | None = None,
    ) -> None:
        self.node_ids: tuple[int, ...] = tuple(sorted(node_ids))
        self.clients: dict[int, str] = {}
        self._streams = streams
        self._rngs: dict[Link, Rng] = {}
        self._layers: dict[Link, list[Layer]] = {}
        self._default_us = _to_us(default_latency_ms)
        self._latencies_us: dict[Link, int] = {}
        self._cuts: dict[Link, None] = {}
        self.is_unimpaired = True
        self.has_cuts = False
        self.changes = 0
        self._on_change()

    def transmit(self, link: Link, now_us: int = 0, message: object = None) -> Outcome:
        """Decide the fate of a message that is sent now.  This uses up bandwidth, and draws random
        numbers if the link has jitter or loss."""
        if link[0] == link[1]:
            return Arrives(now_us)  # a node reaches itself, over no link
        if link in self._cuts:
            return CUT
        at_us = now_us + self._latencies_us.get(link, self._default_us)
        if self._layers and link in self._layers:
            rng = self._rng_of(link)
            for layer in self._layers[link]:
                delay_us = layer.delay_us(at_us, message, rng)
                if delay_us is None:
                    return Resets(now_us + RESET_US)
                at_us += delay_us
        return Arrives(at_us)

    def _rng_of(self, link: Link) -> Rng:
        rng = self._rngs.get(link)
        if rng is None:
            assert self._streams is not None, "a fabric with shaped links needs its streams"
            name = f"{self.node_name(link[0])}>{self.node_name(link[1])}"
            rng = self._rngs[link] = self._streams(name)
        return rng

    def add_client(self, node_id: int, name: str) -> str:
        """List a client's node among the clients.  Returns its `node_name`."""
        self.clients[node_id] = name
        return self.node_name(node_id)

    def node_name(self, node_id: int) -> str:
        """The name of a node, which does not depend on other clients: `2`, `shop`; `shop#1` for the
        second client of this name."""
        name = self.clients.get(node_id)
        if not name:
            return str(node_id)
        before = sum(other < node_id and name == its for other, its in self.clients.items())
        return f"{name}#{before}" if before else name

    def is_cut(self, source: int, destination: int) -> bool:
        """Whether messages from `source` to `destination` vanish."""
        return (source, destination) in self._cuts

    @property
    def cuts(self) -> tuple[Link, ...]:
        """The links that are cut, sorted."""
        return tuple(sorted(self._cuts))

    def set_default_latency(self, latency_ms: float) -> None:
        """Set the latency of every link without its own."""
        self._default_us = _to_us(latency_ms)
        self._on_change()

    def set_latency(self, a: int, b: int, latency_ms: float, *, one_way: bool = False) -> None:
        """Set the latency from `a` to `b`, and back unless `one_way`."""
        for link in _links(a, b, one_way):
            self._latencies_us[link] = _to_us(latency_ms)
        self._on_change()

    def shape(self, source: int, destination: int, shape: LinkShape) -> Layer:
        """Add a shape to one direction of a link; returns its layer."""
        layer = Layer(shape)
        self._layers.setdefault((source, destination), []).append(layer)
        self._on_change()
        return layer

    def remove_layer(self, source: int, destination: int, layer: Layer) -> bool:
        """Remove one layer; returns whether it was still there."""
        layers = self._layers.get((source, destination), [])
        if layer not in layers:
            return False
        layers.remove(layer)
        if not layers:
            del self._layers[source, destination]
        self._on_change()
        return True

    def clear_shapes(self, a: int | None = None, b: int | None = None) -> tuple[Link, ...]:
        """Remove all shapes: from all links, from the links of node `a`, or from the links between
        `a` and `b`, in both directions.  Returns the links that had any, sorted."""
        cleared = tuple(link for link in self.shaped if _touches(link, a, b))
        for link in cleared:
            del self._layers[link]
        self._on_change()
        return cleared

    @property
    def shaped(self) -> tuple[Link, ...]:
        """The links with shapes, sorted."""
        return tuple(sorted(self._layers))

    def shapes_of(self, source: int, destination: int) -> tuple[LinkShape, ...]:
        """The shapes of one direction of a link."""
        return tuple(layer.shape for layer in self._layers.get((source, destination), ()))

    def latency_us(self, source: int, destination: int) -> int:
        """The latency of one direction of a link, without its shapes."""
        return self._latencies_us.get((source, destination), self._default_us)

    def cut(self, a: int, b: int, *, one_way: bool = False) -> tuple[Link, ...]:
        """Cut `a` to `b`, and back unless `one_way`; returns the links that were not cut before."""
        cut = tuple(link for link in _links(a, b, one_way) if link not in self._cuts)
        for link in cut:
            self._cuts[link] = None
        self._on_change()
        return cut

    def heal(self, a: int | None = None, b: int | None = None) -> tuple[Link, ...]:
        """Undo cuts: all cuts, the cuts of node `a`, or the cuts between `a` and `b`, in both
        directions. Returns the links that were cut, sorted."""
        healed = tuple(link for link in self.cuts if _touches(link, a, b))
        for link in healed:
            del self._cuts[link]
        self._on_change()
        return healed

    def heal_link(self, source: int, destination: int) -> bool:
        """Undo the cut of one direction of a link; returns whether it was cut."""
        was_cut = self._cuts.pop((source, destination), False) is None
        self._on_change()
        return was_cut

    def _on_change(self) -> None:
        self.changes += 1
        self.has_cuts = bool(self._cuts)
        self.is_unimpaired = not (
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
