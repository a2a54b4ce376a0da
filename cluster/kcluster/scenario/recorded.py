"""The text of a scenario file that repeats the operations on a cluster.

Owns: the text, with its topology and its load.  Never: decides which operation becomes a step (each
action does, in actions/), reads or writes a file.
Kafka: no counterpart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from kcluster.actions.admin import CreateTopic, DeleteTopic
from kcluster.actions.base import Action
from kcluster.actions.recording import RecordedStep, Recording
from kcluster.config.files.durations import in_seconds
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import BrokerSpec, SecuritySpec, TopicSpec
from kcluster.contract import Event, Note
from kcluster.events.topics import TopicCreated
from kcluster.json_types import JsonObject
from kcluster.scenario.actions import ACTIONS
from kcluster.security.acls import WILDCARD, Acl, AclResource, PatternType

AFTER_MS: Final = 5_000
"""The time for which the scenario continues after its last step."""


class RecordedClient(Struct):
    """A client of the project's own.  `kind`: producers, consumers or processors; `keys`: the keys
    of a workload, except its times, which are separate fields in ms after the start."""

    kind: str
    keys: JsonObject
    start_ms: int
    stop_ms: int | None = None


def scenario_of(
    notes: Sequence[Note],
    topology: Topology,
    name: str,
    began_ms: int,
    clients: Sequence[RecordedClient] = (),
) -> str:
    """The text of the scenario.  `began_ms`: the time at which clients could connect; the cluster
    repeats earlier events by itself."""
    brokers = tuple(broker.id for broker in topology.brokers)
    steps = without_auto_created(
        steps_of(notes, tuple(topology.topics), began_ms, brokers), clients
    )
    ends_ms = [step.at_ms + (step.for_ms or 0) for step in steps]
    ends_ms += [client.stop_ms or client.start_ms for client in clients]
    return scenario_text(name, topology, steps, clients, max(ends_ms, default=0) + AFTER_MS)


def scenario_text(
    name: str,
    topology: Topology,
    steps: Sequence[RecordedStep],
    clients: Sequence[RecordedClient],
    duration_ms: int,
) -> str:
    """A scenario file of these steps.  Without clients it has a placeholder load, which the user
    replaces."""
    lines = [
        f"name: {json.dumps(name)}",
        "story: Recorded from a live cluster.",
        "topology:",
        *(f"  {key}: {_flow(value)}" for key, value in topology_values(topology).items()),
        *(_workload(clients) if clients else _load(tuple(topology.topics), steps)),
        f"duration: {duration_ms}ms",
        "steps:" if steps else "steps: []",
        *(f"  - {_flow(_step_values(step))}" for step in steps),
    ]
    return "\n".join(lines) + "\n"


def steps_of(
    notes: Iterable[Note], topics: Sequence[str], began_ms: int, brokers: Sequence[int]
) -> list[RecordedStep]:
    """The actions among the events since `began_ms`, in order of time.  `topics` and `brokers`: the
    topology's."""
    recording = Recording(topics, brokers)
    readers: dict[type[Event], list[type[Action]]] = {}
    for action in ACTIONS.values():
        for event in action.RECORDED_FROM:
            readers.setdefault(event, []).append(action)
    for note in notes:
        if note.at_ms >= began_ms and not note.event.is_internal:
            recording.at_ms = note.at_ms - began_ms
            for action in readers.get(type(note.event), ()):
                action.record(note.event, recording)
    return recording.steps


def without_auto_created(
    steps: Sequence[RecordedStep], clients: Sequence[RecordedClient]
) -> list[RecordedStep]:
    """The actions, without the topics that one of these clients has created by requesting them: the
    client will create them again."""
    return [
        step
        for step in steps
        if not (
            isinstance(step.event, TopicCreated)
            and any(_asks_for(client, step.event.topic, step.at_ms) for client in clients)
        )
    ]


def _asks_for(client: RecordedClient, topic: str, at_ms: int) -> bool:
    if not client.start_ms <= at_ms <= (at_ms if client.stop_ms is None else client.stop_ms):
        return False
    named = [client.keys.get(key, ()) for key in ("topic", "topics", "to")]
    return any(topic == each or (not isinstance(each, str) and topic in each) for each in named)


# ------------------------------------------------------------------------------------ as text


def _step_values(step: RecordedStep) -> dict[str, object]:
    values: dict[str, object] = {"at": f"{step.at_ms}ms", step.verb: step.keys}
    return values if step.for_ms is None else values | {"for": f"{step.for_ms}ms"}


def _load(topics: Sequence[str], steps: Sequence[RecordedStep]) -> list[str]:
    """A producer for each topic while it exists: the file does not have the records of outside
    clients."""
    producers: dict[str, dict[str, object]] = {
        topic: {"topic": topic, "rate": "50/s"} for topic in topics
    }
    for step in steps:
        if isinstance(step.action, CreateTopic):
            topic = step.action.name
            producers[topic] = {"topic": topic, "rate": "50/s", "start": f"{step.at_ms}ms"}
        elif isinstance(step.action, DeleteTopic) and step.action.name in producers:
            producers[step.action.name]["stop"] = f"{step.at_ms}ms"
    comment = "# Clients are not recorded: replace this load by one like theirs."
    shown = _flow(list(producers.values()))
    return [comment, "workload:", f"  producers: {shown}"] if producers else []


def _workload(clients: Sequence[RecordedClient]) -> list[str]:
    """The clients that were started on the cluster."""
    by_kind: dict[str, list[dict[str, object]]] = {}
    for client in clients:
        values = client.keys | {"start": f"{client.start_ms}ms"}
        if client.stop_ms is not None and client.kind != "processors":
            values["stop"] = f"{client.stop_ms}ms"
        by_kind.setdefault(client.kind, []).append(values)
    return ["workload:", *(f"  {kind}: {_flow(values)}" for kind, values in by_kind.items())]


def topology_values(topology: Topology) -> JsonObject:
    """A topology as the keys of a file, without defaults, ports, addresses, listeners and
    passwords."""
    topology = topology.without_secrets()
    network = {
        "default_latency_ms": topology.network.default_latency_ms,
        "links": [
            {"between": list(link.between), "latency_ms": link.latency_ms}
            for link in topology.network.links
        ],
    }
    has_network = topology.network.links or topology.network.default_latency_ms
    values: dict[str, object] = {
        "profile": topology.profile,
        "features": topology.features,
        "kafka_version": topology.kafka_version,
        "era": list(topology.era),
        "brokers": [_broker_values(broker) for broker in topology.brokers],
        "topics": {name: _topic_values(topic) for name, topic in topology.topics.items()},
        "config": topology.config,
        "security": _security_values(topology.security),
        "network": network if has_network else None,
        "write_back": in_seconds(topology.write_back_ms) if topology.write_back_ms else None,
    }
    return {key: value for key, value in values.items() if value}


def _security_values(security: SecuritySpec) -> dict[str, object]:
    """Certificates and ACLs; the authorizer is among the configs."""
    values: dict[str, object] = {"tls": "auto"} if security.makes_certificates else {}
    acls = [_acl_values(acl) for acl in security.authorization.acls]
    return values | ({"acls": acls} if acls else {})


def _acl_values(acl: Acl) -> dict[str, object]:
    is_prefix = acl.pattern_type is PatternType.PREFIXED
    name: object = f"{acl.resource_name}*" if is_prefix else acl.resource_name
    values: dict[str, object] = {
        acl.permission.value: acl.principal,
        "to": acl.operation.value,
        acl.resource_type.value: True if acl.resource_type is AclResource.CLUSTER else name,
    }
    return values if acl.host == WILDCARD else values | {"from": acl.host}


def _broker_values(broker: BrokerSpec) -> dict[str, object]:
    values = {
        "id": broker.id,
        "rack": broker.rack,
        "kafka_version": broker.kafka_version,
        "listeners": {one.name: {"protocol": one.protocol.name} for one in broker.listeners},
        "config": broker.config,
    }
    return {key: value for key, value in values.items() if value or key == "id"}


def _topic_values(topic: TopicSpec) -> dict[str, object]:
    if topic.assignment is not None:
        values: dict[str, object] = {"assignment": [list(each) for each in topic.assignment]}
    else:
        values = {"partitions": topic.partitions, "replication_factor": topic.replication_factor}
    return values | ({"config": topic.config} if topic.config else {})


def _flow(value: object) -> str:
    """A value on one line, as JSON, which is also YAML."""
    return json.dumps(value, ensure_ascii=False)
