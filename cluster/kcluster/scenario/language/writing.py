"""A scenario as the text of a file: the same scenario when it is read again.

Owns: the text of a scenario, and of a value in YAML's flow style.  Never: reads a file, decides
what a scenario contains.  Kafka: no counterpart.

A topology is written by its keys.  If these would lose something, such as a password, it is written
as its own file has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, structs

from kcluster.actions.base import Action, written_value
from kcluster.config.files.fields import (
    Kind,
    ListOf,
    MapOf,
    Quantity,
    StructOf,
    duration_text,
    fields_of,
    key_of,
)
from kcluster.config.files.tree import Map, Node, Scalar, from_yaml
from kcluster.config.topology.model import Topology, check_topology
from kcluster.json_types import JsonObject
from kcluster.operations.conditions import Condition
from kcluster.scenario.language.client_configs import ClientConfigs, kafka_name
from kcluster.scenario.language.model import Checks, Step, WorkloadSpec
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.words import TIME_CHECK, CountCheck, MomentRange
from kcluster.scenario.play.nemesis import FaultKind, Profile
from kcluster.scenario.recorded import topology_values

_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./()-]*(?: [A-Za-z0-9_./()-]+)*")
"""The texts that need no quotes in flow style: files are read as text, so `true` is one, too."""
_SOME: Final = CountCheck(">=", 1)
_NULLS: Final = ("null", "Null", "NULL")


def text_of_scenario(scenario: Scenario, comment: str = "") -> str:
    """The text of a scenario file.  `comment`: lines that are put before it, as comments."""
    lines = [
        *(f"# {line}".rstrip() for line in comment.splitlines()),
        f"name: {flow(scenario.name)}",
        *_story(scenario.story),
        "topology:",
        *(f"  {key}: {flow(value)}" for key, value in _topology(scenario).items()),
        *_workload(scenario.workload),
        f"duration: {duration_text(scenario.duration_ms)}",
        *([] if scenario.seed is None else [f"seed: {scenario.seed}"]),
        *([] if scenario.heal else ["heal: false"]),
        *([f"clocks: {flow(list(scenario.clocks))}"] if len(scenario.clocks) == 1 else []),
        *([f"may_edit: {flow(list(scenario.may_edit))}"] if scenario.may_edit else []),
        "steps:" if scenario.steps else "steps: []",
        *(f"  - {flow(step_values(step))}" for step in scenario.steps),
        *_checks(scenario.checks),
    ]
    return "\n".join(lines) + "\n"


def step_values(step: Step) -> dict[str, object]:
    """A step as the keys of a file."""
    return _keys(step.trigger) | {step.verb: _action(step.action)} | _keys(step.options)


def flow(value: object) -> str:
    """A value on one line, in YAML's flow style, with quotes only where they are needed."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(str(k))}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value not in _NULLS:
        return value
    return json.dumps(value, ensure_ascii=False)


def _story(story: str) -> Iterator[str]:
    if story:
        yield "story: |"
        yield from (f"  {line}".rstrip() for line in story.rstrip("\n").splitlines())


def _workload(workload: WorkloadSpec) -> Iterator[str]:
    kinds: dict[str, Iterable[Struct]] = {
        "producers": workload.producers,
        "consumers": workload.consumers,
        "processors": workload.processors,
    }
    if any(kinds.values()):
        yield "workload:"
    for kind, specs in kinds.items():
        if specs:
            yield f"  {kind}:"
            yield from (f"    - {flow(_keys(spec))}" for spec in specs)


def _checks(checks: Checks) -> Iterator[str]:
    values = _keys(checks)
    if values:
        yield "checks:"
        yield from (f"  {key}: {flow(value)}" for key, value in values.items())


# ------------------------------------------------------------------------------------ topology


def _topology(scenario: Scenario) -> JsonObject:
    """The topology by its keys; as its own file has it, if the keys would lose something."""
    topology = scenario.topology
    values = topology_values(topology)
    if _is_same(topology, values):
        return values
    original = _original(scenario)
    return original if original is not None and _is_same(topology, original) else values


def _is_same(topology: Topology, values: JsonObject) -> bool:
    """Whether a file with these values has an equal topology."""
    node, _ = from_yaml(flow(values), "")
    read = None if node is None else check_topology(node, topology.source)[0]
    if read is None:
        return False
    return _comparable(read) == _comparable(topology)


def _comparable(topology: Topology) -> Topology:
    return structs.replace(topology, source="", places={}, name="")


def _original(scenario: Scenario) -> JsonObject | None:
    """The topology as the scenario's text has it; None if the text has none."""
    node, _ = from_yaml(scenario.text, scenario.source)
    entry = node.entries.get("topology") if isinstance(node, Map) else None
    values = None if entry is None else _plain(entry.value)
    return values if isinstance(values, dict) else None


def _plain(node: Node) -> object:
    """The values of a tree, all scalars as text."""
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Map):
        return {key: _plain(entry.value) for key, entry in node.entries.items()}
    return [_plain(each) for each in node.items]


# -------------------------------------------------------------------------------------- values


def _keys(struct: Struct) -> dict[str, object]:
    """The keys of a Struct that differ from their defaults."""
    return {
        field.key: _value(field.kind, value)
        for field in fields_of(type(struct))
        if (value := getattr(struct, field.name)) != field.default and value != {}
    }


def _action(action: Action) -> object:
    """An action without its verb: a single value, or its keys."""
    keys, only = _keys(action), key_of(action.SHORT)
    if list(keys) == [only] and not isinstance(keys[only], dict):
        return keys[only]
    return keys or None


def _value(kind: Kind, value: object) -> object:
    """A value in the form in which a file has it."""
    if isinstance(kind, ClientConfigs) and isinstance(value, dict):
        return {kafka_name(field): each for field, each in value.items()}
    if isinstance(kind, MapOf) and isinstance(value, dict):
        return {key: _value(kind.value, each) for key, each in value.items()}
    if isinstance(kind, ListOf) and isinstance(value, tuple):
        return [_value(kind.item, each) for each in value]
    if isinstance(kind, StructOf) and isinstance(value, Struct):
        return _keys(value)
    if isinstance(value, Profile):
        return _profile(value)
    if isinstance(value, CountCheck):
        return _count(kind, value)
    if isinstance(value, MomentRange | Condition):
        return str(value)
    if isinstance(kind, Quantity) and isinstance(value, int | float) and value == int(value):
        return duration_text(value) if kind.units else int(value)
    return written_value(kind, value)


def _count(kind: Kind, count: CountCheck) -> str:
    if count == _SOME:
        return "some"
    if kind is not TIME_CHECK:
        return str(count)
    return f"{count.number}ms" if count.symbol == "==" else f"{count.symbol} {count.number}ms"


def _profile(profile: Profile) -> dict[str, object]:
    return _keys(profile) | {"kinds": [_kind(kind) for kind in profile.kinds]}


def _kind(kind: FaultKind) -> dict[str, object]:
    values: dict[str, object] = {} if kind.weight == 1 else {"weight": kind.weight}
    values[kind.verb] = _action(kind.action)
    values |= {} if kind.repair is None else {"repair": str(kind.repair)}
    return values | ({} if kind.only_if is None else {"only_if": str(kind.only_if)})
