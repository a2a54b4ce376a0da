"""The schema table: every version of every message, read from schema/*.txt.

Owns: our notation and its parser.  Never: handles bytes on the wire (compiler.py, primitives.py).
Kafka: common/message/*.json and MessageSpec; tools/read_schemas.py generates the files from them.

`schema/index.txt` has one line per API.  Each file `schema/<Api>.txt` begins with that line:

    Produce 0: 4.4.0 3-13, 3.9.1 0-11, flexible 9+, listeners broker

After `request` and `response` come the fields, a struct's fields indented below the field (or
below `struct <Name>` where several fields share them):

    topic_data          0+    []TopicProduceData
      name              0-12  string ignorable
      records           0+    records null 0+
      current_leader    10+   LeaderIdAndEpoch tag 0 10+
      error_message     8+    string null 8+ = null

that is: name, versions that have the field, type, versions in which it may be null, tag and the
versions in which it is a tagged field (KIP-482), default, `ignorable` (a sender may drop the value
in a version without the field).  Without `=` the default is 0, "", [], or 16 zero bytes.
`schema/records/<Name>.txt` describe values of internal topics and of the consumer protocol.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from msgspec import Struct

from kcluster.packaged import packaged_text

SCHEMA_DIR: Final = "protocol/codec/schema"
"""The folder of the schema table, inside the package."""
LAST_VERSION: Final = 32767
NEVER: Final = (0, -1)
ZERO_UUID: Final = bytes(16)
NEW_LIST: Final = ()
NEW_STRUCT: Final = ...
"""The default of an array or a struct: a new empty one for each message."""

FIXED_TYPES: Final = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "float64": "d", "uuid": "16s",
}  # fmt: skip
"""Types of fixed size -> their struct format."""
VARIABLE_TYPES: Final = ("string", "bytes", "records")

Versions = tuple[int, int]
"""The lowest and the highest version; NEVER if there are none."""


class FieldSchema(Struct, frozen=True):
    """One field in all versions."""

    name: str
    type: str
    """A type of FIXED_TYPES or VARIABLE_TYPES, or a struct's name; if is_array, the type of its
    elements."""
    is_array: bool
    versions: Versions
    null_versions: Versions
    tag: int
    tagged_versions: Versions
    default: Any
    """None, bool, int, float, str, bytes; or NEW_LIST, NEW_STRUCT."""
    is_ignorable: bool
    struct: StructSchema | None

    def is_in(self, version: int) -> bool:
        return self.versions[0] <= version <= self.versions[1]

    def may_be_null(self, version: int) -> bool:
        return self.null_versions[0] <= version <= self.null_versions[1]

    def is_tagged(self, version: int) -> bool:
        return self.tagged_versions[0] <= version <= self.tagged_versions[1]


class StructSchema(Struct, frozen=True):
    """A struct's fields, in the order of the schema and of the wire."""

    name: str
    fields: tuple[FieldSchema, ...]

    def untagged(self, version: int) -> list[FieldSchema]:
        """Fields that every message of this version has, in wire order."""
        return [f for f in self.fields if f.is_in(version) and not f.is_tagged(version)]

    def tagged(self, version: int) -> list[FieldSchema]:
        """Fields that a message of this version may have after the others, ordered by tag."""
        fields = [f for f in self.fields if f.is_in(version) and f.is_tagged(version)]
        return sorted(fields, key=lambda f: f.tag)


class MessageSchema(Struct, frozen=True):
    """A request, a response or a record."""

    name: str
    versions: Versions
    """All versions in the table, which has the versions of 4.4.0 and 3.9.1."""
    flexible: Versions
    """The versions with compact lengths and tagged fields (KIP-482)."""
    top: StructSchema
    ignores_rest: bool
    """Whether bytes may follow the last field: for some APIs 4.4.0 ignores them."""

    def is_flexible(self, version: int) -> bool:
        return self.flexible[0] <= version <= self.flexible[1]


class ApiLine(Struct, frozen=True):
    """One line of index.txt."""

    name: str
    key: int
    versions: Versions
    """The versions that 4.4.0 serves; NEVER for APIs that 4.0 removed."""
    versions_3_9: Versions
    flexible: Versions
    listeners: tuple[str, ...]
    is_latest_unstable: bool

    @property
    def all_versions(self) -> Versions:
        known = [v for v in (self.versions, self.versions_3_9) if v != NEVER]
        return min(v[0] for v in known), max(v[1] for v in known)


class RecordLine(Struct, frozen=True):
    """One line of records/index.txt."""

    name: str
    kind: str
    """coordinator-key, coordinator-value, data or metadata."""
    number: int
    """The record type, with which every key and every metadata record begins; -1 for data."""
    versions: Versions
    flexible: Versions


def parse_versions(text: str) -> Versions:
    """The versions in `3-7`, `3+`, `3` or `none`."""
    if text == "none":
        return NEVER
    if text.endswith("+"):
        return int(text[:-1]), LAST_VERSION
    low, _, high = text.partition("-")
    return int(low), int(high or low)


@cache
def api_lines() -> dict[str, ApiLine]:
    """API name (`Produce`) -> its line, ordered by API key."""
    lines = {}
    for line in packaged_text(f"{SCHEMA_DIR}/index.txt").splitlines():
        name, key, _, now, _, before, _, flexible, _, *rest = (
            line.replace(":", "").replace(",", "").split()
        )
        is_unstable = rest[-1] == "unstable"
        listeners = [word for word in rest if word in ("broker", "controller")]
        lines[name] = ApiLine(
            name,
            int(key),
            parse_versions(now),
            parse_versions(before),
            parse_versions(flexible),
            tuple(listeners),
            is_unstable,
        )
    return lines


@cache
def record_lines() -> dict[str, RecordLine]:
    """Record name (`OffsetCommitKey`) -> its line."""
    lines = {}
    for line in packaged_text(f"{SCHEMA_DIR}/records/index.txt").splitlines():
        head, _, rest = line.partition(":")
        name, _, number = head.partition(" ")
        kind, _, versions, _, flexible = rest.replace(",", "").split()
        lines[name] = RecordLine(
            name, kind, int(number or -1), parse_versions(versions), parse_versions(flexible)
        )
    return lines


@cache
def message_schema(name: str) -> MessageSchema:
    """The schema of `ProduceRequest`, `OffsetCommitKey`, …; KeyError if there is none."""
    if name in record_lines():
        record = record_lines()[name]
        text = packaged_text(f"{SCHEMA_DIR}/records/{name}.txt")
        top = _parse(name, text, "record")
        return MessageSchema(name, record.versions, record.flexible, top, False)
    api, kind = (name[:-7], "request") if name.endswith("Request") else (name[:-8], "response")
    line = api_lines()[api]
    if name != api + kind.capitalize():
        raise KeyError(name)
    text = packaged_text(f"{SCHEMA_DIR}/{api}.txt")
    top = _parse(name, text, kind)
    return MessageSchema(name, line.all_versions, line.flexible, top, kind == "request")


def message_names() -> list[str]:
    """All messages, ordered by API key, then the records."""
    apis = [api + kind for api in api_lines() for kind in ("Request", "Response")]
    return apis + list(record_lines())


def structs_below(top: StructSchema) -> dict[str, StructSchema]:
    """Name -> struct, of all structs inside `top`, inner ones first."""
    structs: dict[str, StructSchema] = {}
    for field in top.fields:
        if field.struct is not None:
            structs |= structs_below(field.struct)
            assert structs.get(field.type, field.struct) == field.struct, field.type
            structs[field.type] = field.struct
    return structs


Tree = list[tuple[list[str], "Tree"]]
"""Lines, split into words, each with the lines indented below it."""


def _parse(name: str, text: str, section: str) -> StructSchema:
    tree: Tree = []
    levels = [tree]
    for line in text.splitlines():
        if words := line.split():
            depth = (len(line) - len(line.lstrip())) // 2
            children: Tree = []
            levels[depth].append((words, children))
            levels[depth + 1 :] = [children]
    body = next(children for words, children in tree if words == [section])
    commons = {words[1]: below for words, below in body if words[0] == "struct"}
    return _struct(name, [line for line in body if line[0][0] != "struct"], commons)


def _struct(name: str, lines: Tree, commons: dict[str, Tree]) -> StructSchema:
    return StructSchema(name, tuple(_field(words, below, commons) for words, below in lines))


def _field(words: list[str], below: Tree, commons: dict[str, Tree]) -> FieldSchema:
    name, versions, kind, *rest = words
    is_array = kind.startswith("[]")
    kind = kind.removeprefix("[]")
    struct = None
    if kind not in FIXED_TYPES and kind not in VARIABLE_TYPES:
        struct = _struct(kind, below or commons[kind], commons)
    null, tagged, tag, ignorable, default = NEVER, NEVER, -1, False, _zero(kind, is_array)
    at = 0
    while at < len(rest):
        match rest[at]:
            case "null":
                null = parse_versions(rest[at + 1])
                at += 2
            case "tag":
                tag, tagged = int(rest[at + 1]), parse_versions(rest[at + 2])
                at += 3
            case "=":
                default = json.loads(rest[at + 1])
                at += 2
            case word:
                assert word == "ignorable", f"{name}: {word}?"
                ignorable = True
                at += 1
    return FieldSchema(
        name,
        kind,
        is_array,
        parse_versions(versions),
        null,
        tag,
        tagged,
        default,
        ignorable,
        struct,
    )


def _zero(kind: str, is_array: bool) -> object:
    if is_array:
        return NEW_LIST
    match kind:
        case "string":
            return ""
        case "bytes":
            return b""
        case "uuid":
            return ZERO_UUID
        case "records":
            return None
        case "bool":
            return False
        case "float64":
            return 0.0
    return 0 if kind in FIXED_TYPES else NEW_STRUCT
