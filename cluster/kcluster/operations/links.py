"""Cutting, healing and shaping links between sets of nodes, with a note of each change.

Owns: these operations and their notes; resets of connections between brokers.  Never: carries a
message (dispatch.py, network/transit.py), decides which nodes are meant (network.py).
Kafka: iptables and tc on the machines that brokers run on.

Nodes are brokers, the controller, and clients by their ids in the fabric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product

from kcluster.contract import CONTROLLER_ID, PeerDisconnected
from kcluster.network.fabric import Link
from kcluster.network.graph import sides_of
from kcluster.network.node_ids import FIRST_CLIENT_ID, FIRST_OUTSIDE_ID
from kcluster.network.shapes import Layer, LinkShape
from kcluster.runtime.dispatch import Dispatcher
from kcluster.trace import kinds

Layers = list[tuple[Link, Layer]]
"""The layers of one shape, for `remove_layers`."""


class Links:
    """The links of one cluster; for use between two dispatches, in the driver's thread."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._fabric = dispatcher.fabric
        dispatcher.on_lost = self.reset_later

    # ----------------------------------------------------------------------------- cutting

    def cut(self, a: int, b: int, *, one_way: bool = False) -> None:
        """Cut a link; messages under way on it are lost."""
        self.isolate((a,), (b,), one_way=one_way)

    def isolate(
        self, nodes: Sequence[int], others: Sequence[int], *, one_way: bool = False
    ) -> tuple[Link, ...]:
        """Cut every link from `nodes` to `others`, and back unless `one_way`; returns those that
        were not cut before, for `heal_links`."""
        fresh = tuple(
            link
            for a, b in product(nodes, others)
            if a != b
            for link in self._fabric.cut(a, b, one_way=one_way)
        )
        for link in fresh:
            self._note(kinds.LINK_CUT, link, "cut: nothing gets through")
        ways = "nothing gets from" if one_way else "nothing gets between"
        sides = sides_of(self._fabric)
        self._dispatcher.note(
            kinds.NETWORK_CUT, "network",
            f"{ways} {self.names(nodes)} {'to' if one_way else 'and'} {self.names(others)};"
            f" {sides.text(self.names)}",
            nodes=list(nodes), others=list(others), one_way=one_way, links=list(fresh),
            sides=[list(side) for side in sides.groups], joint=list(sides.joint),
        )  # fmt: skip
        return fresh

    # ----------------------------------------------------------------------------- healing

    def heal(self, a: int | None = None, b: int | None = None) -> None:
        """Undo cuts and shapes: all, those of node `a`, or those between `a` and `b`."""
        self._report_healed(self._fabric.heal(a, b))
        self._report_unshaped(self._fabric.clear_shapes(a, b))

    def heal_links(self, links: Iterable[Link]) -> None:
        """Heal those of these links that are still cut."""
        self._report_healed([link for link in links if self._fabric.heal_link(*link)])

    def restore_all(self) -> None:
        """Undo all cuts and shapes."""
        self.heal()

    # ----------------------------------------------------------------------------- shaping

    def shape(
        self, nodes: Sequence[int], others: Sequence[int], shape: LinkShape, what: str = "",
        *, one_way: bool = False,
    ) -> Layers:  # fmt: skip
        """Add a shape to every link from `nodes` to `others`, and back unless `one_way`; returns
        its layers, for `remove_layers`.  `what`: the change in words."""
        ends = list(product(nodes, others))
        if not one_way:
            ends += [(b, a) for a, b in ends]
        links = [link for link in dict.fromkeys(ends) if link[0] != link[1]]
        layers = [(link, self._fabric.shape(*link, shape)) for link in links]
        between = f"{self.names(nodes)} {'to' if one_way else 'and'} {self.names(others)}"
        self._dispatcher.note(
            kinds.NETWORK_SHAPED, "network", f"{between}: {what or shape}",
            nodes=list(nodes), others=list(others), one_way=one_way, links=links,
        )  # fmt: skip
        return layers

    def remove_layers(self, layers: Layers) -> None:
        """Remove those of these layers that are still there."""
        self._report_unshaped(
            [link for link, layer in layers if self._fabric.remove_layer(*link, layer)]
        )

    # ---------------------------------------------------------------------- connections

    def reset_later(self, link: Link, at_us: int) -> None:
        """A message was lost for good: its connection is reset when its sender gives up."""
        self._dispatcher.later(at_us, partial(self._reset, link))

    def _reset(self, link: Link) -> None:
        if not self._fabric.is_cut(*link):
            self._note(
                kinds.LINK_RESET, link, "lost again and again: the connection is reset, by timeout"
            )
            # A client's connection is reset by transit.py, and no other over the same link.
            for direction in _both_directions((link,)):
                self._disconnect_nodes(direction)

    def _disconnect_nodes(self, link: Link) -> None:
        """The connection between two nodes is broken: notify the second."""
        source, destination = link
        dispatcher = self._dispatcher
        process = dispatcher.processes.get(destination)
        if process is not None and process.node is not None and source in dispatcher.processes:
            dispatcher.post(source, process, PeerDisconnected(source))

    # ------------------------------------------------------------------------------ notes

    def names(self, nodes: Iterable[int]) -> str:
        """`{1, 2, controller, client shop}`."""
        return names(nodes, self._fabric.clients)

    def _report_healed(self, links: Sequence[Link]) -> None:
        for link in links:
            self._note(kinds.LINK_HEALED, link, "whole again")
        if links:
            count = "1 link" if len(links) == 1 else f"{len(links)} links"
            sides = sides_of(self._fabric)
            self._dispatcher.note(
                kinds.NETWORK_HEALED, "network", f"{count} whole again; {sides.text(self.names)}",
                links=list(links), sides=[list(side) for side in sides.groups],
                joint=list(sides.joint),
            )  # fmt: skip
        for direction in _both_directions(links):
            for sink in self._dispatcher.heal_sinks:
                sink(direction)
            self._disconnect_nodes(direction)
        self._dispatcher.run()

    def _report_unshaped(self, links: Sequence[Link]) -> None:
        if links:
            self._dispatcher.note(
                kinds.NETWORK_SHAPED, "network", self._restored(links),
                restored=not self._fabric.shaped, links=list(links),
            )  # fmt: skip

    def _restored(self, links: Sequence[Link]) -> str:
        left = [link for link in links if self._fabric.shapes_of(*link)]
        return "links are as they were" + (", but for what else was done to them" if left else "")

    def _note(self, kind: str, link: Link, text: str) -> None:
        source, destination = link
        self._dispatcher.note(
            kind, f"link {source}>{destination}", text, source=source, to=destination
        )


def _both_directions(links: Iterable[Link]) -> Iterable[Link]:
    """Each link and its way back, each once, in order."""
    return dict.fromkeys(direction for a, b in links for direction in ((a, b), (b, a)))


def names(nodes: Iterable[int], clients: Mapping[int, str] = {}) -> str:
    """`{1, 2, controller, client shop}`; a client without a name by its number."""
    return "{" + ", ".join(_word(node, clients) for node in nodes) + "}"


def _word(node: int, clients: Mapping[int, str]) -> str:
    if node == CONTROLLER_ID:
        return "controller"
    if node < FIRST_CLIENT_ID:
        return str(node)
    if node >= FIRST_OUTSIDE_ID and clients.get(node) == "*":
        return "clients from outside"
    return f"client {clients.get(node) or node - FIRST_CLIENT_ID + 1}"
