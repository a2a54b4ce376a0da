"""The trees of topologies: from a file, from text, from Python values.

Owns: reading the file that it is given, within a limit; what replaces a file's top-level keys.
Never: checks the content (model.py does, with the *_checks.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, structs

from kcluster.config.files.problems import Problem, TopologyError
from kcluster.config.files.tree import (
    MAX_TEXT_BYTES,
    Items,
    Map,
    MapEntry,
    Node,
    Scalar,
    from_python,
    from_yaml,
)

if TYPE_CHECKING:
    from os import PathLike


class SourceTree(NamedTuple):
    """What was written, and what is wrong with it as YAML."""

    root: Node
    source: str
    """The file as it was named; empty for Python values."""
    problems: list[Problem]


def tree_of_file(path: str | PathLike[str], overrides: Mapping[str, object]) -> SourceTree:
    """The tree of a file; TopologyError if it has none."""
    source = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except FileNotFoundError:
        raise _refused(source, "no such file") from None
    except IsADirectoryError:
        raise _refused(source, "a directory; name the file in it") from None
    except OSError as error:
        raise _refused(source, f"cannot be read: {error.strerror}") from None
    return tree_of_text(data, source, overrides)


def tree_of_text(text: str | bytes, source: str, overrides: Mapping[str, object]) -> SourceTree:
    """The tree of a YAML text; TopologyError if it has none."""
    if len(text) > MAX_TEXT_BYTES:
        raise _refused(source, f"larger than {MAX_TEXT_BYTES // 1024} KiB: not a topology")
    node, problems = from_yaml(_decode(text, source), source)
    if node is None and not problems:
        raise _refused(source, "empty; the least that works is `brokers: 3`", 1)
    if node is None:
        raise TopologyError(problems)
    if isinstance(node, Map) and "brokers" not in node.entries and "topology" in node.entries:
        text_ = f"a scenario, which has a topology; run it: kcluster scenario run {source}"
        raise _refused(source, text_)
    return SourceTree(_with_overrides(node, overrides), source, problems)


def tree_of_values(values: Mapping[str, object]) -> SourceTree:
    """The tree of Python values under a file's keys; None counts as absent."""
    return SourceTree(from_python(_plain(values)), "", [])


def _refused(source: str, text: str, line: int = 0) -> TopologyError:
    return TopologyError([Problem(source, line, line, "", text)])


def _decode(text: str | bytes, source: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _refused(source, "UTF-16; save it as UTF-8", 1)
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        byte = text[error.start]
        problem = Problem(source, line, column, "", f"byte 0x{byte:02x} is not UTF-8")
        raise TopologyError([problem]) from None


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
    """Specs as the mappings that a file would have; absent for None."""
    if isinstance(value, Struct):
        value = structs.asdict(value)
        value.pop("name", None)  # of a TopicSpec: it is the key
        if value.get("assignment") is not None:
            del value["partitions"], value["replication_factor"]
        elif value.get("replication_factor") == -1:
            del value["replication_factor"]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
