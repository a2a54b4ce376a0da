"""The rules of `kcluster proxy --rules FILE`: `rule` steps, as in a scenario.

Owns: what such a file may have.  Never: applies a rule (proxy/gate.py), knows a rule's keys
(actions/rules.py).  Kafka: no counterpart.

    - rule: {api: Produce, topic: orders, nth: 3, answer: NOT_ENOUGH_REPLICAS}
    - rule: {api: Fetch, client: billing, delay_ms: 200}
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kcluster.actions.rules import AddRule
from kcluster.config.files.problems import Problem
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.source import FileKind
from kcluster.config.files.tree import Items, Node
from kcluster.faults.rules import Rule, RuleError
from kcluster.operations.targets import BrokerTarget
from kcluster.proxy.gate import problem_before_a_cluster
from kcluster.scenario.language.loader import Claims, ScenarioError, read_steps
from kcluster.scenario.language.model import Step, StepOptions, Trigger

RULES_FILE: Final = FileKind("file of rules", ScenarioError, least="- rule: {close: before}")


def read_rules(path: Path) -> list[Rule]:
    """The rules of a file; ScenarioError with every problem and its place."""
    _, node, problems = RULES_FILE.load(path)
    reading = TreeReader(str(path))
    reading.problems += problems
    return rules_of(node, reading)


def rules_of(node: Node, reading: TreeReader) -> list[Rule]:
    """The rules of a list; ScenarioError with every problem."""
    if not isinstance(node, Items):
        reading.wrong(
            node, "", f"{kind(node)}; rules are a list, such as - rule: {{close: before}}"
        )
        raise ScenarioError(reading.problems)
    rules = []
    for step in read_steps(reading, node, Claims()):
        try:
            rules.append(rule_of(step))
        except RuleError as error:
            for line in str(error).splitlines():
                _wrong(reading, step, line)
    if reading.problems:
        raise ScenarioError(
            replace(each, path=each.path.replace("steps", "rules", 1)) for each in reading.problems
        )
    return rules


def rule_of(step: Step) -> Rule:
    """The rule that a step adds; RuleError if the step is another action, or not for a proxy."""
    action = step.action
    if not isinstance(action, AddRule):
        raise RuleError(f"{step.verb} is an action on a cluster; a file of rules has only rule")
    if step.trigger != Trigger() or step.options != StepOptions():
        raise RuleError("a rule of a proxy is in force from the start; it takes no at, for or as")
    brokers = []
    for target in action.broker or ():
        if not isinstance(target, BrokerTarget):
            raise RuleError(
                f"broker: {target.shown} is not known to a proxy; write ids, such as 1,2"
            )
        brokers.append(target.broker_id)
    made = action.to_rule(tuple(brokers), action.client)
    problem = problem_before_a_cluster(made)
    if problem is not None:
        raise RuleError(problem)
    return made


def _wrong(reading: TreeReader, step: Step, text: str) -> None:
    problem = Problem(reading.source, step.place.line, step.place.column, step.path, text)
    reading.problems.append(problem)
