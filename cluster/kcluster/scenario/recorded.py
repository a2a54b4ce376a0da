"""What was done to a cluster, as the text of a scenario file that does it again.

Owns: which events are actions, the steps and the topology made of them.  Never: reads or writes a
file; records what clients did (the file has a load to be replaced).
Kafka: no counterpart.

A step is made from the event that an operation leaves, so it does not matter whether the command
line, Python or an administrator's client asked for it.  An action that was undone as a whole later
is one step with `for`; so are a shutdown and the start after it, which must not come before its
end when the file is played.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeGuard, TypeVar

from msgspec import Struct, field

from kcluster.config.files.durations import in_seconds
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import BrokerSpec, TopicSpec
from kcluster.contract import CONTROLLER_ID, Event, Note
from kcluster.deaths import DeathKind
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerRegistered,
    BrokerResumed,
    BrokerStarted,
    ControlledShutdown,
    ControllerDown,
    ControllerElected,
    DiskFull,
)
from kcluster.events.network import (
    NetworkCut,
    NetworkEvent,
    NetworkHealed,
    NetworkShaped,
    RuleAdded,
    RuleCalls,
    RuleRemoved,
)
from kcluster.events.partitions import LeaderElected, ReassignmentStarted
from kcluster.events.reasons import ElectionKind, Fencing, Requested
from kcluster.events.rule_effects import (
    AnswerError,
    AnyEffect,
    Close,
    Delay,
    Drop,
    Half,
    Reorder,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.events.topics import (
    ConfigChanged,
    PartitionsAdded,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)

E = TypeVar("E", bound=Event)

AFTER_MS: Final = 5_000
"""The scenario goes on for this long after its last step."""


class RecordedStep(Struct):
    """`verb` with its `keys`, `at_ms` after the start.  `for_ms`: when it was undone, after that
    time; None: it was not.  `event`: what it was made from."""

    at_ms: int
    verb: str
    keys: Any
    event: Event
    for_ms: int | None = None


class RecordedClient(Struct):
    """A client of the project's own.  `kind`: producers, consumers or processors; `keys`: those of
    a workload, without its times, which are in ms after the start."""

    kind: str
    keys: dict[str, Any]
    start_ms: int
    stop_ms: int | None = None


class _Steps(Struct):
    """The steps so far."""

    topics: tuple[str, ...]
    brokers: list[int]
    at_ms: int = 0
    steps: list[RecordedStep] = field(default_factory=list)
    halted: dict[int, None] = field(default_factory=dict)
    """Brokers whose next death is part of another step."""
    elected: dict[tuple[int, int], None] = field(default_factory=dict)

    def add(self, verb: str, keys: Any, event: Event) -> None:
        self.steps.append(RecordedStep(self.at_ms, verb, keys, event))

    def undo(self, wanted: Callable[[Event], bool]) -> bool:
        """Give the step made from such an event its end; False if there is none."""
        for step in reversed(self.steps):
            if step.for_ms is None and wanted(step.event):
                step.for_ms = max(1, self.at_ms - step.at_ms)
                return True
        return False


def scenario_of(
    notes: Sequence[Note],
    topology: Topology,
    name: str,
    began_ms: int,
    clients: Sequence[RecordedClient] = (),
) -> str:
    """The text of the scenario.  `began_ms`: when clients could connect; what happened before, the
    cluster does by itself."""
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
    """A scenario file of these steps.  Without clients it has a load that is to be replaced."""
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
    notes: Sequence[Note], topics: tuple[str, ...], began_ms: int, brokers: tuple[int, ...]
) -> list[RecordedStep]:
    """The actions among the events since `began_ms`, in order of time.  `topics` and `brokers`:
    those of the topology."""
    steps = _Steps(topics, list(brokers))
    for note in notes:
        if note.at_ms >= began_ms and not note.event.is_internal:
            steps.at_ms = note.at_ms - began_ms
            _add_step(steps, note.event)
    return steps.steps


def without_auto_created(
    steps: Sequence[RecordedStep], clients: Sequence[RecordedClient]
) -> list[RecordedStep]:
    """The steps but for topics that one of these clients has created by asking for them: it will
    do so again."""
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


def _add_step(steps: _Steps, event: Event) -> None:
    match event:
        case NetworkEvent():
            _add_network_step(steps, event)
        case RuleAdded():
            steps.add("rule", dict(_rule_keys(event)), event)
        case RuleRemoved(rule=rule):
            steps.undo(lambda was: isinstance(was, RuleAdded) and was.rule == rule)
        case TopicCreated(topic=topic) if topic not in steps.topics:
            steps.add("create_topic", _topic_keys(event), event)
        case TopicDeleted(topic=topic):
            steps.add("delete_topic", topic, event)
        case PartitionsAdded(topic=topic, partition_count=count):
            steps.add("add_partitions", {"topic": topic, "to": count}, event)
        case ConfigChanged():
            _add_config_step(steps, event)
        case ReassignmentStarted(replicas=replicas):
            steps.add("reassign", {"partition": event.subject, "to": list(replicas)}, event)
        case LeaderElected(reason=Requested()):
            _add_election_step(steps, event)
        case _:
            _add_process_step(steps, event)


def _add_process_step(steps: _Steps, event: Event) -> None:
    match event:
        case BrokerStarted(broker=broker, restarted=True):
            if not steps.undo(lambda was: _is_halt(was) and was.broker == broker):
                steps.add("start", broker, event)
        case BrokerRegistered(broker=broker, rack=rack) if broker not in steps.brokers:
            steps.brokers.append(broker)
            steps.add("add_broker", {"id": broker} | ({"rack": rack} if rack else {}), event)
        case BrokerFenced(broker=broker, fencing=Fencing.UNREGISTERED):
            steps.add("remove_broker", broker, event)
        case ControllerDown():
            steps.add("kill", "controller", event)
        case ControllerElected():
            steps.add("start", "controller", event)
        case BrokerPaused(broker=broker):
            steps.add("pause", _word(broker), event)
        case BrokerResumed(broker=broker):
            steps.add("resume", _word(broker), event)
        case ControlledShutdown(broker=broker, leaders_to_move=None):
            steps.halted[broker] = None
            steps.add("stop", broker, event)
        case DiskFull(broker=broker):
            steps.halted[broker] = None
            steps.add("fill_disk", broker, event)
        case BrokerDown(broker=broker, how=how, bug=""):
            if broker in steps.halted:
                del steps.halted[broker]
            elif how is DeathKind.CLEAN:
                steps.add("stop", broker, event)
            elif how is DeathKind.KILL:
                steps.add("kill", broker, event)
            else:
                steps.add("kill", {"brokers": broker, "how": str(how)}, event)


def _is_halt(event: Event) -> TypeGuard[ControlledShutdown | DiskFull]:
    """Whether a start later is the end of the step that is made from it."""
    return isinstance(event, ControlledShutdown | DiskFull)


# ------------------------------------------------------------------------------------ network


def _add_network_step(steps: _Steps, event: NetworkEvent) -> None:
    match event:
        case NetworkCut(nodes=nodes, others=others, one_way=one_way):
            keys = _between(event, nodes, others, one_way)
            if keys is not None:
                steps.add("isolate", keys, event)
        case NetworkHealed(links=links):
            _heal(steps, event, links)
        case NetworkShaped(links=links, undone=True):
            _heal(steps, event, links)
        case NetworkShaped():
            for verb, keys in _shapes(event):
                steps.add(verb, keys, event)


def _heal(steps: _Steps, event: NetworkEvent, links: Sequence[tuple[int, int]]) -> None:
    kind = NetworkCut if isinstance(event, NetworkHealed) else NetworkShaped

    def is_undone(was: Event) -> bool:
        return isinstance(was, kind) and sorted(was.links) == sorted(links)

    if steps.undo(is_undone):
        return
    last = steps.steps[-1] if steps.steps else None
    if last is None or (last.verb, last.at_ms) != ("heal", steps.at_ms):
        steps.add("heal", None, event)


def _between(
    event: NetworkEvent, nodes: Sequence[int], others: Sequence[int], one_way: bool
) -> dict[str, Any] | None:
    """The nodes of an action; None if some are clients, which the scenario does not have."""
    if event.clients or any(node in event.clients for node in (*nodes, *others)):
        nodes = [node for node in nodes if node not in event.clients]
        others = [node for node in others if node not in event.clients]
    if not nodes or not others:
        return None
    keys: dict[str, Any] = {"nodes": _words(nodes)}
    if set(nodes).isdisjoint(others):
        keys["others"] = _words(others)  # if not, all links of these nodes are meant
    return keys | ({"one_way": True} if one_way else {})


def _words(nodes: Sequence[int]) -> list[int | str]:
    return [_word(node) for node in nodes]


def _word(node: int) -> int | str:
    return "controller" if node == CONTROLLER_ID else node


def _shapes(event: NetworkShaped) -> Iterator[tuple[str, dict[str, Any]]]:
    if event.of_disk:
        yield "slow_disk", {"brokers": list(event.nodes), **_delays(event)}
        return
    between = _between(event, event.nodes, event.others, event.one_way)
    if between is None:
        return
    if event.latency_us or event.jitter_us:
        more = {"distribution": event.distribution} if event.jitter_us else {}
        yield "slow", {**between, **_delays(event), **more}
    if event.loss:
        yield "lose", {**between, "share": event.loss}
    if event.bytes_per_s:
        yield "limit_bandwidth", {**between, "to": event.bytes_per_s}


def _delays(event: NetworkShaped) -> dict[str, str]:
    delays = {"latency": event.latency_us, "jitter": event.jitter_us}
    return {key: f"{value / 1000:g}ms" for key, value in delays.items() if value}


# -------------------------------------------------------------------------------------- rules


def _rule_keys(event: RuleAdded) -> Iterator[tuple[str, Any]]:
    if event.apis:
        yield "api", list(event.apis)
    if event.client != "*":
        yield "client", event.client
    if event.brokers:
        yield "broker", list(event.brokers)
    if event.topic is not None and len(event.partitions) == 1:
        yield "partition", f"{event.topic}-{event.partitions[0]}"
    elif event.topic is not None:
        yield "topic", event.topic
    if event.applies_to is not None:
        yield from _calls_keys(event.applies_to)
    yield from _effect_keys(event.effect)


def _calls_keys(calls: RuleCalls) -> Iterator[tuple[str, Any]]:
    if calls.versions:
        yield "version", "..".join(map(str, calls.versions))
    yield from ((("nth", calls.nth),) if calls.nth else ())
    yield from ((("every", calls.every),) if calls.every > 1 else ())
    yield from ((("first", calls.first),) if calls.first else ())
    yield from ((("times", calls.times),) if calls.times else ())
    yield from ((("probability", calls.probability),) if calls.probability < 1 else ())


def _effect_keys(effect: AnyEffect) -> Iterator[tuple[str, Any]]:
    match effect:
        case AnswerError(error=error, after=after):
            yield "answer", error
            yield from ((("after", True),) if after else ())
        case Delay(delay_ms=delay_ms, of=of, jitter_ms=jitter_ms):
            yield "delay", f"{delay_ms}ms"
            yield from ((("of", str(of)),) if of is not Half.REQUEST else ())
            yield from ((("jitter", f"{jitter_ms}ms"),) if jitter_ms else ())
        case Drop(of=of, close=close):
            yield "drop", str(of)
            yield from ((("close", True),) if close else ())
        case Close(when=when):
            yield "close", str(when)
        case ThrottleClient(throttle_ms=throttle_ms):
            yield "throttle", f"{throttle_ms}ms"
        case StaleMetadata():
            yield "stale", True
        case Reorder(limit_ms=limit_ms):
            yield "reorder", f"{limit_ms}ms"


# ----------------------------------------------------------------------------- administration


def _topic_keys(event: TopicCreated) -> dict[str, Any]:
    config = {key: value for key, value in event.configs.items() if value is not None}
    keys: dict[str, Any] = {
        "name": event.topic,
        "partitions": event.partition_count,
        "replication_factor": event.replication_factor,
    }
    return keys | ({"config": config} if config else {})


def _add_config_step(steps: _Steps, event: ConfigChanged) -> None:
    config = {key: value for key, value in event.configs.items() if value is not None}
    if not config:
        return
    match event.resource_type:
        case ResourceType.TOPIC:
            steps.add("set_config", {"topics": [event.resource], "config": config}, event)
        case ResourceType.BROKER:
            brokers = int(event.resource) if event.resource else "all"
            steps.add("set_config", {"brokers": brokers, "config": config}, event)


def _add_election_step(steps: _Steps, event: LeaderElected) -> None:
    if event.election is ElectionKind.REQUESTED:
        steps.add("move", {"partition": event.subject, "to": event.new_leader}, event)
        return
    keys: dict[str, Any] = {"partition": event.subject}
    steps.add("elect", keys if event.clean else keys | {"unclean": True}, event)


# ------------------------------------------------------------------------------------ as text


def _step_values(step: RecordedStep) -> dict[str, Any]:
    values: dict[str, Any] = {"at": f"{step.at_ms}ms", step.verb: step.keys}
    return values if step.for_ms is None else values | {"for": f"{step.for_ms}ms"}


def _load(topics: Sequence[str], steps: Sequence[RecordedStep]) -> list[str]:
    """A producer for each topic while it exists: what clients sent is not part of the file."""
    producers: dict[str, dict[str, Any]] = {
        topic: {"topic": topic, "rate": "50/s"} for topic in topics
    }
    for step in steps:
        if step.verb == "create_topic":
            topic = step.keys["name"]
            producers[topic] = {"topic": topic, "rate": "50/s", "start": f"{step.at_ms}ms"}
        elif step.verb == "delete_topic" and step.keys in producers:
            producers[step.keys]["stop"] = f"{step.at_ms}ms"
    comment = "# Clients are not recorded: replace this load by one like theirs."
    shown = _flow(list(producers.values()))
    return [comment, "workload:", f"  producers: {shown}"] if producers else []


def _workload(clients: Sequence[RecordedClient]) -> list[str]:
    """The clients that were started on the cluster."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for client in clients:
        values = client.keys | {"start": f"{client.start_ms}ms"}
        if client.stop_ms is not None and client.kind != "processors":
            values["stop"] = f"{client.stop_ms}ms"
        by_kind.setdefault(client.kind, []).append(values)
    return ["workload:", *(f"  {kind}: {_flow(values)}" for kind, values in by_kind.items())]


def topology_values(topology: Topology) -> dict[str, Any]:
    """A topology as the keys of a file, without what is the default, ports and addresses."""
    network = {
        "default_latency_ms": topology.network.default_latency_ms,
        "links": [
            {"between": list(link.between), "latency_ms": link.latency_ms}
            for link in topology.network.links
        ],
    }
    has_network = topology.network.links or topology.network.default_latency_ms
    values: dict[str, Any] = {
        "profile": topology.profile,
        "features": topology.features,
        "kafka_version": topology.kafka_version,
        "brokers": [_broker_values(broker) for broker in topology.brokers],
        "topics": {name: _topic_values(topic) for name, topic in topology.topics.items()},
        "config": topology.config,
        "network": network if has_network else None,
        "write_back": in_seconds(topology.write_back_ms) if topology.write_back_ms else None,
    }
    return {key: value for key, value in values.items() if value}


def _broker_values(broker: BrokerSpec) -> dict[str, Any]:
    values = {
        "id": broker.id,
        "rack": broker.rack,
        "kafka_version": broker.kafka_version,
        "config": broker.config,
    }
    return {key: value for key, value in values.items() if value or key == "id"}


def _topic_values(topic: TopicSpec) -> dict[str, Any]:
    if topic.assignment is not None:
        values: dict[str, Any] = {"assignment": [list(each) for each in topic.assignment]}
    else:
        values = {"partitions": topic.partitions, "replication_factor": topic.replication_factor}
    return values | ({"config": topic.config} if topic.config else {})


def _flow(value: Any) -> str:
    """A value on one line; JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)
