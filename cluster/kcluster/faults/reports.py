"""What is reported of rules: the events of their additions and hits, and their status.

Owns: these values.  Never: counts (faults/rules.py does), makes words (events/words/).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.contract import Request
from kcluster.events.network import NodeRuleAdded, NodeRuleHit, RuleAdded, RuleCalls, RuleHit
from kcluster.events.rule_effects import AnyEffect
from kcluster.faults.rules import ActiveRule, Call, Rule, RuleBook
from kcluster.protocol.apis import APIS

MAX_HITS: Final = 20
"""The most hits of a rule that get their own events; later hits are counted, and reported when the
rule is removed."""


class RuleStatus(Struct, frozen=True):
    """A rule in force.  `calls`: the number of requests that it matched; `hits`: the number of
    calls to which it applied."""

    name: str
    effect: AnyEffect
    calls: int
    hits: int


def status(book: RuleBook) -> tuple[RuleStatus, ...]:
    """The rules in force, in their order."""
    return tuple(
        RuleStatus(name, entry.rule.effect, entry.calls, entry.hits)
        for name, entry in book.entries.items()
    )


ALL_CALLS: Final = RuleCalls((), 0, 1, 0, 0, 1.0)
"""The choice of all requests that a rule matches."""


def added(name: str, rule: Rule) -> RuleAdded:
    """The event of a rule's addition: the requests that the rule matches, and its effect."""
    return RuleAdded(
        rule=name,
        effect=rule.effect,
        apis=tuple(APIS[key].name for key in rule.apis),
        topic=(rule.topic or "*") if rule.picks_partitions else None,
        partitions=tuple(rule.partitions) if rule.picks_partitions else (),
        client=rule.client,
        brokers=tuple(rule.brokers),
        applies_to=_applies_to(rule),
    )


def node_rule_added(name: str, rule: Rule) -> NodeRuleAdded:
    """The event of the addition of a rule between nodes."""
    return NodeRuleAdded(
        rule=name,
        effect=rule.effect,
        apis=tuple(APIS[key].name for key in rule.apis),
        topic=(rule.topic or "*") if rule.picks_partitions else None,
        partitions=tuple(rule.partitions) if rule.picks_partitions else (),
        sources=rule.sources,
        destinations=rule.brokers,
        applies_to=_applies_to(rule),
    )


def _applies_to(rule: Rule) -> RuleCalls | None:
    """The choice among the requests that a rule matches; None: all of them."""
    calls = RuleCalls(
        tuple(rule.versions or ()), rule.nth, rule.every, rule.first, rule.times, rule.probability
    )
    return None if calls == ALL_CALLS else calls


def hit(name: str, entry: ActiveRule, broker: int, request: Request) -> RuleHit | None:
    """The event of a rule's last hit; None if the rule has had too many."""
    if entry.hits > MAX_HITS:
        return None
    return RuleHit(
        rule=name,
        broker=broker,
        api=APIS[request.api_key].name,
        client_id=request.client_id or "",
        connection_id=request.connection_id,
        correlation_id=request.correlation_id,
        effect=entry.rule.effect,
        hit=entry.hits,
        is_last_noted=entry.hits == MAX_HITS,
    )


def node_rule_hit(name: str, entry: ActiveRule, call: Call) -> NodeRuleHit | None:
    """The event of the last hit of a rule between nodes; None if the rule has had too many."""
    if entry.hits > MAX_HITS:
        return None
    return NodeRuleHit(
        rule=name,
        source=call.source,
        destination=call.broker,
        api=APIS[call.api_key].name,
        effect=entry.rule.effect,
        hit=entry.hits,
        is_last_noted=entry.hits == MAX_HITS,
    )
