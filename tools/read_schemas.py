"""Write the schema table and messages.pyi from the message definitions in Kafka's jars.

    python tools/read_schemas.py --newer DIR_WITH_4.4.0_JARS --older kafka-clients-3.9.1.jar

Owns: reading `common/message/*.json` and `common/metadata/*.json`, merging two releases into one
table, writing our notation (defined in cluster/kcluster/protocol/codec/schema.py).  Never: copies
prose, only facts.

Each version is taken from one release: from 4.4.0 if that serves it, else from 3.9.1 (KIP-896
removed old versions in 4.0).  A field that only 3.9.1 has is kept if none of its versions is in
4.4.0; otherwise it was renamed, and the new name is used.
Get the older jar with `mvn dependency:copy -Dartifact=org.apache.kafka:kafka-clients:3.9.1`.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "cluster"))

from kcluster.protocol.codec import schema as notation  # noqa: E402 - after the path is set

PROTOCOL = REPOSITORY / "cluster" / "kcluster" / "protocol"
SCHEMA_DIR = PROTOCOL / "codec" / "schema"
STUB = PROTOCOL / "messages.pyi"
NEWER_JARS = (
    "clients",
    "group-coordinator",
    "metadata",
    "share-coordinator",
    "transaction-coordinator",
)
HEADERS = ("RequestHeader", "ResponseHeader")  # framing.py reads these by hand
RECORD_TYPES = ("coordinator-key", "coordinator-value", "data", "metadata")
OPEN = 999
"""The upper end of `3+`."""

Definition = dict[str, Any]
Definitions = dict[str, Definition]


def read_jar(path: Path) -> Definitions:
    """Message name -> definition, of one jar."""
    found = {}
    with ZipFile(path) as jar:
        for entry in sorted(jar.namelist()):
            if re.fullmatch(r"common/(message|metadata)/\w+\.json", entry):
                text = jar.read(entry).decode()
                definition = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))
                found[definition["name"]] = definition
    return found


def bounds(text: str | None) -> range:
    """`3-7`, `3+`, `3`, `none` as a range of versions."""
    if text is None or text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), OPEN)
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


def spell(versions: list[int], served: list[int]) -> str:
    """The shortest spelling of a subset of the served versions; the inverse of `bounds`."""
    if not versions:
        return "none"
    inside = [v for v in served if versions[0] <= v <= versions[-1]]
    assert versions == inside, f"gap in {versions}"
    if versions[-1] == served[-1]:
        return f"{versions[0]}+"
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"


def snake_case(name: str) -> str:
    """Python name of a field: TopicData -> topic_data, IsKRaftController -> is_kraft_controller."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.replace("KRaft", "Kraft"))
    words = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", words).lower()
    words = words.replace("enable2_pc", "enable_2pc")
    return words + "_" if keyword.iskeyword(words) else words


class Merge:
    """One message of one or two releases: version -> the release that defines it."""

    def __init__(self, newer: Definition | None, older: Definition | None) -> None:
        new_versions = bounds((newer or {}).get("validVersions"))
        old_versions = bounds((older or {}).get("validVersions"))
        self.served = sorted({*new_versions, *old_versions})
        self.is_new = dict.fromkeys(old_versions, False) | dict.fromkeys(new_versions, True)
        self.newer, self.older = newer or {}, older or {}
        self.commons = {
            c["name"]: c for d in (self.older, self.newer) for c in d.get("commonStructs", [])
        }

    def lines(self) -> list[str]:
        """The message's fields in our notation, then its common structs."""
        out = self.fields(self.newer.get("fields", []), self.older.get("fields", []), 1)
        old_commons = {c["name"]: c for c in self.older.get("commonStructs", [])}
        for name in sorted(self.commons):
            out.append(f"  struct {name}")
            old = old_commons.get(name, {}).get("fields", [])
            out += self.fields(self.commons[name]["fields"], old, 2)
        return out

    def fields(self, newer: list[Definition], older: list[Definition], depth: int) -> list[str]:
        old_by_name = {f["name"]: f for f in older}
        new_names = {f["name"] for f in newer}
        waiting = [f for f in older if f["name"] not in new_names and self.only_old(f)]
        if not newer:
            return [line for f in older for line in self.field({}, f, depth)]
        pairs = [(new, old_by_name.get(new["name"], {})) for new in newer]
        for old in waiting:  # after the field that it followed in 3.9.1
            before = [f["name"] for f in older[: older.index(old)]]
            at = 1 + max(
                (i for i, (n, o) in enumerate(pairs) if (n or o)["name"] in before), default=-1
            )
            pairs.insert(at, ({}, old))
        return [line for new, old in pairs for line in self.field(new, old, depth)]

    def only_old(self, field: Definition) -> bool:
        versions = [v for v in field_versions(field) if v in self.is_new]
        return bool(versions) and not any(self.is_new[v] for v in versions)

    def pick(self, new: Definition, old: Definition, key: str) -> list[int]:
        """The versions in which `key` holds, each from the release that defines the version."""
        of_new, of_old = (
            {*(field_versions(f) if key == "versions" else bounds(f.get(key)))} for f in (new, old)
        )
        if not old:
            of_old = of_new  # what is new in 4.4.0 only has versions of 4.4.0
        return [v for v in self.served if v in (of_new if self.is_new[v] else of_old)]

    def field(self, new: Definition, old: Definition, depth: int) -> list[str]:
        facts = new or old
        versions = self.pick(new, old, "versions")
        if not versions:
            return []
        name = "  " * depth + snake_case(facts["name"])
        words = [f"{name:<40}", f"{spell(versions, self.served):<5}", f"{facts['type']:<8}"]
        null = [v for v in self.pick(new, old, "nullableVersions") if v in versions]
        if null:
            words.append(f"null {spell(null, self.served)}")
        tagged = [v for v in self.pick(new, old, "taggedVersions") if v in versions]
        if tagged:
            words.append(f"tag {int(facts['tag'])} {spell(tagged, self.served)}")
        if facts.get("default") is not None:  # a bare null is none; "null" is null
            words.append(f"= {default_text(facts)}")
        if facts.get("ignorable") is True:
            words.append("ignorable")
        lines = [" ".join(words).rstrip()]
        nested, nested_old = facts.get("fields", []), old.get("fields", [])
        if nested or nested_old:
            lines += self.fields(new.get("fields", []), nested_old, depth + 1)
        return lines


def field_versions(field: Definition) -> range:
    return bounds(field.get("versions", field.get("taggedVersions")))


def default_text(field: Definition) -> str:
    """A default in our notation: decimal numbers, true, false, null, strings in double quotes."""
    text = str(field["default"])
    if text == "null":
        return "null"
    if field["type"] == "bool":
        return text.lower()
    if field["type"] == "string":
        return json.dumps(text)
    return str(int(text, 0))


def api_header(request: Merge) -> str:
    """The line that `index.txt` and the API's own file begin with."""
    newer, older = request.newer, request.older
    words = [f"{(newer or older)['name'].removesuffix('Request')} {(newer or older)['apiKey']}:"]
    words.append(f"4.4.0 {newer.get('validVersions', 'none')},")
    words.append(f"3.9.1 {older.get('validVersions', 'none')},")
    words.append(f"flexible {(newer if newer.get('fields') else older)['flexibleVersions']},")
    words.append("listeners " + " ".join(newer.get("listeners") or ["none"]))
    if newer.get("latestVersionUnstable"):
        words.append(", latest unstable")
    return " ".join(words).replace(" ,", ",")


def write_apis(newer: Definitions, older: Definitions) -> None:
    index = []
    names_by_key = {(d["apiKey"], d["type"]): name for name, d in newer.items() if "apiKey" in d}
    older = {names_by_key[d["apiKey"], d["type"]]: d for d in older.values() if "apiKey" in d}
    requests = [d for d in newer.values() if d["type"] == "request"]
    for definition in sorted(requests, key=lambda d: int(d["apiKey"])):
        name = definition["name"].removesuffix("Request")
        merged = [
            Merge(newer.get(name + kind), older.get(name + kind))
            for kind in ("Request", "Response")
        ]
        assert merged[0].served == merged[1].served, name
        header = api_header(merged[0])
        index.append(header)
        lines = [header, "", "request", *merged[0].lines(), "", "response", *merged[1].lines(), ""]
        (SCHEMA_DIR / f"{name}.txt").write_text("\n".join(lines))
    (SCHEMA_DIR / "index.txt").write_text("\n".join(index) + "\n")


def write_records(newer: Definitions) -> None:
    index = []
    for name, definition in sorted(newer.items()):
        if definition["type"] in RECORD_TYPES and name not in HEADERS:
            number = definition.get("apiKey")
            header = f"{name}{'' if number is None else f' {number}'}: {definition['type']},"
            header += f" versions {definition['validVersions']},"
            header += f" flexible {definition['flexibleVersions']}"
            lines = [header, "", "record", *Merge(definition, None).lines(), ""]
            (SCHEMA_DIR / "records" / f"{name}.txt").write_text("\n".join(lines))
            index.append(header)
    (SCHEMA_DIR / "records" / "index.txt").write_text("\n".join(index) + "\n")


STUB_HEAD = '''"""Static types of messages.py.  Written by tools/read_schemas.py; do not edit."""
# ruff: noqa: E501
# fmt: off

from typing import Any

import msgspec

class Message(msgspec.Struct, gc=False): ...

def message_class(name: str) -> type[Message]: ...
'''
TYPES = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "bytes"}


def stub() -> str:
    """The text of messages.pyi."""
    lines = [STUB_HEAD]
    for name in notation.message_names():
        lines += stub_class(notation.message_schema(name).top, name)
    return "\n".join(lines)


def stub_class(schema: notation.StructSchema, top: str, indent: str = "") -> list[str]:
    """A class with its nested classes first; for a top class every struct below it, once."""
    lines = [f"{indent}class {schema.name}(Message):"]
    below = {} if indent else notation.structs_below(schema)
    for struct in below.values():
        lines += stub_class(struct, top, indent + "    ")
    for field in schema.fields:
        text = TYPES.get(field.type, "int") if field.struct is None else f"{top}.{field.type}"
        text = f"list[{text}]" if field.is_array else text
        if field.default is None or field.null_versions != notation.NEVER:
            text += " | None"
        if field.type == "records":
            text = "Any"
        lines.append(f"{indent}    {field.name}: {text} = ...")
    if not schema.fields:
        lines.append(f"{indent}    pass")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--newer", type=Path, required=True, help="directory of the 4.4.0 jars")
    parser.add_argument("--older", type=Path, required=True, help="kafka-clients-3.9.1.jar")
    arguments = parser.parse_args()
    newer: Definitions = {}
    for jar in NEWER_JARS:
        newer |= read_jar(arguments.newer / f"kafka-{jar}-4.4.0.jar")
    older = read_jar(arguments.older)
    (SCHEMA_DIR / "records").mkdir(parents=True, exist_ok=True)
    for stale in SCHEMA_DIR.rglob("*.txt"):
        stale.unlink()
    write_apis(newer, older)
    write_records(newer)
    STUB.write_text(stub())


if __name__ == "__main__":
    main()
