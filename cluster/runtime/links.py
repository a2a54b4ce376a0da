"""What may be done to the links between nodes, with the notes of it.

Owns: cutting, healing and shaping links, one by one and by sets; telling which sides a cut makes.
Never: carries a message (dispatch.py), knows how a link delays (network/).
Kafka: iptables and tc on the machines that brokers run on.

Nodes are brokers, the controller, and clients by their ids in the fabric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from cluster.contract import CONTROLLER_ID, PeerDisconnected
from cluster.network.fabric import Link
from cluster.network.shapes import Shape
from cluster.runtime.clients import FIRST_CLIENT_ID
from cluster.runtime.dispatch import Dispatcher
from cluster.trace import kinds


class Links:
    """The links of one cluster.  All between two dispatches, in the driver's thread."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._fabric = dispatcher.fabric

    # ------------------------------------------------------------------------- one by one

    def cut(self, a: int, b: int, *, one_way: bool = False) -> None:
        """Cut a link: silence from now on; what is in flight on it is lost."""
        self._tell_cut(self._fabric.cut(a, b, one_way=one_way))

    def heal(self, a: int | None = None, b: int | None = None) -> None:
        """Undo cuts: all, those of node `a`, or those between `a` and `b`.  The connections that
        the cut broke are found to be broken now: both ends hear of it."""
        self._tell_healed(self._fabric.heal(a, b))

    # ------------------------------------------------------------------------------- sets

    def isolate(
        self, nodes: Sequence[int], others: Sequence[int], *, one_way: bool = False
    ) -> tuple[Link, ...]:
        """Cut every link from `nodes` to `others`, and back unless `one_way`; returns those that
        were whole, for `mend`."""
        fresh = tuple(
            link
            for a, b in product(nodes, others)
            if a != b
            for link in self._fabric.cut(a, b, one_way=one_way)
        )
        self._tell_cut(fresh)
        ways = "nothing gets from" if one_way else "nothing gets between"
        sides = self._fabric.sides()
        self._dispatcher.note(
            kinds.NETWORK_CUT, "network",
            f"{ways} {names(nodes)} {'to' if one_way else 'and'} {names(others)};"
            f" sides: {' | '.join(names(side) for side in sides)}",
            nodes=list(nodes), others=list(others), one_way=one_way,
            sides=[list(side) for side in sides],
        )  # fmt: skip
        return fresh

    def mend(self, links: Iterable[Link]) -> None:
        """Make these whole again, those that are still cut."""
        healed = [link for link in links if self._fabric.mend(*link)]
        self._tell_healed(healed)
        if healed:
            sides = " | ".join(names(side) for side in self._fabric.sides())
            text = f"{len(healed)} links whole again; sides: {sides}"
            self._dispatcher.note(kinds.NETWORK_HEALED, "network", text)

    def shape(
        self, nodes: Sequence[int], others: Sequence[int], shape: Shape, what: str,
        *, one_way: bool = False,
    ) -> list[tuple[Link, Shape | None]]:  # fmt: skip
        """Give every link from `nodes` to `others`, and back unless `one_way`, a shape; returns
        what they had, for `reshape`.  `what`: the change in words."""
        ends = list(product(nodes, others))
        if not one_way:
            ends += [(b, a) for a, b in ends]
        links = [link for link in dict.fromkeys(ends) if link[0] != link[1]]
        before = [(link, self._fabric.shape_of(*link)) for link in links]
        for link in links:
            self._fabric.shape(*link, shape)
        between = f"{names(nodes)} {'to' if one_way else 'and'} {names(others)}"
        self._dispatcher.note(kinds.NETWORK_SHAPED, "network", f"{between}: {what}")
        return before

    def reshape(self, shapes: Iterable[tuple[Link, Shape | None]]) -> None:
        """Give links the shapes that they had."""
        for link, shape in shapes:
            self._fabric.shape(*link, shape)
        self._dispatcher.note(
            kinds.NETWORK_SHAPED, "network", "links are as they were", restored=True
        )

    def restore_all(self) -> None:
        """Make every cut link whole, and every shaped one as it was built."""
        self.heal()
        self._fabric.unshape()

    # ------------------------------------------------------------------------------ notes

    def _tell_cut(self, links: Iterable[Link]) -> None:
        for link in links:
            self._note(kinds.LINK_CUT, link, "cut: nothing gets through")

    def _tell_healed(self, links: Iterable[Link]) -> None:
        dispatcher = self._dispatcher
        ends: dict[Link, None] = {}
        for source, destination in links:
            self._note(kinds.LINK_HEALED, (source, destination), "whole again")
            ends[source, destination] = ends[destination, source] = None
        for source, destination in ends:
            for sink in dispatcher.heal_sinks:
                sink((source, destination))
            process = dispatcher.processes.get(destination)
            if process is not None and process.node is not None and source in dispatcher.processes:
                dispatcher.post(source, process, PeerDisconnected(source))
        dispatcher.run()

    def _note(self, kind: str, link: Link, text: str) -> None:
        source, destination = link
        self._dispatcher.note(
            kind, f"link {source}>{destination}", text, source=source, to=destination
        )


def names(nodes: Sequence[int]) -> str:
    """`{1, 2, controller}`."""
    words = [
        "controller" if node == CONTROLLER_ID
        else f"client {node - FIRST_CLIENT_ID + 1}" if node >= FIRST_CLIENT_ID
        else str(node)
        for node in nodes
    ]  # fmt: skip
    return "{" + ", ".join(words) + "}"
