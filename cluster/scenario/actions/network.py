"""What may happen to the network: sets cut off from sets, bridges, slow and lossy links, healing.

Owns: these words.  Never: how it is done (runtime/links.py).
Kafka: iptables and tc, as ducktape's and Jepsen's nemeses use them.

`others` left out means everybody else: brokers, the controller, and the workload's clients.
"""

from __future__ import annotations

from typing import Annotated, Final

from cluster.network.shapes import DISTRIBUTIONS, Shape
from cluster.runtime.links import names
from cluster.runtime.verbs import ClusterError
from cluster.scenario.actions.base import Action, Stage, Undo, action
from cluster.scenario.fields import Flag, OneOf, duration, fraction, size
from cluster.scenario.words import TARGETS, Targets

_DISTRIBUTION: Final = OneOf("distribution", DISTRIBUTIONS)


class _BetweenSets(Action, frozen=True):
    """An action on the links between some nodes and others."""

    nodes: Annotated[Targets, TARGETS]
    others: Annotated[Targets | None, TARGETS] = None
    one_way: Annotated[bool, Flag()] = False
    """Only what `nodes` send is hit, not what they are sent."""

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.nodes)

    def ends(self, stage: Stage) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The two sets; ClusterError if they have a node in common."""
        nodes = stage.nodes(self.nodes)
        if self.others is None:
            others = tuple(node for node in everybody(stage) if node not in nodes)
        else:
            others = stage.nodes(self.others)
        both = [node for node in nodes if node in others]
        if both:
            raise ClusterError(f"{names(both)} cannot be on both sides")
        if not others:
            raise ClusterError("there is nobody else")
        return nodes, others


def everybody(stage: Stage) -> tuple[int, ...]:
    """Brokers, the controller, the workload's clients."""
    return (
        *stage.plan.addresses, stage.verbs.settled.controller_id, *stage.client_ids().values(),
    )  # fmt: skip


@action("isolate", short="nodes")
class Isolate(_BetweenSets, frozen=True):
    """Cut nodes off from others, by default from everybody.  Undone by healing these links."""

    def do(self, stage: Stage) -> Undo:
        nodes, others = self.ends(stage)
        links = stage.verbs.links.isolate(nodes, others, one_way=self.one_way)
        return lambda: stage.verbs.links.mend(links)


@action("bridge")
class Bridge(Action, frozen=True):
    """Cut two sets off from each other; who is in neither reaches both."""

    left: Annotated[Targets, TARGETS]
    right: Annotated[Targets, TARGETS]

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.left)

    def do(self, stage: Stage) -> Undo:
        left, right = stage.nodes(self.left), stage.nodes(self.right)
        if all(node in left or node in right for node in everybody(stage)):
            raise ClusterError("nobody is left to be the bridge; isolate is for that")
        return Isolate(self.left, self.right).do(stage)


@action("slow")
class Slow(_BetweenSets, frozen=True):
    """Make links slow: latency, with jitter by a distribution.  Undone by what they were before."""

    latency_ms: Annotated[float, duration()] = 0
    jitter_ms: Annotated[float, duration()] = 0
    distribution: Annotated[str, _DISTRIBUTION] = "normal"

    def do(self, stage: Stage) -> Undo:
        shape = Shape(
            round(self.latency_ms * 1000), round(self.jitter_ms * 1000),
            self.distribution if self.jitter_ms else "constant",
        )  # fmt: skip
        jitter = f", jitter {self.jitter_ms:g} ms {self.distribution}" if self.jitter_ms else ""
        return _shape(self, stage, shape, f"latency {self.latency_ms:g} ms{jitter}")


@action("lose")
class Lose(_BetweenSets, frozen=True):
    """Lose a share of the segments on links: TCP sends them again, later and later."""

    share: Annotated[float, fraction()] = 0.1

    def do(self, stage: Stage) -> Undo:
        if self.share >= 1:
            raise ClusterError("share: all of it is a cut; use isolate")
        return _shape(self, stage, Shape(loss=self.share), f"{self.share:.0%} lost")


@action("limit_bandwidth")
class LimitBandwidth(_BetweenSets, frozen=True):
    """Let only so many bytes a second over each of these links, each way."""

    to_bytes: Annotated[int, size(1)] = 1_000_000

    def do(self, stage: Stage) -> Undo:
        return _shape(self, stage, Shape(bytes_per_s=self.to_bytes), f"{self.to_bytes:,} bytes/s")


def _shape(act: _BetweenSets, stage: Stage, shape: Shape, what: str) -> Undo:
    nodes, others = act.ends(stage)
    before = stage.verbs.links.shape(nodes, others, shape, what, one_way=act.one_way)
    return lambda: stage.verbs.links.reshape(before)


@action("heal", short="nodes")
class Heal(Action, frozen=True):
    """Make every cut link whole again, or those of some nodes."""

    nodes: Annotated[Targets | None, TARGETS] = None

    def do(self, stage: Stage) -> None:
        if self.nodes is None:
            stage.verbs.links.heal()
            return
        for node in stage.nodes(self.nodes):
            stage.verbs.links.heal(node)
