"""The kinds of values that keys may have: reading a value with its place, describing it as JSON
Schema.

Owns: the kinds of values in files, and reading a msgspec.Struct whose fields are annotated
with them.  Never: knows a kind of file, raises: problems go to the TreeReader.
Kafka: ConfigDef.Type and its validators.

    class SlowDisk(Action, frozen=True):
        brokers: Annotated[Targets, BROKERS, "Whose disks."]
        latency_ms: Annotated[int, duration(), "How much longer each append takes."] = 100

A field's key is its name without the unit: `latency_ms` is written `latency: 100ms`; or the name
that msgspec's `field(name=...)` gives it.  The sentence is the key's line in the reference and its
description in the JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Protocol, TypeVar, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, structs

from kcluster.config.files.durations import DURATION, MAX_MS, milliseconds_of, without_unit
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import join, nearest, show, unknown
from kcluster.config.files.reading import TreeReader, is_null, kind
from kcluster.config.files.tree import Items, Map, Node, Scalar
from kcluster.json_types import JsonObject

T = TypeVar("T", bound=Struct)
Schema = JsonObject

UNITS_SHOWN: Final = "ms, s, m, min, h"
_SYNONYMS: Final = (
    {"brokers", "broker", "nodes", "node", "targets", "target"},
    {"name", "topic", "topics"},
    {"members", "count", "instances"},
    {"others", "other", "from"},
    {"latency", "delay", "by", "ms"},
    {"share", "loss", "percent", "probability"},
    {"config", "configs", "configuration", "settings"},
    {"replication_factor", "replicas", "rf"},
    {"to", "leader", "target"},
    {"to", "bandwidth", "limit"},
    {"group", "group_id"},
    {"reset", "auto_offset_reset"},
)
"""Sets of keys that people write for one another: the keys of a set have one meaning."""
_UNIT_SUFFIXES: Final = ("_ms", "_bytes", "_per_s")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?(B|kB|KB|KiB|MB|MiB|GB|GiB)?")
_BYTES: Final = {
    "B": 1, "kB": 1_000, "KB": 1_000, "KiB": 1_024, "MB": 10**6, "MiB": 1 << 20, "GB": 10**9,
    "GiB": 1 << 30,
}  # fmt: skip
_RATE: Final = re.compile(r"(\d+(?:\.\d+)?) ?(?:/ ?(s|m|min))?")
_FRACTION: Final = re.compile(r"(\d+(?:\.\d+)?) ?(%)?")
MAX_SHOWN_NUMBER: Final = 10**7
"""The greatest upper bound that is shown; a greater bound would not help a reader."""
MAX_SHOWN_WORDS: Final = 6
"""The most words of a set that are listed; for a larger set the reference has an example."""


class Kind(Protocol):
    """One kind of value."""

    def read(self, reading: TreeReader, node: Node, path: str) -> Any:
        """Read a value; None if it has a problem, which is then reported."""

    def schema(self) -> Schema:
        """The kind as JSON Schema."""

    def form(self) -> str:
        """The form of a value, in a few words: `a time`, `true or false`."""


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
    """A number with a unit, read as an integer of the smallest unit."""

    word: str
    wanted: str
    pattern: str
    low: float
    high: float
    to_number: Callable[[re.Match[str]], float]
    is_whole: bool = True
    why_not: Callable[[str], str] = _no_reason
    """The reason why a text does not match, if one can be given; else ""."""
    units: str = ""
    """The units, if a number other than 0 must have one; else ""."""
    written: Callable[[float], str] = "{:g}".format
    """A value in the form in which a file has it."""

    def read(self, reading: TreeReader, node: Node, path: str) -> float | int | None:
        text = scalar(reading, node, path, self.wanted)
        if text is None:
            return None
        try:
            number = self.number(text)
        except ValueError as error:
            reading.wrong(node, path, str(error))
            return None
        if not self.low <= number <= self.high:
            low, high = self.written(self.low), self.written(self.high)
            bound = f"below {low}" if number < self.low else f"above {high}"
            reading.wrong(node, path, f"{show(text)} is {bound}; it must be {self.wanted}")
            return None
        return round(number) if self.is_whole else number

    def number(self, text: str) -> float:
        """The number that a text stands for, in the smallest unit; ValueError with the reason."""
        match = re.fullmatch(self.pattern, text.strip().replace("_", ""))
        if match is None:
            units = f"; the units are {self.units}" if self.units else ""
            reason = self.why_not(text) or f"{show(text)} is not {self.wanted}{units}"
            raise ValueError(reason)
        return self.to_number(match)

    def schema(self) -> Schema:
        pattern = f"^{self.pattern}$"
        if not self.units:
            return {"type": ["string", "number"], "pattern": pattern}
        return {"anyOf": [{"type": "string", "pattern": pattern}, {"const": 0}]}

    def form(self) -> str:
        return self.word


def duration(low_ms: float = 0, high_ms: float = MAX_MS) -> Quantity:
    """The kind of times: `250ms`, `5s`, `1.5s`, `2m`; only 0 needs no unit.  Read as int ms."""
    return Quantity(
        word="time",
        wanted="a time like 250ms, 5s or 2m",
        pattern=DURATION,
        low=low_ms,
        high=high_ms,
        to_number=milliseconds_of,
        why_not=without_unit,
        units=UNITS_SHOWN,
        written=duration_text,
    )


def duration_text(ms: float) -> str:
    """A time in the form in which a file has it: `100ms`, `5s`, `2m`."""
    for unit, size_ms in (("m", 60_000), ("s", 1_000)):
        if ms and ms % size_ms == 0:
            return f"{ms / size_ms:g}{unit}"
    return f"{ms:g}ms" if ms else "0"


def size(low: int = 0, high: int = 1 << 40) -> Quantity:
    """The kind of sizes: `100`, `64KiB`, `1MB`; a bare number is bytes.  Read as int bytes."""
    return Quantity(
        word="size",
        wanted="a size like 100, 64KiB or 1MB",
        pattern=_SIZE.pattern,
        low=low,
        high=high,
        to_number=lambda match: float(match[1]) * _BYTES[match[2] or "B"],
        written=lambda number: f"{number / 10**6:g}MB" if number >= 10**6 else f"{number:g}",
    )


def rate(low: float = 0.001, high: float = 1_000_000) -> Quantity:
    """The kind of rates: `50/s`, `600/m`; a bare number is per second.  Read as float per
    second."""
    return Quantity(
        word="rate",
        wanted="a rate like 50/s",
        pattern=_RATE.pattern,
        low=low,
        high=high,
        to_number=lambda match: float(match[1]) / (1 if match[2] in (None, "s") else 60),
        is_whole=False,
        written="{:g}/s".format,
    )


def fraction() -> Quantity:
    """The kind of shares: `0.1` or `10%`."""
    return Quantity(
        word="share",
        wanted="a share like 10% or 0.1",
        pattern=_FRACTION.pattern,
        low=0,
        high=1,
        to_number=lambda match: float(match[1]) / (100 if match[2] else 1),
        is_whole=False,
        written=lambda share: f"{share * 100:g}%",
    )


class Whole(Struct, frozen=True):
    """A whole number.  `word`: its meaning, if that helps more than its bounds."""

    low: int = 0
    high: int = 2**31 - 1
    word: str = ""

    def read(self, reading: TreeReader, node: Node, path: str) -> int | None:
        return reading.integer(node, path, self.low, self.high)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def form(self) -> str:
        if self.word:
            return self.word
        if self.high < MAX_SHOWN_NUMBER:
            return f"number from {self.low} to {self.high:,}"
        return f"number from {self.low}" if self.low else "number"


class Milliseconds(Struct, frozen=True):
    """A time in ms without a unit, down to a thousandth."""

    high: int

    def read(self, reading: TreeReader, node: Node, path: str) -> float | None:
        return reading.milliseconds(node, path, self.high)

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": self.high}

    def form(self) -> str:
        return "milliseconds"


class Flag(Struct, frozen=True):
    """A flag: true or false."""

    def read(self, reading: TreeReader, node: Node, path: str) -> bool | None:
        text = scalar(reading, node, path, "true or false")
        if text is None or text in ("true", "false"):
            return None if text is None else text == "true"
        reading.wrong(node, path, f"{show(text)}: it must be true or false")
        return None

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def form(self) -> str:
        return "true or false"


def _unquoted(word: str) -> int | bool | None:
    """The word, without its quotes, that YAML would read as something other than text, such as 1 or
    true."""
    if word in ("true", "false"):
        return word == "true"
    number = whole_number(word.removeprefix("-"))
    return -number if number is not None and word.startswith("-") else number


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
        plain = [_unquoted(word) for word in self.words]
        return {"enum": [*self.words, *(value for value in plain if value is not None)]}

    def form(self) -> str:
        if len(self.words) > MAX_SHOWN_WORDS:
            return f"{self.what} such as {self.words[0]}"
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"


class Explained(Struct, frozen=True):
    """One of a set of words, each with its meaning, or one of `others`; `other`: their
    description."""

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
        """The known names that contain the word, else the nearest one, else all names with a
        meaning."""
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

    def form(self) -> str:
        return f"{self.what} such as {next(iter(self.meanings))}"


class Words(Struct, frozen=True):
    """Text that `parse` reads; it returns a value, or raises ValueError with the reason."""

    wanted: str
    parse: Callable[[str], object]
    lists: bool = False
    """A list of texts is accepted too, and joined by commas."""
    brief: str = ""
    """`wanted` in a few words, if it is long."""

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

    def form(self) -> str:
        return self.brief or self.wanted


def text() -> Words:
    """The kind of texts on one line."""
    return Words("text", str)


class Text(Struct, frozen=True):
    """Printable text on one line, a number or a flag as it was written.  `parse` returns the value,
    or raises ValueError with the whole message."""

    wanted: str = "text"
    parse: Callable[[str], object] = str

    def read(self, reading: TreeReader, node: Node, path: str) -> Any:
        text = reading.text(node, path)
        try:
            return None if text is None else self.parse(text)
        except ValueError as error:
            reading.wrong(node, path, str(error))
            return None

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}

    def form(self) -> str:
        return self.wanted


class Later(Struct, frozen=True):
    """A value that is read when more of the file is known: `read` returns the node.  `advice`: the
    value to write, for a key that must not be missing."""

    wanted: str
    described: Callable[[], Schema]
    advice: str = ""

    def read(self, reading: TreeReader, node: Node, path: str) -> Node:
        return node

    def schema(self) -> Schema:
        return self.described()

    def form(self) -> str:
        return self.wanted


class StoryText(Struct, frozen=True):
    """Text of several lines."""

    def read(self, reading: TreeReader, node: Node, path: str) -> str | None:
        return scalar(reading, node, path, "text")

    def schema(self) -> Schema:
        return {"type": "string"}

    def form(self) -> str:
        return "text of several lines"


# --------------------------------------------------------------------------------- containers


class ListOf(Struct, frozen=True):
    """A list, read as a tuple; a single value counts as a list of one."""

    item: Kind
    wanted: str = "values"
    alone: bool = True

    def read(self, reading: TreeReader, node: Node, path: str) -> tuple[object, ...] | None:
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

    def form(self) -> str:
        return f"{self.item.form()}, or a list" if self.alone else f"list of {self.wanted}"


class MapOf(Struct, frozen=True):
    """A mapping from words to values of one kind; `keys` checks a key as Words.parse does."""

    value: Kind
    wanted: str = "names"
    keys: Callable[[str], object] = str

    def read(self, reading: TreeReader, node: Node, path: str) -> dict[object, object] | None:
        if not isinstance(node, Map):
            reading.wrong(node, path, f"{kind(node)}; it must be a mapping of {self.wanted}")
            return None
        read: dict[object, object] = {}
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

    def form(self) -> str:
        return f"mapping of {self.wanted}"


# ------------------------------------------------------------------------------------ structs


class StructField(Struct, frozen=True):
    """One field of a Struct that is read from a file."""

    name: str
    key: str
    kind: Kind
    required: bool
    words: str
    """The field's description, as one or more sentences; "" if there is none."""
    default: object = None

    @property
    def default_text(self) -> str:
        """The default as a file would have it; "" if there is none, or if it is empty."""
        return written(self.kind, self.default)


def written(kind: Kind, value: Any) -> str:
    """A value as a file would have it; "" for none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value in ("", (), {}):
        return ""
    return kind.written(value) if isinstance(kind, Quantity) else str(value)


@cache
def fields_of(struct: type[Struct]) -> tuple[StructField, ...]:
    """The fields that are annotated with a kind, in order."""
    hints = get_type_hints(struct, include_extras=True)
    found = []
    for field in structs.fields(struct):
        hint = hints[field.name]
        if get_origin(hint) is Annotated:
            required = field.default is NODEFAULT and field.default_factory is NODEFAULT
            _, kind_, *words = get_args(hint)
            default = None if field.default is NODEFAULT else field.default
            is_renamed = field.encode_name != field.name
            found.append(
                StructField(
                    name=field.name,
                    key=field.encode_name if is_renamed else key_of(field.name),
                    kind=kind_,
                    required=required,
                    words=words[0] if words else "",
                    default=default,
                )
            )
    return tuple(found)


def read_struct(
    reading: TreeReader,
    node: Node,
    path: str,
    struct: type[T],
    what: str,
    short: str = "",
    beside: Mapping[str, object] | None = None,
) -> T | None:
    """A Struct from a mapping of its keys; None if it has a problem.  `beside`: the values of
    fields that the file does not have."""
    known = fields_of(struct)
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
    values = {**(beside or {}), **read_fields(reading, node, path, struct, what)}
    return struct(**values) if len(reading.problems) == before else None


def read_fields(
    reading: TreeReader,
    node: Node | None,
    path: str,
    struct: type[Struct],
    what: str,
    explain: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """The values of a Struct's fields by name, without absent ones; None for a value that has a
    problem.  `explain`: makes the message for an unknown key."""
    known = fields_of(struct)
    wrong_key = explain or (lambda key: _unknown_key(what, key, known))
    entries = reading.entries(node, path, [field.key for field in known], what, wrong_key)
    values: dict[str, Any] = {}
    for field in known:
        at = join(path, field.key)
        if field.key in entries:
            values[field.name] = field.kind.read(reading, entries[field.key], at)
        elif field.required and isinstance(node, Map):
            entry = node.entries.get(field.key)
            advice = f"; {field.kind.advice}" if isinstance(field.kind, Later) else ""
            text = "missing" if entry is None else "empty"
            reading.wrong(entry or node, at, f"{text}{advice}".removesuffix("; "))
    return values


def _unknown_key(what: str, key: str, fields: Sequence[StructField]) -> str:
    """The message for an unknown key, with the key that was probably meant."""
    bare, known = key_of(key), [field.key for field in fields]
    if bare != key and any(bare == one.key and isinstance(one.kind, Quantity) for one in fields):
        return f"no such {what}; write {bare}, and the unit with the value"
    if nearest(key, known) is None:
        for words in _SYNONYMS:
            meant = words.intersection(known) if key in words else ()
            if len(meant) == 1:
                return f"no such {what}; did you mean {meant.pop()}?"
    return unknown(what, key, known)


def struct_schema(struct: type[Struct], short: str = "") -> Schema:
    """The JSON Schema of a Struct."""
    known = fields_of(struct)
    required = [field.key for field in known if field.required]
    schema: Schema = {
        "type": "object" if required else ["object", "null"],
        "properties": {field.key: _field_schema(field) for field in known},
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    if struct.__doc__:
        schema["description"] = " ".join(struct.__doc__.split())
    if not short:
        return schema
    only = next(field for field in known if field.name == short)
    return {"anyOf": [schema, only.kind.schema()]}


def _field_schema(field: StructField) -> Schema:
    """The schema of a field's kind, with its description and its default."""
    schema = field.kind.schema()
    written_as = schema.get("description", "")
    if field.words:
        is_whole = written_as in ("", "text") or written_as.endswith(".")
        form = "" if is_whole else f"{written_as[0].upper()}{written_as[1:]}."
        schema["description"] = " ".join(f"{field.words} {form}".split())
    if isinstance(field.default, (bool, int, float, str)) and field.default != "":
        is_plain = not isinstance(field.kind, Quantity)
        schema["default"] = field.default if is_plain else field.default_text
    return schema


class StructOf(Struct, frozen=True):
    """A mapping of a Struct's keys; `short`: the field that a bare value means, if any."""

    struct: type[Struct]
    what: str
    short: str = ""

    def read(self, reading: TreeReader, node: Node, path: str) -> object:
        return read_struct(reading, node, path, self.struct, self.what, self.short)

    def schema(self) -> Schema:
        return struct_schema(self.struct, self.short)

    def form(self) -> str:
        keys = [field.key for field in fields_of(self.struct)]
        return f"mapping of {', '.join(keys[:-1])} and {keys[-1]}"
