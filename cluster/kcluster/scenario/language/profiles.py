"""Profiles of random faults from files and from steps.

Owns: the places where profiles are searched, their keys.  Never: plays one (nemesis.py).
"""

from __future__ import annotations

import os
from typing import Any, Final

from msgspec import Struct

from kcluster.actions.base import ACTIONS
from kcluster.config.files.fields import Schema, Whole, read_struct, struct_schema
from kcluster.config.files.problems import join, show
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Map, Node, Scalar, from_yaml
from kcluster.scenario.language.words import CONDITION, MOMENT
from kcluster.scenario.library import LibraryKind, library_path, nearest_name
from kcluster.scenario.play.nemesis import FaultKind, Profile

_WEIGHT: Final = Whole(1, 1_000)


class ProfileKind(Struct, frozen=True):
    """A profile by name, such as `one_failure_at_a_time`, or as a mapping.  The file is searched
    beside the scenario, in `profiles` and `../profiles` from there, and among the profiles that
    ship with kcluster."""

    def read(self, reading: TreeReader, node: Node, path: str) -> Profile | None:
        if isinstance(node, Map):
            return read_profile(reading, node, path)
        if not isinstance(node, Scalar) or node.text is None:
            reading.wrong(node, path, f"{kind(node)}; it must be a profile's name, or a mapping")
            return None
        file = find_profile(node.text, os.path.dirname(reading.source))
        if file is None:
            text = f"{show(node.text)}: no such profile here, in profiles or in ../profiles"
            near = nearest_name(LibraryKind.PROFILE, node.text)
            hint = f"; did you mean {near}, which ships with kcluster?" if near else ""
            reading.wrong(node, path, text + hint)
            return None
        with open(file, "rb") as opened:
            root, problems = from_yaml(opened.read().decode("utf-8", "replace"), file)
        inner = TreeReader(file)
        profile = None if root is None else read_profile(inner, root, "")
        reading.problems += [*problems, *inner.problems]
        return profile

    def schema(self) -> Schema:
        inline = struct_schema(Profile)
        inline["properties"]["kinds"] = {"type": "array", "items": {"type": "object"}}
        return {"anyOf": [{"type": "string"}, inline]}

    def form(self) -> str:
        return "profile's name, or its keys"


def find_profile(name: str, directory: str) -> str | None:
    """The file of a profile; None if there is none."""
    file = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
    for place in ("", "profiles", os.path.join("..", "profiles")):
        path = os.path.join(directory, place, file)
        if os.path.isfile(path):
            return os.path.normpath(path)
    shipped = library_path(LibraryKind.PROFILE, name)
    return None if shipped is None else str(shipped)


def shipped_profile(name: str) -> Profile:
    """A profile that ships with kcluster."""
    path = library_path(LibraryKind.PROFILE, name)
    assert path is not None, name
    reading = TreeReader(str(path))
    root, problems = from_yaml(path.read_text("utf-8"), str(path))
    assert root is not None
    profile = read_profile(reading, root, "")
    assert profile is not None, reading.problems
    assert not problems, problems
    return profile


def read_profile(reading: TreeReader, node: Node, path: str) -> Profile | None:
    """A profile from a mapping of its keys; `kinds` is a list of actions, each with its weight."""
    if not isinstance(node, Map):
        reading.wrong(node, path, f"{kind(node)}; a profile is a mapping with `kinds`")
        return None
    entry = node.entries.get("kinds")
    if entry is None:
        reading.wrong(node, join(path, "kinds"), "missing; it lists the faults")
        return None
    where = join(path, "kinds")
    kinds: list[FaultKind] = []
    for at, item in enumerate(reading.items(entry.value, where, "actions like {kill: any broker}")):
        fault = _fault(reading, item, join(where, at))
        if fault is not None:
            kinds.append(fault)
    if not kinds and not reading.problems:
        reading.wrong(entry, where, "empty; it lists the faults")
    rest = {key: value for key, value in node.entries.items() if key != "kinds"}
    others = Map(rest, node.line, node.column)
    return read_struct(
        reading, others, path, Profile, "key of a profile", beside={"kinds": tuple(kinds)}
    )


def _fault(reading: TreeReader, node: Node, path: str) -> FaultKind | None:
    if not isinstance(node, Map):
        reading.wrong(node, path, f"{kind(node)}; a kind is a mapping like {{kill: any broker}}")
        return None
    verbs = [key for key in node.entries if key in ACTIONS]
    known = ("weight", "repair", "only_if", *ACTIONS)
    reading.entries(node, path, known, "action or key of a kind")
    if len(verbs) != 1:
        reading.wrong(node, path, "a kind has one action, such as kill: any broker")
        return None
    cls = ACTIONS[verbs[0]]
    value = node.entries[verbs[0]].value
    action: Any = read_struct(
        reading, value, join(path, verbs[0]), cls, f"key of {verbs[0]}", cls.SHORT
    )
    weight, repair = node.entries.get("weight"), node.entries.get("repair")
    drawn = 1 if weight is None else _WEIGHT.read(reading, weight.value, join(path, "weight"))
    after = None if repair is None else MOMENT.read(reading, repair.value, join(path, "repair"))
    bound = node.entries.get("only_if")
    only_if = None
    if bound is not None:
        only_if = CONDITION.read(reading, bound.value, join(path, "only_if"))
    if action is None or drawn is None:
        return None
    return FaultKind(verbs[0], action, drawn, after, only_if)
