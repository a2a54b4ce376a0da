"""The same bytes and the same values in kafka-python's and in kio's codec.

Both were written by others from the same definitions, and share no code with ours.  Every API and
version that they have is compared; the counts say so.
"""

from __future__ import annotations

import datetime
import importlib
import io
import pkgutil
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any
from uuid import UUID

import pytest

from kcluster.protocol.apis import APIS, codec
from kcluster.protocol.codec.schema import ZERO_UUID, StructSchema, message_schema
from kcluster.protocol.messages import Message
from tests.protocol.generated import Generator

kafka_protocol = pytest.importorskip("kafka.protocol")

KINDS = ("Request", "Response")
SEEDS = range(2)
THEIR_NAMES = {
    "cluster_authorized_operations": "authorized_operations",
    "topic_authorized_operations": "authorized_operations",
    "enable_2pc": "enable2_pc",
    "generation_id_or_member_epoch": "generation_id",  # TxnOffsetCommit before 4.4
}
"""Where kafka-python calls a field by another name."""


def messages_of(name: str, key: int, version: int, kind: str) -> Iterator[tuple[Any, bytes]]:
    """(message, bytes) made from seeds, with values that every codec takes."""
    found = codec(key, version)
    encode = found.encode_request if kind == "Request" else found.encode_response
    for seed in SEEDS:
        made = Generator(f"oracle {name} {version} {seed}", wild=False)
        message = made.message(name + kind, version)
        yield message, b"".join(encode(message))


# ------------------------------------------------------------------------------- kafka-python


def kafka_python_classes() -> dict[str, Any]:
    """Message name -> class, of every module of kafka.protocol except those from before 3.0."""
    found: dict[str, Any] = {}
    for module in pkgutil.walk_packages(kafka_protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            names = vars(importlib.import_module(module.name)).items()
            found |= {n: v for n, v in names if n.endswith(KINDS) and getattr(v, "_json", None)}
    return found


def test_kafka_python__reads_and_writes_the_same() -> None:
    theirs = kafka_python_classes()
    compared = 0
    for line in APIS.values():
        for kind in KINDS:
            other = theirs.get(line.name + kind)
            if other is None:
                continue
            low, high = line.all_versions
            for version in range(low, min(high, other.max_version) + 1):
                compare_with_kafka_python(line.name, line.key, version, kind, other)
                compared += 1
    assert (len(theirs), compared) == (104, 524)


def compare_with_kafka_python(name: str, key: int, version: int, kind: str, other: Any) -> None:
    schema = message_schema(name + kind)
    for message, data in messages_of(name, key, version, kind):
        if name == "ApiVersions" and kind == "Response":
            data = b"\0\0" + data[2:]  # it reads errors as version 0, whatever the version
            message.error_code = 0
        decoded = other.decode(data, version=version)
        decoded._header = None  # which encode() looks for; decode() does not set it
        assert same_fields(message, decoded, schema.top, version), (name, version)
        assert bytes(decoded.encode(version=version)) == data, (name, version)


def same_fields(ours: Message, theirs: Any, struct: StructSchema, version: int) -> bool:
    """Whether every field that the version has is the same, by name."""
    for field in struct.fields:
        if field.is_in(version):
            known = hasattr(theirs, field.name)
            other = getattr(theirs, field.name if known else THEIR_NAMES[field.name])
            mine = getattr(ours, field.name)
            if isinstance(other, set):  # bit fields
                mine = {bit for bit in range(31) if mine >> bit & 1}
            items = zip(mine, other, strict=True) if field.is_array and mine else [(mine, other)]
            for a, b in items:
                if b is None and field.is_tagged(version):
                    if a not in (ZERO_UUID, type(a)()):  # it leaves out what is absent
                        return False
                elif field.struct is not None and a is not None and a != []:
                    if not same_fields(a, b, field.struct, version):
                        return False
                elif field.type == "uuid":
                    if UUID(bytes=a) != b and a != b:
                        return False
                elif a != b:
                    return False
    return True


# ---------------------------------------------------------------------------------------- kio


def test_kio__reads_and_writes_the_same() -> None:
    kio_serial = pytest.importorskip("kio.serial")
    index = importlib.import_module("kio.schema.index")
    entity = importlib.import_module("kio.static.constants").EntityType
    compared = 0
    for line in APIS.values():
        name = index.api_key_map.get(line.key, "")
        for version, paths in index.schema_name_map.get(name, {}).items():
            for kind in KINDS:
                path = paths[getattr(entity, kind.lower())]
                module, _, name = path.partition(":")
                other = getattr(importlib.import_module(module), name)
                compare_with_kio(kio_serial, line.name, line.key, version, kind, other)
                compared += 1
    assert compared == 604


def compare_with_kio(
    kio_serial: Any, name: str, key: int, version: int, kind: str, other: Any
) -> None:
    schema = message_schema(name + kind)
    for message, data in messages_of(name, key, version, kind):
        decoded, size = kio_serial.entity_reader(other)(data, 0)
        assert size == len(data)
        assert plain(decoded) == listed(message, schema.top, version), (name, version)
        written = io.BytesIO()
        kio_serial.entity_writer(other)(written, decoded)
        assert written.getvalue() == data, (name, version)


def plain(theirs: Any) -> Any:
    """kio's values as ours: structs as lists of their fields in order, no richer types."""
    match theirs:
        case datetime.datetime():
            return round(theirs.timestamp() * 1000)
        case datetime.timedelta():
            return theirs // datetime.timedelta(milliseconds=1)
        case UUID():
            return theirs.bytes
        case tuple():
            return [plain(value) for value in theirs]
    if is_dataclass(theirs):
        return [plain(getattr(theirs, field.name)) for field in dataclass_fields(theirs)]
    return theirs


def listed(ours: Any, struct: StructSchema, version: int) -> list[Any]:
    """Our message in the same form."""
    found = []
    for field in struct.fields:
        if field.is_in(version):
            value = getattr(ours, field.name)
            if field.struct is not None and value is not None:
                if field.is_array:
                    value = [listed(v, field.struct, version) for v in value]
                else:
                    value = listed(value, field.struct, version)
            found.append(None if value == ZERO_UUID else value)
    return found
