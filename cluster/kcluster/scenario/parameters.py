"""The parameters that a past can be played again with, and a scenario with other values of them.

Owns: which parameters there are, their present values and ranges, putting values into a scenario.
Never: plays a scenario (play/past.py does).  Kafka: broker.session.timeout.ms, acks and
min.insync.replicas; the latency of links has no counterpart.

A value holds from the start of the past, not only from a moment on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.actions.admin import CreateTopic, SetConfig
from kcluster.clients.ledger import Partition
from kcluster.clients.producer.settings import ACKS_ALL
from kcluster.config.files.problems import Problem, show, unknown
from kcluster.config.kafka.broker import BrokerConfig
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import NetworkSpec, TopicSpec
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.model import ProducerSpec, Step
from kcluster.scenario.language.scenario import Scenario

SESSION: Final = "broker.session.timeout.ms"
ACKS: Final = "acks"
MIN_ISR: Final = "min.insync.replicas"
LATENCY: Final = "latency"

ALL: Final = "all"
MAX_LATENCY_MS: Final = 200
LATENCY_STEP_MS: Final = 5
LATENCIES_IN_SESSION: Final = 9
"""A broker needs several messages in turn to register and to be unfenced within a session."""
STEPS_TO_VALUE: Final = 18
"""The least number of steps from 0 to the session timeout's present value."""

Value = int | str
Values = Mapping[str, Value]
"""Other values, by the names of their parameters."""


class Parameter(Struct, frozen=True):
    """A parameter of the past of a partition.

    `value`: its value in the past; None if clients differ.  `choices`: the values that it may have;
    if there are none, it is a whole number from `least` to `most`, and `step` is a sensible
    distance of two values.  `unit`: of the number.  `reason`: why `least` and `most` are the
    bounds."""

    name: str
    value: Value | None
    least: int = 0
    most: int = 0
    step: int = 1
    unit: str = ""
    choices: tuple[str, ...] = ()
    reason: str = ""

    def problem(self, value: object) -> str:
        """The reason why it cannot have a value; "" if it can."""
        if self.choices:
            if value in self.choices:
                return ""
            return f"{show(value)} is not one of {', '.join(self.choices)}"
        unit = f" {self.unit}" if self.unit else ""
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and value in range(self.least, self.most + 1):
            return ""
        bounds = f"a whole number from {self.least} to {self.most}{unit}"
        reason = f" ({self.reason})" if self.reason else ""
        return f"{show(value)} is not {bounds}{reason}"


def parameters_of(scenario: Scenario, partition: Partition) -> list[Parameter]:
    """The parameters that a partition's past can have other values of."""
    return list(_parameters(scenario, partition))


def _parameters(scenario: Scenario, partition: Partition) -> Iterator[Parameter]:
    topology = scenario.topology
    yield _session_timeout(topology)
    found = {_acks_of(spec) for spec in _producers(scenario, partition)}
    if found:
        choices = (ALL,) if _has_transactions(scenario, partition) else ("0", "1", ALL)
        yield Parameter(ACKS, found.pop() if len(found) == 1 else None, choices=choices)
    topic = _topic(scenario, partition)
    if topic is not None:
        replicas = _replica_count(topic, topology, partition)
        present = topic.config.get(MIN_ISR) or _config(topology).min_insync_replicas
        reason = f"{_named(partition)} has {replicas} replicas"
        yield Parameter(MIN_ISR, int(present), least=1, most=replicas, reason=reason)
    session_ms = _config(topology).broker_session_timeout_ms
    most_ms = max(1, min(MAX_LATENCY_MS, session_ms // LATENCIES_IN_SESSION))
    yield Parameter(
        LATENCY,
        round(topology.network.default_latency_ms),
        most=most_ms,
        step=LATENCY_STEP_MS if most_ms == MAX_LATENCY_MS else 1,
        unit="ms",
        reason=f"a broker must reach the controller within {SESSION}={session_ms}",
    )


def _session_timeout(topology: Topology) -> Parameter:
    config = _config(topology)
    present, beat_ms = config.broker_session_timeout_ms, config.broker_heartbeat_interval_ms
    step = 1
    for unit in (10, 50, 100, 500, 1_000, 5_000):
        if unit * STEPS_TO_VALUE <= present:
            step = unit
    return Parameter(
        SESSION,
        present,
        least=present - max(0, present - beat_ms - 1) // step * step,
        most=2 * present,
        step=step,
        unit="ms",
        reason=f"brokers send a heartbeat every {beat_ms} ms",
    )


# ------------------------------------------------------------------------------- other values


def with_values(scenario: Scenario, partition: Partition, values: Values) -> Scenario:
    """The scenario with these values from its start.  ScenarioError with every wrong value."""
    known = {each.name: each for each in parameters_of(scenario, partition)}
    problems = []
    for name, value in values.items():
        text = (
            known[name].problem(value)
            if name in known
            else f"{_named(partition)}: {unknown('parameter', name, known)}"
        )
        if text:
            problems.append(Problem("", 0, 0, name, text))
    if problems:
        raise ScenarioError(problems)
    for name, value in values.items():
        match name:
            case "broker.session.timeout.ms":
                scenario = _with_session(scenario, str(value))
            case "acks":
                scenario = _with_acks(scenario, partition, str(value))
            case "min.insync.replicas":
                scenario = _with_min_isr(scenario, partition, str(value))
            case _:
                network = NetworkSpec(default_latency_ms=float(value))
                topology = replace(scenario.topology, network=network)
                scenario = replace(scenario, topology=topology)
    return scenario


def notes_on(scenario: Scenario, partition: Partition, values: Values) -> Iterator[str]:
    """What a value does not reach, or changes besides, one line each."""
    for step in scenario.steps:
        match step.action:
            case SetConfig(config={"min.insync.replicas": text}, topics=topics):
                if MIN_ISR in values and partition[0] in topics:
                    yield f"a step of the past sets {MIN_ISR} again: {text}"
    if values.get(ACKS, ALL) != ALL:
        for spec in _producers(scenario, partition):
            if _is_idempotent(spec):
                yield f"{spec.name} is not idempotent then: that needs acks=all"
    if LATENCY in values and scenario.topology.network.links:
        yield "the latency is that of all links, also of links with one of their own"


def _with_session(scenario: Scenario, value: str) -> Scenario:
    topology = scenario.topology
    brokers = tuple(
        replace(one, config={key: text for key, text in one.config.items() if key != SESSION})
        for one in topology.brokers
    )
    config = topology.config | {SESSION: value}
    return replace(scenario, topology=replace(topology, config=config, brokers=brokers))


def _with_acks(scenario: Scenario, partition: Partition, acks: str) -> Scenario:
    def changed(spec: ProducerSpec) -> ProducerSpec:
        if spec.topic != partition[0]:
            return spec
        config = {key: value for key, value in spec.config.items() if key != "acks"}
        if acks == ALL:
            return replace(spec, acks=acks, config=config)
        config.pop("enable_idempotence", None)
        return replace(spec, acks=acks, config=config, idempotent=None)

    workload = scenario.workload
    producers = tuple(map(changed, workload.producers))
    return replace(scenario, workload=replace(workload, producers=producers))


def _with_min_isr(scenario: Scenario, partition: Partition, value: str) -> Scenario:
    topic, changed = partition[0], {MIN_ISR: value}
    topology = scenario.topology
    spec = topology.topics.get(topic)
    if spec is not None:
        topics = topology.topics | {topic: replace(spec, config=spec.config | changed)}
        scenario = replace(scenario, topology=replace(topology, topics=topics))

    def created(step: Step) -> Step:
        action = step.action
        if not isinstance(action, CreateTopic) or action.name != topic:
            return step
        return replace(step, action=replace(action, config=action.config | changed))

    return replace(scenario, steps=tuple(map(created, scenario.steps)))


# ------------------------------------------------------------------------------------- lookups


def _config(topology: Topology) -> BrokerConfig:
    return topology.broker_config(topology.brokers[0].id)


def _producers(scenario: Scenario, partition: Partition) -> list[ProducerSpec]:
    return [spec for spec in scenario.workload.producers if spec.topic == partition[0]]


def _has_transactions(scenario: Scenario, partition: Partition) -> bool:
    """Whether a producer of the partition has transactions, which need acks=all."""
    return any(
        spec.transactions is not None or "transactional_id" in spec.config
        for spec in _producers(scenario, partition)
    )


def _acks_of(spec: ProducerSpec) -> str:
    acks = str(spec.config.get("acks", spec.acks))
    return ALL if acks == str(ACKS_ALL) else acks


def _is_idempotent(spec: ProducerSpec) -> bool:
    """Whether a producer's keys ask for idempotence."""
    return bool(spec.idempotent or spec.config.get("enable_idempotence"))


def _topic(scenario: Scenario, partition: Partition) -> TopicSpec | CreateTopic | None:
    """The topic of the topology, or the step that creates it; None if a client creates it."""
    name = partition[0]
    created = (
        step.action
        for step in scenario.steps
        if isinstance(step.action, CreateTopic) and step.action.name == name
    )
    return scenario.topology.topics.get(name) or next(created, None)


def _replica_count(topic: TopicSpec | CreateTopic, topology: Topology, partition: Partition) -> int:
    if isinstance(topic, TopicSpec) and topic.assignment is not None:
        return len(topic.assignment[min(partition[1], len(topic.assignment) - 1)])
    factor = topic.replication_factor
    return factor if factor and factor > 0 else _config(topology).default_replication_factor


def _named(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
