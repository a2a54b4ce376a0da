"""What the value of a key may be: reading it with its place, describing it as JSON Schema.

Owns: the kinds of values in scenario files, and reading a msgspec.Struct whose fields are annotated
with them.  Never: knows a scenario (model.py), raises: problems go to the TreeReader.
Kafka: ConfigDef.Type and its validators.

    class Pause(Action, frozen=True):
        brokers: Annotated[Targets, TARGETS]
        duration_ms: Annotated[int, Duration(low=1)] = 0

A field's key is its name without the unit: `duration_ms` is written `duration: 5s`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final, Protocol, TypeVar, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, structs

from kcluster.config.files.durations import DURATION, MAX_MS, milliseconds_of, without_unit
from kcluster.config.files.problems import join, nearest, show, unknown
from kcluster.config.files.reading import TreeReader, is_null, kind
from kcluster.config.files.tree import Items, Map, Node, Scalar

T = TypeVar("T")
Schema = dict[str, Any]

_UNIT_SUFFIXES: Final = ("_ms", "_bytes", "_per_s")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?(B|kB|KB|KiB|MB|MiB|GB|GiB)?")
_BYTES: Final = {
    "B": 1, "kB": 1_000, "KB": 1_000, "KiB": 1_024, "MB": 10**6, "MiB": 1 << 20, "GB": 10**9,
    "GiB": 1 << 30,
}  # fmt: skip
_RATE: Final = re.compile(r"(\d+(?:\.\d+)?) ?(?:/ ?(s|m|min))?")
_FRACTION: Final = re.compile(r"(\d+(?:\.\d+)?) ?(%)?")


class Kind(Protocol):
    """One kind of value."""

    def read(self, reading: TreeReader, node: Node, path: str) -> Any:
        """The value; None if it has a problem, which is then reported."""

    def schema(self) -> Schema:
        """The kind as JSON Schema."""


def key_of(field: str) -> str:
    """The key of a field in a file: without the unit, which is written with the value."""
    for suffix in _UNIT_SUFFIXES:
        if field.endswith(suffix):
            return field.removesuffix(suffix)
    return field.removesuffix("_")


def scalar(reading: TreeReader, node: Node, path: str, wanted: str) -> str | None:
    """The text of a scalar."""
    if isinstance(node, Scalar) and node.text is not None:
        return node.text
    reading.wrong(node, path, f"{kind(node)}; it must be {wanted}")
    return None


# ------------------------------------------------------------------------------------ scalars


def _no_reason(text: str) -> str:
    return ""


class Quantity(Struct, frozen=True):
    """A number with a unit, as an integer of the smallest one."""

    wanted: str
    pattern: str
    low: float
    high: float
    to_number: Callable[[re.Match[str]], float]
    is_whole: bool = True
    why_not: Callable[[str], str] = _no_reason
    """What is wrong with text that does not match, where it can be said; else ""."""

    def read(self, reading: TreeReader, node: Node, path: str) -> float | int | None:
        text = scalar(reading, node, path, self.wanted)
        if text is None:
            return None
        match = re.fullmatch(self.pattern, text.replace("_", ""))
        if match is None:
            reading.wrong(node, path, self.why_not(text) or f"{show(text)} is not {self.wanted}")
            return None
        number = self.to_number(match)
        if not self.low <= number <= self.high:
            bound = f"below {self.low:g}" if number < self.low else f"above {self.high:g}"
            reading.wrong(node, path, f"{show(text)} is {bound}; it must be {self.wanted}")
            return None
        return round(number) if self.is_whole else number

    def schema(self) -> Schema:
        return {"type": ["string", "number"], "pattern": f"^{self.pattern}$"}


def duration(low_ms: float = 0, high_ms: float = MAX_MS) -> Quantity:
    """`250ms`, `5s`, `1.5s`, `2m`; a number without a unit is refused.  Read as int ms."""
    return Quantity(
        "a time like 250ms, 5s or 2m",
        DURATION,
        low_ms,
        high_ms,
        milliseconds_of,
        why_not=without_unit,
    )


def size(low: int = 0, high: int = 1 << 40) -> Quantity:
    """`100`, `64KiB`, `1MB`.  Read as int bytes."""
    return Quantity(
        "a size like 100, 64KiB or 1MB",
        _SIZE.pattern,
        low,
        high,
        lambda match: float(match[1]) * _BYTES[match[2] or "B"],
    )


def rate(low: float = 0.001, high: float = 1_000_000) -> Quantity:
    """`50/s`, `600/m`; a bare number is per second.  Read as float per second."""
    return Quantity(
        "a rate like 50/s",
        _RATE.pattern,
        low,
        high,
        lambda match: float(match[1]) / (1 if match[2] in (None, "s") else 60),
        False,
    )


def fraction() -> Quantity:
    """`0.1` or `10%`."""
    return Quantity(
        "a share like 10% or 0.1",
        _FRACTION.pattern,
        0,
        1,
        lambda match: float(match[1]) / (100 if match[2] else 1),
        False,
    )


class Whole(Struct, frozen=True):
    """A whole number."""

    low: int = 0
    high: int = 2**31 - 1

    def read(self, reading: TreeReader, node: Node, path: str) -> int | None:
        return reading.integer(node, path, self.low, self.high)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


class Flag(Struct, frozen=True):
    """true or false."""

    def read(self, reading: TreeReader, node: Node, path: str) -> bool | None:
        text = scalar(reading, node, path, "true or false")
        if text is None or text in ("true", "false"):
            return None if text is None else text == "true"
        reading.wrong(node, path, f"{show(text)}: it must be true or false")
        return None

    def schema(self) -> Schema:
        return {"type": "boolean"}


class OneOf(Struct, frozen=True):
    """One of a set of words."""

    what: str
    words: tuple[str, ...]

    def read(self, reading: TreeReader, node: Node, path: str) -> str | None:
        text = scalar(reading, node, path, f"one of {', '.join(self.words)}")
        if text is None or text in self.words:
            return text
        reading.wrong(node, path, f"{show(text)}: {unknown(self.what, text, self.words)}")
        return None

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


class Explained(Struct, frozen=True):
    """One of a set of words, each with its meaning, or one of `others`; `other`: what they are."""

    what: str
    meanings: Mapping[str, str]
    others: tuple[str, ...]
    other: str

    def read(self, reading: TreeReader, node: Node, path: str) -> str | None:
        text = scalar(reading, node, path, f"a {self.what}: {', '.join(self.meanings)}")
        if text is None or text in self.meanings or text in self.others:
            return text
        reading.wrong(node, path, f"{show(text)}: {self._unknown(text)}")
        return None

    def _unknown(self, word: str) -> str:
        """The names that the word is a part of, else the nearest one, else all with a meaning."""
        longer = [name for name in self.meanings if word and word.lower() in name]
        if len(longer) > 1:
            return f"no such {self.what}; did you mean one of {', '.join(longer)}?"
        near = longer[0] if longer else nearest(word, (*self.meanings, *self.others))
        if near is not None:
            return f"no such {self.what}; did you mean {near}?"
        return f"no such {self.what}; there are {', '.join(self.meanings)}, or {self.other}"

    def schema(self) -> Schema:
        named = [{"const": word, "description": text} for word, text in self.meanings.items()]
        return {"anyOf": [*named, {"enum": list(self.others), "description": self.other}]}


class Words(Struct, frozen=True):
    """Text that `parse` reads; it returns a value, or raises ValueError with the reason."""

    wanted: str
    parse: Callable[[str], Any]
    lists: bool = False
    """A list of texts is accepted too, and joined by commas."""

    def read(self, reading: TreeReader, node: Node, path: str) -> Any:
        if self.lists and isinstance(node, Items):
            texts = [scalar(reading, item, path, self.wanted) for item in node.items]
            text = None if None in texts else ", ".join(text for text in texts if text)
        else:
            text = scalar(reading, node, path, self.wanted)
        if text is None:
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            reading.wrong(node, path, f"{show(text)}: {error}")
            return None

    def schema(self) -> Schema:
        one: Schema = {"type": ["string", "integer"], "description": self.wanted}
        if not self.lists:
            return one
        return {"anyOf": [one, {"type": "array", "items": one}], "description": self.wanted}


def text() -> Words:
    """Any text on one line."""
    return Words("text", str)


class StoryText(Struct, frozen=True):
    """Text of several lines."""

    def read(self, reading: TreeReader, node: Node, path: str) -> str | None:
        return scalar(reading, node, path, "text")

    def schema(self) -> Schema:
        return {"type": "string"}


# --------------------------------------------------------------------------------- containers


class ListOf(Struct, frozen=True):
    """A list, read as a tuple; a single value counts as a list of one."""

    item: Kind
    wanted: str = "values"
    alone: bool = True

    def read(self, reading: TreeReader, node: Node, path: str) -> tuple[Any, ...] | None:
        if self.alone and not isinstance(node, Items):
            only = self.item.read(reading, node, path)
            return None if only is None else (only,)
        items = reading.items(node, path, self.wanted)
        read = [self.item.read(reading, item, join(path, at)) for at, item in enumerate(items)]
        return None if None in read else tuple(read)

    def schema(self) -> Schema:
        item = self.item.schema()
        array = {"type": "array", "items": item}
        return {"anyOf": [array, item]} if self.alone else array


class MapOf(Struct, frozen=True):
    """A mapping from words to values of one kind; `keys` checks a key as Words.parse does."""

    value: Kind
    wanted: str = "names"
    keys: Callable[[str], Any] = str

    def read(self, reading: TreeReader, node: Node, path: str) -> dict[Any, Any] | None:
        if not isinstance(node, Map):
            reading.wrong(node, path, f"{kind(node)}; it must be a mapping of {self.wanted}")
            return None
        read: dict[Any, Any] = {}
        for key, entry in node.entries.items():
            try:
                name = self.keys(key)
            except ValueError as error:
                reading.wrong(entry, join(path, key), f"{show(key)}: {error}")
                continue
            value = self.value.read(reading, entry.value, join(path, key))
            if value is not None:
                read[name] = value
        return read

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.value.schema()}


# ------------------------------------------------------------------------------------ structs


class StructField(Struct, frozen=True):
    """One field of a Struct that is read from a file."""

    name: str
    key: str
    kind: Kind
    required: bool


@cache
def fields_of(struct: type[Struct]) -> tuple[StructField, ...]:
    """The fields that are annotated with a kind, in order."""
    hints = get_type_hints(struct, include_extras=True)
    found = []
    for field in structs.fields(struct):
        hint = hints[field.name]
        if get_origin(hint) is Annotated:
            required = field.default is NODEFAULT and field.default_factory is NODEFAULT
            found.append(StructField(field.name, key_of(field.name), get_args(hint)[1], required))
    return tuple(found)


def read_struct(
    reading: TreeReader,
    node: Node,
    path: str,
    struct: type[T],
    what: str,
    short: str = "",
    beside: Mapping[str, Any] | None = None,
) -> T | None:
    """A Struct from a mapping of its keys; None if it has a problem.  `beside`: values of fields
    that are not in the file."""
    known = fields_of(struct)  # type: ignore[arg-type]  # T is a Struct
    if not isinstance(node, Map) and short:
        only = next(field for field in known if field.name == short)
        missing = [f.key for f in known if f.required and f is not only]
        if missing:
            reading.wrong(node, path, f"{kind(node)}; write a mapping, it needs {missing[0]} too")
            return None
        if is_null(node) and not only.required:
            return struct(**(beside or {}))
        value = only.kind.read(reading, node, path)
        return None if value is None else struct(**{short: value, **(beside or {})})
    if is_null(node) and not any(field.required for field in known):
        return struct(**(beside or {}))
    if is_null(node):
        missing = [field.key for field in known if field.required]
        reading.wrong(node, path, f"nothing here; it needs {', '.join(missing)}")
        return None
    before = len(reading.problems)
    entries = reading.entries(node, path, [field.key for field in known], what)
    values = dict(beside or {})
    for field in known:
        if field.key in entries:
            values[field.name] = field.kind.read(reading, entries[field.key], join(path, field.key))
        elif field.required and isinstance(node, Map) and field.key not in node.entries:
            reading.wrong(node, join(path, field.key), "missing")
        elif field.required and isinstance(node, Map):
            reading.wrong(node.entries[field.key], join(path, field.key), "empty")
    return struct(**values) if len(reading.problems) == before else None


def struct_schema(struct: type[Struct], short: str = "") -> Schema:
    """The JSON Schema of a Struct."""
    known = fields_of(struct)
    schema: Schema = {
        "type": "object",
        "properties": {field.key: field.kind.schema() for field in known},
        "additionalProperties": False,
    }
    required = [field.key for field in known if field.required]
    if required:
        schema["required"] = required
    if struct.__doc__:
        schema["description"] = " ".join(struct.__doc__.split())
    if not short:
        return schema
    only = next(field for field in known if field.name == short)
    others = [schema, only.kind.schema()]
    if not any(field.required for field in known):
        others.append({"type": "null"})
    return {"anyOf": others}
