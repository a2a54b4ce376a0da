"""Whether what a scenario names is there: topics, partitions, brokers, racks, clients.

Owns: these checks, and those of the clients' settings.  Never: reads YAML (loader.py), resolves a
target (targets.py does, while it runs).

What a step creates counts from then on wherever it is named: a topic, a broker, a name by `as`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kcluster.config.files.problems import nearest, show, unknown
from kcluster.config.files.reading import Reading
from kcluster.config.files.tree import Node, Scalar
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.protocol.names import has_internal_prefix
from kcluster.scenario.actions.admin import AddBroker, AddPartitions, CreateTopic
from kcluster.scenario.language.model import Checks, ConsumerSpec, ProducerSpec, Step, Workload
from kcluster.scenario.language.words import Condition, Target
from kcluster.scenario.play.workload import consumer_plan, consumer_settings, producer_settings


class Names:
    """All that a scenario may name."""

    def __init__(self, topology: Topology, workload: Workload, steps: tuple[Step, ...]) -> None:
        actions = [step.action for step in steps]
        self.topics = {
            name: len(topic.assignment or ()) or topic.partitions
            for name, topic in topology.topics.items()
        }
        for action in actions:
            if isinstance(action, CreateTopic):
                self.topics.setdefault(action.name, action.partitions)
        for action in actions:
            if isinstance(action, AddPartitions) and action.topic in self.topics:
                self.topics[action.topic] = max(self.topics[action.topic], action.to)
        self.brokers = [spec.id for spec in topology.brokers]
        self.brokers += [action.id for action in actions if isinstance(action, AddBroker)]
        self.racks = [spec.rack for spec in topology.brokers if spec.rack]
        self.racks += [x.rack for x in actions if isinstance(x, AddBroker) and x.rack]
        self.clients = [spec.name for spec in workload.producers]
        for spec in workload.consumers:
            self.clients += [spec.name]
            self.clients += [f"{spec.name}-{x}" for x in range(1, spec.members + 1)]
        self.given = [step.options.as_ for step in steps if step.options.as_]
        config = topology.config.get("auto.create.topics.enable", "true")
        self.creates_topics = config == "true"

    def topic_problem(self, topic: str) -> str:
        """Why there can be no such topic; "" if there can."""
        if topic in self.topics or has_internal_prefix(topic):
            return ""
        if self.creates_topics and nearest(topic, self.topics) is None:
            return ""
        return f"{show(topic)}: {unknown('topic', topic, self.topics)}"

    def partition_problem(self, topic: str, partition: int) -> str:
        """Why there can be no such partition; "" if there can."""
        problem = self.topic_problem(topic)
        count = self.topics.get(topic)
        if problem or count is None or partition < count:
            return problem
        plural = "s" if count > 1 else ""
        return f"{topic} has {count} partition{plural}, not one numbered {partition}"

    def target_problems(self, target: Target) -> Iterator[str]:
        """What a target names that cannot be there."""
        for inner in target.inner:
            yield from self.target_problems(inner)
        named = target.argument
        match target.word:
            case "broker" if int(named) not in (*self.brokers, CONTROLLER_ID):
                there = ", ".join(map(str, self.brokers))
                yield f"there is no broker {named}; the brokers are {there}"
            case "rack" if named not in self.racks:
                yield f"rack {named}: {unknown('rack', named, self.racks)}"
            case "client" if not self._may_be_client(named):
                yield f"client {named}: {unknown('client', named, self.clients)}"
            case "name" if named not in (*self.given, *self.clients):
                known = (*self.given, *self.clients)
                yield f"{named}: no step gives this name; {_there(named, known)}"
            case _ if target.partition is not None:
                yield from filter(None, [self.partition_problem(*target.partition)])

    def _may_be_client(self, name: str) -> bool:
        """One of the workload's; or of those from outside, whose ids nobody knows beforehand: then
        it is no slip of one of the workload's."""
        return name in self.clients or "*" in name or nearest(name, self.clients) is None

    def condition_problems(self, condition: Condition) -> Iterator[str]:
        """What a condition names that cannot be there."""
        if condition.partition is not None:
            yield from filter(None, [self.partition_problem(*condition.partition)])
        is_count = condition.word not in ("event", "settled") and condition.partition is None
        if is_count and condition.of and condition.of not in self.clients:
            yield f"{condition.of}: {unknown('client', condition.of, self.clients)}"


def _there(word: str, known: tuple[str, ...]) -> str:
    return unknown("name", word, known) if known else "write `as: name` at the step that means it"


def check_names(
    reading: Reading, top: Mapping[str, Node], topology: Topology, workload: Workload,
    steps: tuple[Step, ...], checks: Checks,
) -> None:  # fmt: skip
    """Every problem with a name goes to the reading, with the place of its step or section."""
    names = Names(topology, workload, steps)
    for at, step in enumerate(steps):
        place = Scalar(None, False, step.place.line, step.place.column)
        for value in (*_values(step.action), *_values(step.trigger)):
            for problem in _problems(names, value):
                reading.wrong(place, f"steps[{at}].{step.verb}", problem)
    for condition in checks.at_end:
        for problem in names.condition_problems(condition):
            reading.wrong(top["checks"], "checks.at_end", problem)
    if "workload" in top:
        for path, problem in _workload_problems(names, topology, workload):
            reading.wrong(top["workload"], f"workload.{path}", problem)


def _values(struct: Struct) -> Iterator[Any]:
    """The targets, conditions and partitions among the fields of a Struct."""
    for field in struct.__struct_fields__:
        value = getattr(struct, field)
        if isinstance(value, tuple) and tuple(map(type, value)) == (str, int):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Target))
        elif isinstance(value, (Target, Condition)):
            yield value


def _problems(names: Names, value: Any) -> Iterator[str]:
    if isinstance(value, Target):
        yield from names.target_problems(value)
    elif isinstance(value, Condition):
        yield from names.condition_problems(value)
    else:
        yield from filter(None, [names.partition_problem(*value)])


def _workload_problems(
    names: Names, topology: Topology, workload: Workload
) -> Iterator[tuple[str, str]]:
    for at, producer in enumerate(workload.producers):
        path = f"producers[{at}]"
        problem = names.topic_problem(producer.topic)
        if not problem and producer.partition is not None:
            problem = names.partition_problem(producer.topic, producer.partition)
        if problem:
            yield f"{path}.topic", problem
        for problem in producer_settings(producer, topology.profile).problems():
            yield path, problem
    for at, consumer in enumerate(workload.consumers):
        path = f"consumers[{at}]"
        for topic in consumer.topics:
            if problem := names.topic_problem(topic):
                yield f"{path}.topics", problem
        for partition in consumer.partitions:
            if problem := names.partition_problem(*partition):
                yield f"{path}.partitions", problem
        settings = consumer_settings(consumer, topology.profile)
        plan = consumer_plan(consumer, settings)
        for problem in (*settings.problems(), *plan.problems(settings)):
            yield path, problem
    seen: set[str] = set()
    clients: list[ProducerSpec | ConsumerSpec] = [*workload.producers, *workload.consumers]
    for spec in clients:
        if spec.name in seen:
            yield "", f"two clients are called {spec.name}"
        seen.add(spec.name)
