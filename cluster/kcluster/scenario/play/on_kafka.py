"""Which steps of a scenario cannot be played on a real Kafka, known before anything starts.

Owns: the limit that each action meets.  Never: knows this machine: without root, cuts are refused
when they are played.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kcluster.actions.admin import AddBroker
from kcluster.actions.base import Action
from kcluster.actions.brokers import KillBrokers, StartBrokers
from kcluster.actions.certificates import Certificate
from kcluster.actions.machines import FillDisk, Restart, RollingRestart, SlowDisk
from kcluster.actions.node_rules import AddNodeRule
from kcluster.actions.rules import AddRule
from kcluster.actions.sessions import EndSessionsNow, ExpireToken
from kcluster.config.files.problems import Problem
from kcluster.deaths import DeathKind
from kcluster.mirror import limits
from kcluster.mirror.changes import SEEN_KINDS
from kcluster.mirror.limits import KafkaLimit
from kcluster.mirror.passing import why_no_proxy
from kcluster.operations.conditions import EventCondition, MomentCondition
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.scenario import Scenario


class RefusedStep(Struct, frozen=True):
    """A step of the scenario file `source` that a real Kafka does not allow."""

    source: str
    step: Step
    limit: KafkaLimit

    def __str__(self) -> str:
        place = self.step.place
        return str(Problem(self.source, place.line, place.column, self.step.path, self.limit.text))


def refused_steps(scenario: Scenario) -> Iterator[RefusedStep]:
    """The steps of a scenario that cannot be played on a real Kafka."""
    no_proxy = why_no_proxy(scenario.topology)
    for step in scenario.steps:
        limit = limit_of(step.action)
        if no_proxy is not None and isinstance(step.action, AddRule):
            limit = limits.no_rule(no_proxy)
        awaited = step.trigger.when
        if isinstance(awaited, EventCondition) and awaited.kind not in SEEN_KINDS:
            limit = limits.UNSEEN_EVENT
        if isinstance(awaited, MomentCondition) and awaited.moment.is_inside:
            limit = limits.UNSEEN_EVENT
        if limit is not None:
            yield RefusedStep(scenario.source, step, limit)


def limit_of(action: Action) -> KafkaLimit | None:
    """The limit that an action meets on a real Kafka; None if it can be performed."""
    match action:
        case KillBrokers(how=DeathKind.POWER) | Restart(how=DeathKind.POWER):
            return limits.POWER_LOSS
        case RollingRestart(how=DeathKind.POWER):
            return limits.POWER_LOSS
        case Restart(new_address=True):
            return limits.NEW_ADDRESS
        case StartBrokers(kafka_version=str()):
            return limits.UPGRADE
    return _LIMITS.get(type(action))


_LIMITS: dict[type[Action], KafkaLimit] = {
    AddBroker: limits.NEW_BROKER,
    AddNodeRule: limits.NODE_RULE,
    Certificate: limits.CERTIFICATE,
    EndSessionsNow: limits.SESSIONS,
    ExpireToken: limits.TOKENS,
    FillDisk: limits.FULL_DISK,
    SlowDisk: limits.SLOW_DISK,
}
