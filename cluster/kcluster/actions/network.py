"""Actions on the network: partitions, bridges, slow and lossy links, healing.

Owns: these actions.  Never: cuts or shapes a link itself (operations/links.py).
Kafka: iptables and tc, as ducktape's and Jepsen's nemeses use them.

Without `others`, the action is about all other nodes: brokers, the controller, and the workload's
clients.  Shapes then act on all links of `nodes`, including links between two of them; a cut leaves
these as they are.  Live, clients from outside are included only if they are named: `clients`,
`client billing*`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Final

from kcluster.actions.base import Action, action
from kcluster.actions.brokers import KillBrokers
from kcluster.actions.kinds import BROKERS, TARGETS
from kcluster.actions.menu import MenuItem
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import Flag, OneOf, duration, fraction, size
from kcluster.contract import Event
from kcluster.deaths import DeathKind
from kcluster.events.network import NetworkCut, NetworkHealed, NetworkShaped
from kcluster.network.shapes import DISTRIBUTIONS, LinkShape
from kcluster.operations.errors import ClusterError
from kcluster.operations.targets import Targets
from kcluster.operations.verbs import Verbs

Ends = tuple[tuple[int, ...], tuple[int, ...]]
"""The nodes at both ends of links."""

_DISTRIBUTION: Final = OneOf("distribution", DISTRIBUTIONS)


class _BetweenSets(Action, frozen=True):
    """An action on the links between some nodes and others."""

    nodes: Annotated[Targets, TARGETS, "The nodes at one end of the links."]
    others: Annotated[
        Targets | None,
        TARGETS,
        "The nodes at the other end; without it all other nodes: brokers, the controller, the"
        " workload's clients.",
    ] = None
    one_way: Annotated[
        bool, Flag(), "Only messages from `nodes` are affected, not those to them."
    ] = False

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.nodes)

    def ends(self, stage: Stage) -> Ends:
        """The two sets, which have no node in common."""
        others = None if self.others is None else stage.nodes(self.others)
        return stage.verbs.network.ends(stage.nodes(self.nodes), others)


class _Shaping(_BetweenSets, frozen=True):
    """A shape on the links between some nodes and others."""

    def shape(self) -> LinkShape:
        """The effect of the shape on a link."""
        raise AssertionError(f"{type(self).__name__} has no shape")

    def do(self, stage: Stage) -> Undo:
        return _shape(stage, self.nodes, self.others, self.shape(), self.one_way)


def _shape(
    stage: Stage, nodes: Targets, others: Targets | None, shape: LinkShape, one_way: bool
) -> Undo:
    """Shape the links between nodes and others; without `others` all links of the nodes, including
    links between two of them."""
    found, network, links = stage.nodes(nodes), stage.verbs.network, stage.verbs.links
    if others is None and len(found) > 1:
        ends = found, network.all_nodes
    else:
        ends = network.ends(found, None if others is None else stage.nodes(others))
    layers = links.shape(*ends, shape, one_way=one_way)
    return lambda: links.remove_layers(layers)


def _cut(stage: Stage, ends: Ends, one_way: bool = False) -> Undo:
    links = stage.verbs.links
    fresh = links.isolate(*ends, one_way=one_way)
    return lambda: links.heal_links(fresh)


@action("isolate", short="nodes", example="isolate: {nodes: leader(orders-0), others: controller}")
class Isolate(_BetweenSets, frozen=True):
    """Cut nodes off from others, by default from all.  Undone by healing these links."""

    MENU = (
        MenuItem("broker", "Isolate", "{broker}", ("up",)),
        MenuItem("link", "Cut both ways", {"nodes": "{a}", "others": "{b}"}),
        MenuItem(
            "link", "Cut from {a} to {b} only", {"nodes": "{a}", "others": "{b}", "one_way": True}
        ),
        MenuItem(
            "link", "Cut from {b} to {a} only", {"nodes": "{b}", "others": "{a}", "one_way": True}
        ),
    )

    def do(self, stage: Stage) -> Undo:
        return _cut(stage, self.ends(stage), self.one_way)

    RECORDED_FROM = (NetworkCut,)

    @classmethod
    def record(cls, event: NetworkCut, recording: Recording) -> None:
        between = _between(event)
        if between is not None:
            recording.add(cls(*between), event)


@action("bridge", example="bridge: {left: 1, right: 2}")
class Bridge(Action, frozen=True):
    """Cut two sets of nodes off from each other; nodes in neither set reach both."""

    left: Annotated[Targets, TARGETS, "One set of nodes."]
    right: Annotated[Targets, TARGETS, "The other set."]

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.left)

    def do(self, stage: Stage) -> Undo:
        network = stage.verbs.network
        left, right = network.ends(stage.nodes(self.left), stage.nodes(self.right))
        if all(node in left or node in right for node in network.servers):
            raise ClusterError("no node is left to be the bridge; use isolate instead")
        return _cut(stage, (left, right))


@action("slow", example="slow: {nodes: 3, latency: 50ms, jitter: 10ms}")
class Slow(_Shaping, frozen=True):
    """Slow links down.  Without `others`: all links of these nodes, including links between two of
    them.  Undone by taking the added latency away."""

    MENU = (
        MenuItem(
            "broker", "Slow its links (+200 ms)", {"nodes": "{broker}", "latency": "200ms"}, ("up",)
        ),
        MenuItem(
            "link", "Slow down (+200 ms)", {"nodes": "{a}", "others": "{b}", "latency": "200ms"}
        ),
    )

    latency_ms: Annotated[float, duration(), "Latency that is added to each message, one way."] = 0
    jitter_ms: Annotated[float, duration(), "How much the added latency varies."] = 0
    distribution: Annotated[str, _DISTRIBUTION, "How it varies."] = "normal"

    def shape(self) -> LinkShape:
        return _slowness(self.latency_ms, self.jitter_ms, self.distribution)

    RECORDED_FROM = (NetworkShaped,)

    @classmethod
    def record(cls, event: NetworkShaped, recording: Recording) -> None:
        between = _shaped_between(event)
        if between is not None and (event.latency_us or event.jitter_us):
            latency_ms, jitter_ms = event.latency_us / 1000, event.jitter_us / 1000
            varies = event.distribution if event.jitter_us else "normal"
            recording.add(cls(*between, latency_ms, jitter_ms, varies), event)


@action("lose", short="brokers", example="lose: {nodes: 3, share: 5%}")
class Lose(Action, frozen=True):
    """Lose brokers, as when their rack or data centre loses power: `lose: rack b`.  Or, with
    `nodes`, a share of the segments on links, which TCP retransmits with growing delays; without
    `others` on all links of these nodes."""

    brokers: Annotated[
        Targets | None, BROKERS, "The brokers whose machines lose power, all at once."
    ] = None
    nodes: Annotated[Targets | None, TARGETS, "Or: the nodes at one end of lossy links."] = None
    others: Annotated[Targets | None, TARGETS, "The nodes at the other end of these links."] = None
    one_way: Annotated[
        bool, Flag(), "Only messages from `nodes` are affected, not those to them."
    ] = False
    share: Annotated[float, fraction(), "The share of segments that are lost."] = 0.1

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.brokers is None and self.nodes is None:
            yield "brokers", "missing; write lose: rack b for machines, or give the nodes of links"
        elif self.brokers is not None:
            for key in ("nodes", "others"):
                if getattr(self, key) is not None:
                    yield key, "for links; brokers that lose power have none left"
        if self.share >= 1:
            yield "share", "must be less than 1; use isolate to lose all"

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers or self.nodes or ())

    def do(self, stage: Stage) -> Undo:
        if self.brokers is not None:
            return KillBrokers(self.brokers, DeathKind.POWER).do(stage)
        assert self.nodes is not None, "checked by problems()"
        return _shape(stage, self.nodes, self.others, LinkShape(loss=self.share), self.one_way)

    RECORDED_FROM = (NetworkShaped,)

    @classmethod
    def record(cls, event: NetworkShaped, recording: Recording) -> None:
        between = _shaped_between(event)
        if between is not None and event.loss:
            recording.add(cls(None, *between, event.loss), event)


@action("limit_bandwidth", example="limit_bandwidth: {nodes: 3, to: 100KB}")
class LimitBandwidth(_Shaping, frozen=True, rename={"bytes_per_s": "to"}):
    """Limit the bytes per second of each link, in each direction.  Without `others`: all links of
    these nodes."""

    bytes_per_s: Annotated[int, size(1), "Bytes per second of each link."] = 1_000_000

    def shape(self) -> LinkShape:
        return LinkShape(bytes_per_s=self.bytes_per_s)

    RECORDED_FROM = (NetworkShaped,)

    @classmethod
    def record(cls, event: NetworkShaped, recording: Recording) -> None:
        between = _shaped_between(event)
        if between is not None and event.bytes_per_s:
            recording.add(cls(*between, event.bytes_per_s), event)


@action("heal", short="nodes", example="heal: leader(orders-0)")
class Heal(Action, frozen=True):
    """Restore links to their initial state: all links, or the links of some nodes."""

    MENU = (
        MenuItem("broker", "Heal its links", "{broker}", ("up",)),
        MenuItem("link", "Heal all links", None),
    )

    nodes: Annotated[
        Targets | None, TARGETS, "The nodes whose links are restored; without it all."
    ] = None

    others: Annotated[
        Targets | None, TARGETS, "Only the links between `nodes` and these; without it all."
    ] = None

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.nodes is None and self.others is not None:
            yield "others", "needs nodes; without them all links would heal"

    def do(self, stage: Stage) -> None:
        links = stage.verbs.links
        if self.nodes is None:
            links.heal()
            return
        others = (None,) if self.others is None else stage.nodes(self.others)
        for node, other in product(stage.nodes(self.nodes), others):
            links.heal(node, other)

    RECORDED_FROM = (NetworkHealed, NetworkShaped)

    @classmethod
    def record(cls, event: NetworkHealed | NetworkShaped, recording: Recording) -> None:
        """End the step whose fault this event heals; without such a step, add one that heals all
        links at this moment."""
        if isinstance(event, NetworkShaped) and not event.undone:
            return
        kind = NetworkCut if isinstance(event, NetworkHealed) else NetworkShaped

        def is_undone(was: Event) -> bool:
            return isinstance(was, kind) and sorted(was.links) == sorted(event.links)

        if recording.undo(is_undone):
            return
        last = recording.steps[-1] if recording.steps else None
        if last is None or last.at_ms != recording.at_ms or not isinstance(last.action, cls):
            recording.add(cls(), event)

    @classmethod
    def repair(cls, verbs: Verbs) -> Iterator[str]:
        verbs.links.restore_all()
        yield from ()


def _slowness(latency_ms: float, jitter_ms: float, distribution: str) -> LinkShape:
    varies = distribution if jitter_ms else "constant"
    return LinkShape(round(latency_ms * 1000), round(jitter_ms * 1000), varies)


def _shaped_between(event: NetworkShaped) -> tuple[Targets, Targets | None, bool] | None:
    return None if event.of_disk or event.undone else _between(event)


def _between(event: NetworkCut | NetworkShaped) -> tuple[Targets, Targets | None, bool] | None:
    """`nodes`, `others` and `one_way` of the step; None if one side is clients only, which the
    scenario does not have."""
    nodes = [node for node in event.nodes if node not in event.clients]
    others = [node for node in event.others if node not in event.clients]
    if not nodes or not others:
        return None
    are_all_meant = not set(nodes).isdisjoint(others)
    return these(nodes), None if are_all_meant else these(others), event.one_way
