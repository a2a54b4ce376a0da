"""Reads the parts of scenario files: workload, steps, single actions.

Owns: the allowed entries of a step, and default names of clients.  Never: runs anything, reads a
file (scenario.py does).  ScenarioError is a ValueError whose text has one line for each problem:
`file:line:column path: what is wrong`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from kcluster.config.files.fields import fields_of, read_struct
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import (
    Place,
    Problem,
    ProblemsError,
    join,
    nearest,
    show,
    unknown,
)
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Map, MapEntry, Node, Scalar, from_python, from_yaml
from kcluster.scenario.actions import ACTIONS
from kcluster.scenario.language.model import (
    ConsumerSpec,
    ProcessorSpec,
    ProducerSpec,
    Step,
    StepOptions,
    Trigger,
    WorkloadSpec,
)
from kcluster.scenario.language.words import MomentRange

_TRIGGER_KEYS: Final = tuple(field.key for field in fields_of(Trigger))
_OPTION_KEYS: Final = tuple(field.key for field in fields_of(StepOptions))


class ScenarioError(ProblemsError):
    """The error for a scenario, lesson or exercise that has problems."""


def one_line(error: ScenarioError) -> str:
    """The problems of a single action that is in no file, on one line: each with its path."""
    return "; ".join(f"{p.path}: {p.text}" if p.path else p.text for p in error.problems)


class Claims(Struct):
    """The names that invalid parts of a file would define if they were valid.  A use of such a name
    is not reported as a further problem."""

    clients: list[str] = []
    topics: list[str] = []
    brokers: list[int] = []
    from_steps: list[str] = []

    def add_step(self, node: Node) -> None:
        """Add the names that a step would define: brokers by `as`, a topic, a new broker."""
        entries = node.entries if isinstance(node, Map) else {}
        self.from_steps += filter(None, [text_of(node, "as")])
        if "create_topic" in entries:
            topic = entries["create_topic"].value
            self.topics += filter(None, [_short_or(topic, "name")])
        if "add_broker" in entries:
            broker = whole_number(_short_or(entries["add_broker"].value, "id") or "")
            self.brokers += [] if broker is None else [broker]


def _short_or(node: Node, key: str) -> str | None:
    """The text of an action's only value, or of the key that is the action's short form."""
    return node.text if isinstance(node, Scalar) else text_of(node, key)


def text_of(node: Node, key: str) -> str | None:
    """The text of a mapping's entry; None if there is none."""
    entry = node.entries.get(key) if isinstance(node, Map) else None
    value = None if entry is None else entry.value
    return value.text if isinstance(value, Scalar) else None


# ----------------------------------------------------------------------------------- workload


def read_workload(reading: TreeReader, node: Node | None, claims: Claims) -> WorkloadSpec:
    """The workload of a scenario, without the clients that have problems; `claims` gets their
    names."""
    keys = ("producers", "consumers", "processors")
    parts = reading.entries(node, "workload", keys, "part of a workload")
    producers = _specs(reading, parts.get("producers"), ProducerSpec, "producer", claims)
    consumers = _specs(reading, parts.get("consumers"), ConsumerSpec, "consumer", claims)
    processors = _specs(reading, parts.get("processors"), ProcessorSpec, "processor", claims)
    return WorkloadSpec(tuple(producers), tuple(consumers), tuple(processors))


def _specs(
    reading: TreeReader, node: Node | None, struct: Any, word: str, claims: Claims
) -> list[Any]:
    """The clients of one kind that have no problem.  A client without a name gets one: `producer`,
    or `producer-2` if there are several."""
    path, what = f"workload.{word}s", f"setting of a {word}"
    one = isinstance(node, Map)
    items = [node] if isinstance(node, Map) else reading.items(node, path, f"{word}s")
    found = []
    for at, item in enumerate(items):
        where = path if one else join(path, at)
        name = f"{word}-{at + 1}" if len(items) > 1 else word
        spec = read_struct(reading, item, where, struct, what)
        if spec is None:
            claims.clients += [text_of(item, "name") or name]
        else:
            found.append(structs.replace(spec, name=spec.name or name, path=where))
    return found


# -------------------------------------------------------------------------------------- steps


def read_steps(reading: TreeReader, node: Node | None, claims: Claims) -> tuple[Step, ...]:
    """The steps of a scenario, without the steps that have problems; `claims` gets the names that
    the left out steps would define."""
    steps: list[Step] = []
    at = MomentRange(0, 0)
    for index, item in enumerate(reading.items(node, "steps", "steps")):
        step = _step(reading, item, join("steps", index))
        if step is None:
            claims.add_step(item)
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
        at, lost = node.entries[key], _without_colon(key)
        if lost is not None:
            reading.wrong(at, path, f"{show(key)}: a colon is missing; write {lost}")
        else:
            reading.wrong(at, join(path, key), _strange_key(key, verbs, known))
    if len(verbs) != 1:
        if not strange:
            what = f"both {verbs[0]} and {verbs[1]}" if verbs else "no action"
            reading.wrong(node, path, f"{what}; a step has one action, such as kill: 1")
        return None
    trigger = read_struct(reading, _part(node, _TRIGGER_KEYS), path, Trigger, "trigger")
    options = read_struct(reading, _part(node, _OPTION_KEYS), path, StepOptions, "option")
    action = _action(reading, node, verbs[0], path)
    if strange or trigger is None or options is None or action is None:
        return None
    if trigger.times is not None and trigger.every is None:
        reading.wrong(node, join(path, "times"), "times needs every, such as every: 5s")
        return None
    if not action.CAN_BE_UNDONE:
        for key in ("for", "until"):
            if key in node.entries:
                reading.wrong(node.entries[key], join(path, key), no_undo(verbs[0], key))
                return None
    return Step(
        verb=verbs[0],
        action=action,
        trigger=trigger,
        options=options,
        place=Place(node.line, node.column),
        path=path,
    )


def no_undo(verb: str, key: str = "for") -> str:
    """The message for an action that `for` or `until` cannot undo."""
    return f"{verb} cannot be undone, so it takes no {key}"


def _strange_key(key: str, verbs: Sequence[str], known: Sequence[str]) -> str:
    """The message for a key that no step has, but that this step's action may have."""
    for verb in verbs:
        if any(field.key == key for field in fields_of(ACTIONS[verb])):
            return f"a key of {verb}; write it inside, as in {ACTIONS[verb].EXAMPLE}"
    text_ = unknown("action or key of a step", key, known)
    return text_ if nearest(key, known) else f"{text_}; kcluster scenario help actions lists all"


def _without_colon(key: str) -> str | None:
    """`isolate leader(orders-0)` -> `isolate: leader(orders-0)`; None if the text has a different
    mistake."""
    verb, _, value = key.partition(" ")
    meant = verb if verb in ACTIONS else nearest(verb, ACTIONS)
    if not value or meant is None:
        return None
    needed = [field for field in fields_of(ACTIONS[meant]) if field.required]
    is_short = ACTIONS[meant].SHORT and len(needed) <= 1
    return f"{meant}: {show(value)}" if is_short else f"it as in {ACTIONS[meant].EXAMPLE}"


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
    if step is not None and (step.options.only_if is not None or step.options.if_possible):
        reading.wrong(node, "", "a single action takes no only_if and no if_possible")
    if step is not None and step.options.until is not None:
        reading.wrong(node, "until", "a single action takes no until; it may take for")
    if reading.problems or step is None:
        raise ScenarioError(reading.problems)
    return step


def action_of(
    verb: str, short: object, keys: Mapping[str, object], undone_after: object = None
) -> Step:
    """A single action from Python values: its one value, or its keys."""
    entries = {verb: MapEntry(from_python(keys or short))}
    if undone_after is not None:
        entries["for"] = MapEntry(from_python(undone_after))
    return read_action(Map(entries), "")


def parse_action(text_: str, source: str = "") -> Step:
    """A single action from YAML text: `isolate: leader(orders-0)`, or `heal`."""
    node, problems = from_yaml(text_, source, "action")
    if node is None or problems:
        raise ScenarioError(problems or [Problem(source, 0, 0, "", "no action")])
    return read_action(node, source)


def _part(node: Map, keys: tuple[str, ...]) -> Map:
    entries = {key: entry for key, entry in node.entries.items() if key in keys}
    return Map(entries, node.line, node.column)


def _bare(node: Scalar) -> MapEntry:
    """A bare word as a step: `- heal`."""
    return MapEntry(Scalar(None, False, node.line, node.column), node.line, node.column)
