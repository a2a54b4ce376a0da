"""The trees of topologies: from a file, from text, from Python values.

Owns: the values that replace a file's top-level keys.
Never: checks the content (model.py does, with the *_checks.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, structs

from kcluster.config.files.problems import Problem, TopologyError
from kcluster.config.files.source import FileKind
from kcluster.config.files.tree import Items, Map, MapEntry, Node, Scalar, from_python
from kcluster.principals import SecurityProtocol

if TYPE_CHECKING:
    from os import PathLike


class SourceTree(NamedTuple):
    """The tree of a topology, and its problems as YAML."""

    root: Node
    source: str
    """The file's name, as the user wrote it; empty for Python values."""
    problems: list[Problem]


_FILE: Final = FileKind("topology", TopologyError, "`brokers: 3`")


def tree_of_file(path: str | PathLike[str], overrides: Mapping[str, object]) -> SourceTree:
    """The tree of a file; TopologyError if it has none."""
    _, node, problems = _FILE.load(path)
    return _tree(node, str(path), problems, overrides)


def tree_of_text(text: str | bytes, source: str, overrides: Mapping[str, object]) -> SourceTree:
    """The tree of a YAML text; TopologyError if it has none."""
    _, node, problems = _FILE.parse(text, source)
    return _tree(node, source, problems, overrides)


def _tree(
    node: Node, source: str, problems: list[Problem], overrides: Mapping[str, Any]
) -> SourceTree:
    if isinstance(node, Map) and "brokers" not in node.entries and "topology" in node.entries:
        text = f"a scenario, which has a topology; run it: kcluster scenario run {source}"
        raise TopologyError([Problem(source, 0, 0, "", text)])
    return SourceTree(_with_overrides(node, overrides), source, problems)


def tree_of_values(values: Mapping[str, object]) -> SourceTree:
    """The tree of Python values under a file's keys; None counts as absent."""
    return SourceTree(from_python(_plain(values)), "", [])


def _with_overrides(root: Node, overrides: Mapping[str, Any]) -> Node:
    replaced = {key: value for key, value in overrides.items() if value is not None}
    if not replaced or not isinstance(root, Map):
        return root
    entries = {**root.entries}
    if isinstance(replaced.get("brokers"), int) and "base_port" not in replaced:
        entries.pop("base_port", None)
    if "brokers" not in replaced and "base_port" in replaced and "brokers" in entries:
        brokers = entries["brokers"]
        if isinstance(brokers.value, Items):
            entries["brokers"] = structs.replace(
                brokers, value=_renumbered(brokers.value, replaced.pop("base_port"))
            )
    for key, value in replaced.items():
        entries[key] = MapEntry(from_python(_plain(value)))
    return Map(entries, root.line, root.column)


def _renumbered(brokers: Items, base_port: int) -> Items:
    """The brokers of a list on ports from `base_port` on; on free ones for 0."""
    items: list[Node] = []
    for index, item in enumerate(brokers.items):
        if isinstance(item, Map):
            port = MapEntry(Scalar(str(base_port + index if base_port else 0), line=item.line))
            item = structs.replace(item, entries={**item.entries, "port": port})
        items.append(item)
    return structs.replace(brokers, items=items)


def _plain(value: object) -> object:
    """Specs as the mappings that a file would have; without keys whose value is None."""
    if isinstance(value, Struct):
        value = structs.asdict(value)
        value.pop("name", None)  # a TopicSpec's name is its key
        if value.get("assignment") is not None:
            del value["partitions"], value["replication_factor"]
        elif value.get("replication_factor") == -1:
            del value["replication_factor"]
        if isinstance(value.get("protocol"), SecurityProtocol):
            value["protocol"] = value["protocol"].name
        if "listeners" in value:
            value["listeners"] = {one.name: one for one in value["listeners"]} or None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
