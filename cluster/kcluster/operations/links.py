"""Cutting, healing and shaping links between sets of nodes, with an event for each change.

Owns: these operations and their events; resets of connections between brokers.  Never: carries a
message (runtime/dispatch.py, network/transit.py), chooses the nodes (node_sets.py).  Kafka:
iptables and tc on the machines of brokers.

Nodes are brokers, the controller, and clients by their ids in the fabric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product

from kcluster.contract import PeerDisconnected
from kcluster.events.network import (
    LinkCut,
    LinkHealed,
    LinkReset,
    NetworkCut,
    NetworkHealed,
    NetworkShaped,
)
from kcluster.events.words import node_names
from kcluster.network.fabric import Link
from kcluster.network.graph import sides_of
from kcluster.network.node_ids import FIRST_CLIENT_ID
from kcluster.network.shapes import Layer, LinkShape
from kcluster.runtime.dispatch import Dispatcher

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
        """Cut a link; messages on their way are lost."""
        self.isolate((a,), (b,), one_way=one_way)

    def isolate(
        self, nodes: Sequence[int], others: Sequence[int], *, one_way: bool = False
    ) -> tuple[Link, ...]:
        """Cut every link from `nodes` to `others`, and back unless `one_way`; returns the links
        that were not cut before, for `heal_links`."""
        fresh = tuple(
            link
            for a, b in product(nodes, others)
            if a != b
            for link in self._fabric.cut(a, b, one_way=one_way)
        )
        for link in fresh:
            self._dispatcher.note(LinkCut(*link))
        sides = sides_of(self._fabric)
        cut = NetworkCut(
            links=fresh,
            clients=self._clients(*sides.groups, sides.joint, sides.astride, nodes, others),
            sides=sides.groups,
            joint=sides.joint,
            astride=sides.astride,
            nodes=tuple(nodes),
            others=tuple(others),
            one_way=one_way,
        )
        self._dispatcher.note(cut)
        return fresh

    # ----------------------------------------------------------------------------- healing

    def heal(self, a: int | None = None, b: int | None = None) -> None:
        """Undo cuts and shapes: of all links, of the links of node `a`, or of the links between `a`
        and `b`."""
        self._report_healed(self._fabric.heal(a, b))
        self._report_unshaped(self._fabric.clear_shapes(a, b))

    def heal_links(self, links: Iterable[Link]) -> None:
        """Heal these links, if they are still cut."""
        self._report_healed([link for link in links if self._fabric.heal_link(*link)])

    def restore_all(self) -> None:
        """Undo all cuts and shapes."""
        self.heal()

    # ----------------------------------------------------------------------------- shaping

    def shape(
        self,
        nodes: Sequence[int],
        others: Sequence[int],
        shape: LinkShape,
        *,
        one_way: bool = False,
        of_disk: bool = False,
    ) -> Layers:
        """Add a shape to every link from `nodes` to `others`, and back unless `one_way`; returns
        its layers, for `remove_layers`.  `of_disk`: whether it stands for a slow disk."""
        ends = list(product(nodes, others))
        if not one_way:
            ends += [(b, a) for a, b in ends]
        links = [link for link in dict.fromkeys(ends) if link[0] != link[1]]
        layers = [(link, self._fabric.shape(*link, shape)) for link in links]
        shaped = NetworkShaped(
            links=tuple(links),
            clients=self._clients(nodes, others),
            nodes=tuple(nodes),
            others=tuple(others),
            one_way=one_way,
            latency_us=shape.latency_us,
            jitter_us=shape.jitter_us,
            distribution=shape.distribution,
            loss=shape.loss,
            bytes_per_s=shape.bytes_per_s,
            of_disk=of_disk,
        )
        self._dispatcher.note(shaped)
        return layers

    def remove_layers(self, layers: Layers) -> None:
        """Remove these layers, if they still exist."""
        self._report_unshaped(
            [link for link, layer in layers if self._fabric.remove_layer(*link, layer)]
        )

    # ---------------------------------------------------------------------- connections

    def reset_later(self, link: Link, at_us: int) -> None:
        """Reset the connection of a message that was lost for good when its sender gives up."""
        self._dispatcher.later(at_us, partial(self._reset, link))

    def _reset(self, link: Link) -> None:
        if not self._fabric.is_cut(*link):
            self._dispatcher.note(LinkReset(*link))
            # transit.py resets a client's connection, and no other over the link.
            for direction in _both_directions((link,)):
                self._disconnect_nodes(direction)

    def _disconnect_nodes(self, link: Link) -> None:
        """Notify the second node that its connection to the first is broken."""
        source, destination = link
        dispatcher = self._dispatcher
        process = dispatcher.processes.get(destination)
        if process is not None and process.node is not None and source in dispatcher.processes:
            dispatcher.post(source, process, PeerDisconnected(source))

    # ------------------------------------------------------------------------------ notes

    def names(self, nodes: Iterable[int]) -> str:
        """The names of these nodes: `{1, 2, controller, client shop}`."""
        nodes = tuple(nodes)
        return node_names(nodes, self._clients(nodes))

    def _clients(self, *sets: Iterable[int]) -> dict[int, str]:
        """The names of the clients among these nodes; the number of a client without a name."""
        known = self._fabric.clients
        return {
            node: known.get(node) or str(node - FIRST_CLIENT_ID + 1)
            for nodes in sets
            for node in nodes
            if node >= FIRST_CLIENT_ID
        }

    def _report_healed(self, links: Sequence[Link]) -> None:
        for link in links:
            self._dispatcher.note(LinkHealed(*link))
        if links:
            sides = sides_of(self._fabric)
            healed = NetworkHealed(
                links=tuple(links),
                clients=self._clients(*sides.groups, sides.joint, sides.astride),
                sides=sides.groups,
                joint=sides.joint,
                astride=sides.astride,
            )
            self._dispatcher.note(healed)
        for direction in _both_directions(links):
            for sink in self._dispatcher.heal_sinks:
                sink(direction)
            self._disconnect_nodes(direction)
        self._dispatcher.run()

    def _report_unshaped(self, links: Sequence[Link]) -> None:
        if links:
            restored = NetworkShaped(
                links=tuple(links),
                clients={},
                undone=True,
                remaining=tuple(link for link in links if self._fabric.shapes_of(*link)),
                restored=not self._fabric.shaped,
            )
            self._dispatcher.note(restored)


def _both_directions(links: Iterable[Link]) -> Iterable[Link]:
    """The links, and the opposite direction of each, without repetitions, in order."""
    return dict.fromkeys(direction for a, b in links for direction in ((a, b), (b, a)))
