"""A file as it was written: mappings, lists and scalars, each with its place.

Owns: the node types, YAML text to nodes, Python values to nodes.  Never: knows the purpose of a
file.  Kafka: no counterpart.

YAML's implicit types are not resolved: a scalar stays text, and reading.py converts it where a
number or a flag is expected.  So `no` is a rack's name, `09092` is refused as a port, and a config
means what it would mean in server.properties.  Aliases and tags are refused, so a small text cannot
become a large tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml
from msgspec import Struct

from kcluster.config.files.problems import Problem, join, show

MAX_TEXT_BYTES: Final = 512 * 1024
MAX_DEPTH: Final = 12
_NULLS: Final = ("", "~", "null", "Null", "NULL")

_PLAINER: Final = (
    ("character '\\t' that cannot start", "a tab; YAML is indented with spaces"),
    ("mapping values are not allowed", "no `:` can stand here: check the indentation above, or"
     " put quotes around text that has a colon"),
    ("could not find expected ':'", "a key without its `:`"),
    ("but found '<stream end>'", "the file ends before its brackets are closed"),
    ("but got '<stream end>'", "the file ends before its brackets are closed"),
    ("expected <block end>", "this is not indented like the lines above it"),
    ("while scanning a quoted scalar", "a quote that is never closed"),
)  # fmt: skip
"""The most frequent errors of PyYAML, in plain words."""


class Scalar(Struct, frozen=True):
    """One value.  `text`: None if nothing was written."""

    text: str | None
    quoted: bool = False
    line: int = 0
    column: int = 0


class Items(Struct, frozen=True):
    """A list."""

    items: list[Node]
    line: int = 0
    column: int = 0


class MapEntry(Struct, frozen=True):
    """A value with the place of its key."""

    value: Node
    line: int = 0
    column: int = 0


class Map(Struct, frozen=True):
    """A mapping; of duplicate keys, it has only the first."""

    entries: dict[str, MapEntry]
    line: int = 0
    column: int = 0


Node = Scalar | Items | Map


# -------------------------------------------------------------------------- from Python


def from_python(value: object) -> Node:
    """The node of a Python value: None, bool, numbers, text, sequences, mappings."""
    match value:
        case None:
            return Scalar(None)
        case bool():
            return Scalar("true" if value else "false")
        case str():
            return Scalar(value, quoted=True)
        case Mapping():
            return Map({str(key): MapEntry(from_python(item)) for key, item in value.items()})
        case Sequence():
            return Items([from_python(item) for item in value])
        case _:
            return Scalar(str(value))


# ---------------------------------------------------------------------------- from YAML


class _RefusedYaml(Exception):
    """The error for a text that cannot be read to its end."""


def from_yaml(text: str, source: str, what: str = "") -> tuple[Node | None, list[Problem]]:
    """The node of a YAML text, None if it cannot be read; and its problems as YAML. `what`: the
    name of the kind of file in messages."""
    reader = _YamlReader(source, what)
    try:
        return reader.read(text), reader.problems
    except _RefusedYaml:
        return None, reader.problems
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        complaint = f"{error.context or ''}, {error.problem or ''}"
        reader.complain(mark, "", _in_plain_words(complaint.strip(", ")))
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        words = f"character {error.character!r} is not allowed in YAML"
        if isinstance(error.character, int):
            words = f"character U+{error.character:04X} is not allowed in YAML"
        reader.problems.append(Problem(source, line, column, "", words))
    return None, reader.problems


def _in_plain_words(complaint: str) -> str:
    for token, words in _PLAINER:
        if token in complaint:
            return words
    return f"not YAML: {complaint}"


class _YamlReader:
    """Makes nodes from YAML events, within limits.  PyYAML's composer would follow aliases, recurse
    as deep as the text does, and silently keep the last of two equal keys."""

    def __init__(self, source: str, what: str) -> None:
        self.source, self.what = source, what
        self.problems: list[Problem] = []

    def complain(self, mark: Any, path: str, text: str) -> None:
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        self.problems.append(Problem(self.source, line, column, path, text))

    def read(self, text: str) -> Node | None:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    mark = event.start_mark
                    self.complain(mark, "", self._second())
                    raise _RefusedYaml
                root = self._node(next(events), events, "", 0)
        return root

    def _second(self) -> str:
        if not self.what:
            return "a second document; only one can be read"
        return f"a second document; one {self.what} to a file"

    def _node(self, event: Any, events: Iterator[object], path: str, depth: int) -> Node:
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            self.complain(mark, path, f"aliases are not supported: write out *{show(event.anchor)}")
            return Scalar(None, False, mark.line + 1, mark.column + 1)
        if depth > MAX_DEPTH:
            self.complain(mark, "", f"nested more than {MAX_DEPTH} deep")
            raise _RefusedYaml
        if event.tag is not None and event.tag not in ("!",):
            self.complain(mark, path, f"tags are not supported: leave out {show(event.tag)}")
        at = (mark.line + 1, mark.column + 1)
        if isinstance(event, yaml.ScalarEvent):
            quoted = not event.implicit[0]
            text = None if not quoted and event.value in _NULLS else event.value
            return Scalar(text, quoted, *at)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                items.append(self._node(event, events, join(path, len(items)), depth + 1))
            return Items(items, *at)
        return Map(self._entries(events, path, depth), *at)

    def _entries(self, events: Iterator[Any], path: str, depth: int) -> dict[str, MapEntry]:
        entries: dict[str, MapEntry] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            mark = event.start_mark
            key = self._node(event, events, path, depth + 1)
            name = key.text if isinstance(key, Scalar) else None
            value = self._node(next(events), events, join(path, name or "?"), depth + 1)
            if name is None:
                if not isinstance(event, yaml.AliasEvent):
                    self.complain(mark, path, "a key must be a word")
            elif name in entries:
                first = entries[name]
                self.complain(mark, join(path, name), f"given twice, first in line {first.line}")
            else:
                entries[name] = MapEntry(value, mark.line + 1, mark.column + 1)
        return entries
