"""Messages made up from the schema table: same seed, same message.  Not a test file."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from kcluster.protocol.codec.primitives import PACKERS
from kcluster.protocol.codec.schema import FieldSchema, MessageSchema, StructSchema, message_schema
from kcluster.protocol.messages import Message, message_class

BITS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}
TEXTS = ("", "orders", "ä€𝄞", "x" * 126, "y" * 127, "z" * 300)
SIZES = (0, 1, 2, 5)


class Generator:
    """`wild`: extremes, long strings, arrays beyond the one-byte length.  Otherwise values that
    every codec takes for what they are (known error codes, times of our century)."""

    def __init__(self, seed: int | str, wild: bool) -> None:
        self.rng = Random(seed)
        self.wild = wild

    def message(self, name: str, version: int) -> Any:
        return self.struct(message_schema(name).top, message_class(name), version, 0)

    def struct(self, schema: StructSchema, top: type[Message], version: int, depth: int) -> Message:
        kind = top if depth == 0 else getattr(top, schema.name)
        values = {
            field.name: self.field(field, top, version, depth)
            for field in schema.fields
            if field.is_in(version) and not (field.is_tagged(version) and self.rng.random() < 0.4)
        }
        return kind(**values)

    def field(self, field: FieldSchema, top: type[Message], version: int, depth: int) -> Any:
        if field.may_be_null(version) and self.rng.random() < 0.3:
            return None
        if not field.is_array:
            return self.item(field, top, version, depth)
        count = self.rng.choice(SIZES) if depth < 3 else self.rng.randrange(2)
        if self.wild and field.struct is None and self.rng.random() < 0.1:
            count = 200
        return [self.item(field, top, version, depth) for _ in range(count)]

    def item(self, field: FieldSchema, top: type[Message], version: int, depth: int) -> Any:
        rng = self.rng
        if field.struct is not None:
            return self.struct(field.struct, top, version, depth + 1)
        match field.type:
            case "bool":
                return rng.random() < 0.5
            case "float64":
                return rng.choice((0.0, -1.5, 1e300, math.pi))
            case "string":
                return rng.choice(TEXTS) if self.wild else rng.choice(TEXTS[1:3])
            case "bytes":
                return rng.randbytes(rng.choice((0, 3, 126, 127, 500)))
            case "records":
                return memoryview(rng.randbytes(rng.choice((0, 3, 126, 127, 500))))
            case "uuid":
                return rng.randbytes(16)
        return self.integer(field)

    def integer(self, field: FieldSchema) -> int:
        rng, bits = self.rng, BITS[field.type]
        if not self.wild:
            if field.name.endswith("error_code"):
                return rng.randrange(0, 100)
            return rng.randrange(1 << min(bits, 40))
        low = 0 if field.type.startswith("u") else -(1 << bits)
        return rng.choice((low, (1 << bits) - 1, 0, 1, 127, rng.randrange(1 << bits)))


def visible(message: Any, schema: MessageSchema, version: int) -> Any:
    """The message with all that `version` has no room for put back to its default."""
    return _visible(message, schema.top, version)


def _visible(message: Any, struct: StructSchema, version: int) -> Any:
    values = {}
    for field in struct.fields:
        if not field.is_in(version):
            continue
        value = getattr(message, field.name)
        if field.struct is not None and value is not None:
            inner = field.struct
            value = (
                [_visible(v, inner, version) for v in value]
                if field.is_array
                else _visible(value, inner, version)
            )
        values[field.name] = value
    return type(message)(**values)


__all__ = ["PACKERS", "Generator", "visible"]
