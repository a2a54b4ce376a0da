"""Reads the parts of scenario files: workload, steps, single actions.

Owns: what a step's entry may say, the names of clients that have none.  Never: runs anything, reads
a file (scenario.py does).  ScenarioError is a ValueError whose text has one line for each problem:
`file:line:column path: what is wrong`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from kcluster.config.files.problems import Place, Problem, join, unknown
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Map, MapEntry, Node, Scalar, from_python, from_yaml
from kcluster.scenario.actions import ACTIONS
from kcluster.scenario.language.fields import fields_of, read_struct
from kcluster.scenario.language.model import (
    ConsumerSpec,
    ProducerSpec,
    Step,
    StepOptions,
    Trigger,
    WorkloadSpec,
)
from kcluster.scenario.language.words import MomentRange

_TRIGGER_KEYS: Final = tuple(field.key for field in fields_of(Trigger))
_OPTION_KEYS: Final = tuple(field.key for field in fields_of(StepOptions))


class ScenarioError(ValueError):
    """A scenario has problems; str() has one line for each, in order of place."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.line, p.column)))
        super().__init__("\n".join(map(str, self.problems)))


# ----------------------------------------------------------------------------------- workload


def read_workload(reading: TreeReader, node: Node | None) -> WorkloadSpec:
    """The workload of a scenario, without the clients that have problems."""
    keys = ("producers", "consumers")
    parts = reading.entries(node, "workload", keys, "part of a workload")
    producers = _specs(reading, parts.get("producers"), "workload.producers", ProducerSpec)
    consumers = _specs(reading, parts.get("consumers"), "workload.consumers", ConsumerSpec)
    return WorkloadSpec(tuple(_named(producers, "producer")), tuple(_named(consumers, "consumer")))


def _specs(reading: TreeReader, node: Node | None, path: str, struct: Any) -> list[Any]:
    if node is None:
        return []
    what = f"setting of a {path.rpartition('.')[2].removesuffix('s')}"
    if isinstance(node, Map):
        found = [read_struct(reading, node, path, struct, what)]
    else:
        items = reading.items(node, path, f"{path.rpartition('.')[2]}")
        found = [
            read_struct(reading, item, join(path, at), struct, what)
            for at, item in enumerate(items)
        ]
    return [spec for spec in found if spec is not None]


def _named(specs: list[Any], word: str) -> list[Any]:
    """Give clients without a name one: producer, or producer-2 of several."""
    many = len(specs) > 1
    return [
        structs.replace(spec, name=spec.name or (f"{word}-{at}" if many else word))
        for at, spec in enumerate(specs, 1)
    ]


# -------------------------------------------------------------------------------------- steps


def read_steps(reading: TreeReader, node: Node | None) -> tuple[Step, ...]:
    """The steps of a scenario, without those that have problems."""
    steps: list[Step] = []
    at = MomentRange(0, 0)
    for index, item in enumerate(reading.items(node, "steps", "steps")):
        step = _step(reading, item, join("steps", index))
        if step is None:
            continue
        steps.append(step)
        if step.trigger.at is None:
            continue
        if step.trigger.at.high_ms < at.low_ms:
            reading.wrong(
                item,
                join("steps", index),
                f"at {step.trigger.at.high_ms} ms comes before the step above it; steps are"
                " played in order",
            )
        at = step.trigger.at
    return tuple(steps)


def _step(reading: TreeReader, node: Node, path: str) -> Step | None:
    if isinstance(node, Scalar) and node.text is not None:
        node = Map({node.text: _bare(node)}, node.line, node.column)
    if not isinstance(node, Map):
        reading.wrong(node, path, f"{kind(node)}; a step is a mapping like {{at: 5s, kill: 1}}")
        return None
    verbs = [key for key in node.entries if key in ACTIONS]
    known = (*_TRIGGER_KEYS, *_OPTION_KEYS, *ACTIONS)
    strange = [key for key in node.entries if key not in known]
    for key in strange:
        text_ = unknown("action or key of a step", key, known)
        reading.wrong(node.entries[key], join(path, key), text_)
    if len(verbs) != 1:
        if not strange:
            what = f"both {verbs[0]} and {verbs[1]}" if verbs else "no action"
            reading.wrong(node, path, f"{what}; a step has one action, such as kill: 1")
        return None
    trigger = read_struct(reading, _part(node, _TRIGGER_KEYS), path, Trigger, "trigger")
    options = read_struct(reading, _part(node, _OPTION_KEYS), path, StepOptions, "option")
    action = _action(reading, node, verbs[0], path)
    if trigger is None or options is None or action is None:
        return None
    if trigger.times is not None and trigger.every is None:
        reading.wrong(node, join(path, "times"), "times needs every, such as every: 5s")
        return None
    return Step(verbs[0], action, trigger, options, Place(node.line, node.column))


def _action(reading: TreeReader, node: Map, verb: str, path: str) -> Any:
    cls = ACTIONS[verb]
    entry = node.entries[verb]
    path = join(path, verb)
    action = read_struct(reading, entry.value, path, cls, f"key of {verb}", cls.SHORT)
    for key, problem in () if action is None else action.problems():
        place = entry.value.entries.get(key, entry) if isinstance(entry.value, Map) else entry
        reading.wrong(place, join(path, key), problem)
    return action


def read_action(node: Node, source: str) -> Step:
    """A single action, as in a step but without a trigger: `{isolate: leader(orders-0), for:
    5s}`."""
    reading = TreeReader(source)
    step = _step(reading, node, "")
    if step is not None and step.trigger != Trigger():
        reading.wrong(
            node, "", "a single action is performed now; it takes no at, after, when, every"
        )
    if reading.problems or step is None:
        raise ScenarioError(reading.problems)
    return step


def action_of(verb: str, short: Any, keys: Mapping[str, Any], undone_after: Any = None) -> Step:
    """A single action from Python values: its one value, or its keys."""
    entries = {verb: MapEntry(from_python(keys or short))}
    if undone_after is not None:
        entries["for"] = MapEntry(from_python(undone_after))
    return read_action(Map(entries), "")


def parse_action(text_: str, source: str = "") -> Step:
    """A single action from YAML text: `isolate: leader(orders-0)`, or `heal`."""
    node, problems = from_yaml(text_, source)
    if node is None or problems:
        raise ScenarioError(problems or [Problem(source, 0, 0, "", "no action")])
    return read_action(node, source)


def _part(node: Map, keys: tuple[str, ...]) -> Map:
    entries = {key: entry for key, entry in node.entries.items() if key in keys}
    return Map(entries, node.line, node.column)


def _bare(node: Scalar) -> MapEntry:
    """A bare word as a step: `- heal`."""
    return MapEntry(Scalar(None, False, node.line, node.column), node.line, node.column)
