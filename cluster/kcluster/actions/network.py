"""Actions on the network: partitions, bridges, slow and lossy links, healing.

Owns: these actions.  Never: cuts a link, or refuses to (operations/node_sets.py).
Kafka: iptables and tc, as ducktape's and Jepsen's nemeses use them.

Without `others`, all other nodes are meant: brokers, the controller, and the workload's clients.
Shapes then act on all links of `nodes`, those among them too; a cut leaves these as they are.
Live, clients from outside are included only where they are named: `clients`, `client billing*`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from kcluster.actions.base import Action, Undo, action
from kcluster.actions.brokers import KillBrokers
from kcluster.actions.kinds import BROKERS, TARGETS
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage
from kcluster.config.files.fields import Flag, OneOf, duration, fraction, size
from kcluster.contract import Event
from kcluster.deaths import DeathKind
from kcluster.events.network import NetworkCut, NetworkHealed, NetworkShaped
from kcluster.network.shapes import DISTRIBUTIONS
from kcluster.operations.targets import Targets
from kcluster.operations.verbs import Verbs

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

    def ends(self, stage: Stage) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """The two sets; None for all other nodes."""
        nodes = stage.nodes(self.nodes)
        return nodes, None if self.others is None else stage.nodes(self.others)


@action("isolate", short="nodes", example="isolate: {nodes: leader(orders-0), others: controller}")
class Isolate(_BetweenSets, frozen=True):
    """Cut nodes off from others, by default from all.  Undone by healing these links."""

    def do(self, stage: Stage) -> Undo:
        return stage.verbs.network.isolate(*self.ends(stage), one_way=self.one_way)

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
        return stage.verbs.network.bridge(stage.nodes(self.left), stage.nodes(self.right))


@action("slow", example="slow: {nodes: 3, latency: 50ms, jitter: 10ms}")
class Slow(_BetweenSets, frozen=True):
    """Slow links down.  Without `others`: all links of these nodes, those among them too.  Undone
    by taking the added latency away."""

    latency_ms: Annotated[float, duration(), "Latency that is added to each message, one way."] = 0
    jitter_ms: Annotated[float, duration(), "How much the added latency varies."] = 0
    distribution: Annotated[str, _DISTRIBUTION, "How it varies."] = "normal"

    def do(self, stage: Stage) -> Undo:
        return stage.verbs.network.slow_link(
            *self.ends(stage),
            latency_ms=self.latency_ms,
            jitter_ms=self.jitter_ms,
            distribution=self.distribution,
            one_way=self.one_way,
        )

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

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers or self.nodes or ())

    def do(self, stage: Stage) -> Undo:
        if self.brokers is not None:
            return KillBrokers(self.brokers, DeathKind.POWER).do(stage)
        assert self.nodes is not None, "checked by problems()"
        others = None if self.others is None else stage.nodes(self.others)
        return stage.verbs.network.lose(
            stage.nodes(self.nodes), others, share=self.share, one_way=self.one_way
        )

    RECORDED_FROM = (NetworkShaped,)

    @classmethod
    def record(cls, event: NetworkShaped, recording: Recording) -> None:
        between = _shaped_between(event)
        if between is not None and event.loss:
            recording.add(cls(None, *between, event.loss), event)


@action("limit_bandwidth", example="limit_bandwidth: {nodes: 3, to: 100KB}")
class LimitBandwidth(_BetweenSets, frozen=True):
    """Limit the bytes per second of each link, in each direction.  Without `others`: all links of
    these nodes."""

    to_bytes: Annotated[int, size(1), "Bytes per second of each link."] = 1_000_000

    def do(self, stage: Stage) -> Undo:
        return stage.verbs.network.limit_bandwidth(
            *self.ends(stage), bytes_per_s=self.to_bytes, one_way=self.one_way
        )

    RECORDED_FROM = (NetworkShaped,)

    @classmethod
    def record(cls, event: NetworkShaped, recording: Recording) -> None:
        between = _shaped_between(event)
        if between is not None and event.bytes_per_s:
            recording.add(cls(*between, event.bytes_per_s), event)


@action("heal", short="nodes", example="heal: leader(orders-0)")
class Heal(Action, frozen=True):
    """Restore links to their initial state: all of them, or those of some nodes."""

    nodes: Annotated[
        Targets | None, TARGETS, "The nodes whose links are restored; without it all."
    ] = None

    others: Annotated[
        Targets | None, TARGETS, "Only the links between `nodes` and these; without it all."
    ] = None

    def do(self, stage: Stage) -> None:
        nodes, others = (
            None if targets is None else stage.nodes(targets)
            for targets in (self.nodes, self.others)
        )
        stage.verbs.network.heal(nodes, others)

    RECORDED_FROM = (NetworkHealed, NetworkShaped)

    @classmethod
    def record(cls, event: NetworkHealed | NetworkShaped, recording: Recording) -> None:
        """The end of one step, or a step for all that ends at this moment."""
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
