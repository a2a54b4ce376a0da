"""Whether everything that a scenario names exists: topics, partitions, brokers, racks, clients.

Owns: these checks, and those of the clients' settings.  Never: reads YAML (loader.py), resolves a
target (targets.py does, while the scenario runs).

A topic, broker or name that any step creates exists for all steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Node, Scalar
from kcluster.config.topology.model import Topology
from kcluster.operations.conditions import Condition
from kcluster.operations.names import Names
from kcluster.operations.targets import Target
from kcluster.scenario.actions.admin import AddBroker, AddPartitions, CreateTopic
from kcluster.scenario.language.model import Checks, ConsumerSpec, ProducerSpec, Step, WorkloadSpec
from kcluster.scenario.play.workload import consumer_plan, consumer_settings, producer_settings


def names_of(topology: Topology, workload: WorkloadSpec, steps: tuple[Step, ...]) -> Names:
    """Everything that a scenario may name.  What any step creates exists for all steps."""
    actions = [step.action for step in steps]
    topics = {
        name: len(topic.assignment or ()) or topic.partitions
        for name, topic in topology.topics.items()
    }
    for action in actions:
        if isinstance(action, CreateTopic):
            topics.setdefault(action.name, action.partitions)
    for action in actions:
        if isinstance(action, AddPartitions) and action.topic in topics:
            topics[action.topic] = max(topics[action.topic], action.to)
    added = [action for action in actions if isinstance(action, AddBroker)]
    racks = [spec.rack for spec in topology.brokers] + [action.rack for action in added]
    clients = [spec.name for spec in workload.producers]
    for spec in workload.consumers:
        clients += [spec.name, *(f"{spec.name}-{x}" for x in range(1, spec.members + 1))]
    return Names(
        topics=topics,
        brokers=[*(spec.id for spec in topology.brokers), *(action.id for action in added)],
        racks=[rack for rack in racks if rack],
        clients=clients,
        from_steps=[step.options.as_ for step in steps if step.options.as_],
        creates_topics=topology.config.get("auto.create.topics.enable", "true") == "true",
    )


def check_names(
    reading: TreeReader,
    top: Mapping[str, Node],
    topology: Topology,
    workload: WorkloadSpec,
    steps: tuple[Step, ...],
    checks: Checks,
) -> None:
    """Report every problem with a name, at the place of its step or section."""
    names = names_of(topology, workload, steps)
    for at, step in enumerate(steps):
        place = Scalar(None, False, step.place.line, step.place.column)
        for value in (*_values(step.action), *_values(step.trigger)):
            for problem in _problems(names, value):
                reading.wrong(place, f"steps[{at}].{step.verb}", problem)
    for condition in checks.at_end:
        for problem in condition.problems(names):
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
    if isinstance(value, (Target, Condition)):
        yield from value.problems(names)
    else:
        yield from filter(None, [names.partition_problem(*value)])


def _workload_problems(
    names: Names, topology: Topology, workload: WorkloadSpec
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
