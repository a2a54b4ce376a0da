"""Rules between nodes: requests of brokers to brokers and to the controller, and their answers.

Owns: this action.  Never: matches requests (faults/rules.py), applies a rule
(runtime/node_gate.py).  Kafka: no counterpart; its tests mock the channel managers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec.structs import replace

from kcluster.actions.base import Action, action
from kcluster.actions.kinds import BROKERS, PARTITION
from kcluster.actions.recording import Recording, these
from kcluster.actions.rules import removal
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import ListOf, OneOf, Whole, duration, fraction, text
from kcluster.events.network import NodeRuleAdded, RuleRemoved
from kcluster.events.rule_effects import AnyEffect, Delay, Drop, Half
from kcluster.faults.node_calls import NODE_APIS
from kcluster.faults.reports import ALL_CALLS
from kcluster.faults.rules import Rule, rule
from kcluster.operations.names import PartitionName
from kcluster.operations.targets import Targets
from kcluster.protocol.apis import APIS

_API: Final = OneOf("API between nodes", tuple(APIS[key].name for key in NODE_APIS))
_HALF: Final = OneOf("half", tuple(Half))


@action(
    "node_rule",
    example="node_rule: {api: AlterPartition, from: leader(orders-0), drop: reply, times: 1}",
)
class AddNodeRule(Action, frozen=True, rename={"sources": "from", "destinations": "to"}):
    """Delay or drop matching requests between nodes, or their answers.  A delayed message holds up
    the later ones of its API over the same link.  Undone by removing the rule, which sends what it
    delays."""

    api: Annotated[
        tuple[str, ...],
        ListOf(_API, "APIs between nodes"),
        "Requests of these APIs; without it of all.  A broker's fetch of metadata is a Fetch of"
        " __cluster_metadata, a client's request that it forwards an Envelope.",
    ] = ()
    sources: Annotated[
        Targets | None, BROKERS, "Requests from these nodes; without it from all."
    ] = None
    destinations: Annotated[
        Targets | None, BROKERS, "Requests to these nodes, or to the controller; without it to all."
    ] = None
    topic: Annotated[str | None, text(), "Requests that name this topic."] = None
    partition: Annotated[PartitionName | None, PARTITION, "Requests that name this partition."] = (
        None
    )
    nth: Annotated[
        int, Whole(0), "Only the nth matching request, counted from 1; 0: every one."
    ] = 0
    every: Annotated[int, Whole(1), "2: only every second matching request."] = 1
    first: Annotated[int, Whole(0), "Only the first matching requests; 0: no limit."] = 0
    times: Annotated[int, Whole(0), "How often the rule applies; 0: no limit."] = 0
    probability: Annotated[float, fraction(), "The share of matching requests, drawn."] = 1.0

    delay_ms: Annotated[int | None, duration(), "Delay the request, or its answer."] = None
    of: Annotated[str | None, _HALF, "What `delay` delays; without it the request."] = None
    jitter_ms: Annotated[int | None, duration(), "How much the delay varies."] = None
    drop: Annotated[str | None, _HALF, "Drop the request, or its answer (reply)."] = None

    def problems(self) -> Iterator[tuple[str, str]]:
        if (self.delay_ms is None) == (self.drop is None):
            yield "delay", "a rule between nodes has one effect: delay or drop"
        if self.delay_ms is None:
            for key, value in (("of", self.of), ("jitter", self.jitter_ms)):
                if value is not None:
                    yield key, f"{key} goes with delay"

    def to_rule(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Rule:
        """The rule."""
        effect: AnyEffect
        if self.delay_ms is not None:
            effect = Delay(self.delay_ms, Half(self.of or Half.REQUEST), self.jitter_ms or 0)
        else:
            effect = Drop(Half(self.drop or Half.REQUEST))
        topic, partition = self.partition or (self.topic, ())
        made = rule(
            api=self.api,
            broker=destinations,
            topic=topic,
            partition=partition,
            nth=self.nth,
            every=self.every,
            first=self.first,
            times=self.times,
            probability=self.probability,
            effect=effect,
        )
        return replace(made, sources=sources)

    def do(self, stage: Stage) -> Undo:
        sources = () if self.sources is None else stage.nodes(self.sources)
        destinations = () if self.destinations is None else stage.nodes(self.destinations)
        return removal(stage, stage.verbs.add_node_rule(self.to_rule(sources, destinations)))

    RECORDED_FROM = (NodeRuleAdded, RuleRemoved)

    @classmethod
    def record(cls, event: NodeRuleAdded | RuleRemoved, recording: Recording) -> None:
        if isinstance(event, RuleRemoved):
            recording.undo(lambda was: isinstance(was, NodeRuleAdded) and was.rule == event.rule)
            return
        topic, calls = event.topic, event.applies_to or ALL_CALLS
        is_of_one = topic is not None and len(event.partitions) == 1
        effect = event.effect
        delay = effect if isinstance(effect, Delay) else None
        is_of_reply = delay is not None and delay.of is Half.REPLY
        step = cls(
            api=event.apis,
            sources=these(event.sources) or None,
            destinations=these(event.destinations) or None,
            topic=None if is_of_one else topic,
            partition=(topic, event.partitions[0]) if is_of_one and topic is not None else None,
            nth=calls.nth,
            every=calls.every,
            first=calls.first,
            times=calls.times,
            probability=calls.probability,
            delay_ms=None if delay is None else delay.delay_ms,
            of=str(Half.REPLY) if is_of_reply else None,
            jitter_ms=None if delay is None else delay.jitter_ms or None,
            drop=str(effect.of) if isinstance(effect, Drop) else None,
        )
        recording.add(step, event)
