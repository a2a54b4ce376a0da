"""The check that everything that a scenario names exists: topics, partitions, brokers, racks,
clients.

Owns: these checks, and the checks of the clients' settings.  Never: reads YAML (loader.py),
resolves a target (operations/targets.py does, while the scenario runs).

A topic, broker or name that any step creates exists for all steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kcluster.actions.admin import AddBroker, AddPartitions, CreateTopic
from kcluster.actions.kinds import BROKERS
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.config.files.fields import fields_of
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Node, Scalar
from kcluster.config.topology.client_access import AccessProblem, find_access
from kcluster.config.topology.model import Topology
from kcluster.operations.conditions import Condition
from kcluster.operations.names import Names
from kcluster.operations.targets import Target
from kcluster.scenario.language.loader import Claims
from kcluster.scenario.language.model import (
    Checks,
    ConsumerSpec,
    ProcessorSpec,
    ProducerSpec,
    Step,
    WorkloadSpec,
)
from kcluster.scenario.play.nemesis import Profile
from kcluster.scenario.play.workload import (
    consumer_plan,
    consumer_settings,
    processor_plans,
    producer_settings,
)


def names_of(
    topology: Topology, workload: WorkloadSpec, steps: tuple[Step, ...], claims: Claims
) -> Names:
    """All names that a scenario may use.  A topic, broker or name that any step creates exists for
    all steps; the names that an invalid part would create count too."""
    actions = [step.action for step in steps]
    topics: dict[str, int | None] = {
        name: len(topic.assignment or ()) or topic.partitions
        for name, topic in topology.topics.items()
    }
    for action in actions:
        if isinstance(action, CreateTopic):
            topics.setdefault(action.name, action.partitions)
    for action in actions:
        if isinstance(action, AddPartitions) and action.topic in topics:
            topics[action.topic] = max(topics[action.topic] or 0, action.to)
    topics |= dict.fromkeys(claims.topics)
    added = [action for action in actions if isinstance(action, AddBroker)]
    racks = [spec.rack for spec in topology.brokers] + [action.rack for action in added]
    clients = [*claims.clients, *(spec.name for spec in workload.producers)]
    readers: list[ConsumerSpec | ProcessorSpec] = [*workload.consumers, *workload.processors]
    for spec in readers:
        clients += [spec.name, *(f"{spec.name}-{x}" for x in range(1, spec.members + 1))]
    return Names(
        topics=topics,
        brokers=[
            *(spec.id for spec in topology.brokers),
            *(action.id for action in added),
            *claims.brokers,
        ],
        racks=[rack for rack in racks if rack],
        clients=clients,
        from_steps=[*(step.options.as_ for step in steps if step.options.as_), *claims.from_steps],
        creates_topics=topology.config.get("auto.create.topics.enable", "true") == "true",
    )


def check_names(
    reading: TreeReader,
    top: Mapping[str, Node],
    topology: Topology,
    workload: WorkloadSpec,
    steps: tuple[Step, ...],
    checks: Checks,
    claims: Claims,
) -> None:
    """Report every problem with a name, at the place of its step or section."""
    names = names_of(topology, workload, steps, claims)
    for step in steps:
        place = Scalar(None, False, step.place.line, step.place.column)
        for problem in _step_problems(names, step):
            reading.wrong(place, f"{step.path}.{step.verb}", problem)
    for condition in checks.at_end:
        for problem in condition.problems(names):
            reading.wrong(top["checks"], "checks.at_end", problem)
    if "workload" in top:
        for path, problem in _workload_problems(names, topology, workload):
            reading.wrong(top["workload"], path, problem)


def _step_problems(names: Names, step: Step) -> Iterator[str]:
    """The problems with the names of one step.  A client's name is a problem where brokers are
    required."""
    yield from _named_problems(names, step.verb, (step.action, step.trigger, step.options))
    for field in fields_of(type(step.action)):
        profile = getattr(step.action, field.name)
        for kind in profile.kinds if isinstance(profile, Profile) else ():
            for problem in _named_problems(names, kind.verb, (kind.action,)):
                yield f"profile.kinds: {kind.verb}: {problem}"


def _named_problems(names: Names, verb: str, parts: tuple[Struct, ...]) -> Iterator[str]:
    for part in parts:
        for field in fields_of(type(part)):
            for value in _values(getattr(part, field.name)):
                if field.kind is BROKERS and isinstance(value, Target):
                    yield from value.problems_as_broker(names, verb)
                else:
                    yield from _problems(names, value)


def _values(value: object) -> Iterator[object]:
    """The targets, conditions and partitions in the value of a field."""
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


def _share_problems(consumer: ConsumerSpec, settings: ConsumerSettings) -> Iterator[str]:
    if consumer.share and not consumer.group:
        yield "share needs group and topics"
    if consumer.release and not consumer.share:
        yield "release needs share: true"
    if consumer.renew and not (consumer.share and settings.acknowledges_each):
        yield "renew needs share: true, and config {share.acknowledgement.mode: explicit}"


def _workload_problems(
    names: Names, topology: Topology, workload: WorkloadSpec
) -> Iterator[tuple[str, str]]:
    for producer in workload.producers:
        path = producer.path
        problem = names.topic_problem(producer.topic)
        if not problem and producer.partition is not None:
            problem = names.partition_problem(producer.topic, producer.partition)
        if problem:
            yield f"{path}.topic", problem
        for problem in producer_settings(producer, topology.profile).problems():
            yield path, problem
        if producer.tombstones and not producer.keys:
            yield f"{path}.tombstones", "a record without a value needs a key: add keys"
    for consumer in workload.consumers:
        path = consumer.path
        for topic in consumer.topics:
            if problem := names.topic_problem(topic):
                yield f"{path}.topics", problem
        for partition in consumer.partitions:
            if problem := names.partition_problem(*partition):
                yield f"{path}.partitions", problem
        settings = consumer_settings(consumer, topology.profile)
        plan = consumer_plan(consumer, settings, topology.profile)
        for problem in (*settings.problems(), *plan.problems(settings)):
            yield path, problem
        for problem in _share_problems(consumer, settings):
            yield path, problem
    for processor in workload.processors:
        for key, name in (("topic", processor.topic), ("to", processor.to)):
            if problem := names.topic_problem(name):
                yield f"{processor.path}.{key}", problem
        reading, writing = processor_plans(processor, processor.name, topology.profile)
        for problem in (*reading[1].problems(), *writing[1].problems()):
            yield processor.path, problem
    seen: set[str] = set()
    clients: list[ProducerSpec | ConsumerSpec | ProcessorSpec] = [
        *workload.producers,
        *workload.consumers,
        *workload.processors,
    ]
    for spec in clients:
        if spec.name in seen:
            yield spec.path, f"two clients are called {spec.name}"
        seen.add(spec.name)
        access = find_access(topology, spec.user, spec.listener)
        if isinstance(access, AccessProblem):
            yield f"{spec.path}.{access.key}" if access.key else spec.path, access.text
