"""Bytes of the protocol, one value at a time: helpers for compiled codecs, and the careful decoder.

Owns: variable-length integers, and `decode_carefully`, which walks the schema and knows position
and path of everything it reads.  Never: used on the hot path, where compiled functions decode
(compiler.py).  When these fail they call the careful decoder, which finds the fault and its place.
Both accept the same bytes and return the same message.  Kafka: ByteUtils, ByteBufferAccessor,
generated readers.
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Packer
from typing import Any, Final

from kcluster.protocol.codec.schema import FIXED_TYPES, FieldSchema, MessageSchema, StructSchema
from kcluster.protocol.errors import ProtocolError, StringTooLong
from kcluster.protocol.messages import Message

Buffer = bytes | bytearray | memoryview

STRING_SIZE_MAX: Final = 0x7FFF
"""The most UTF-8 bytes that one string may have, in compact form too.  Kafka: the generated
readers' check."""
_UVARINT_MAX: Final = 0x7FFFFFFF
ONE_BYTE: Final = tuple(bytes((n,)) for n in range(256))
INT16_ARRAYS: Final = tuple(Packer(f">{n}h") for n in range(32))
INT32_ARRAYS: Final = tuple(Packer(f">{n}i") for n in range(32))
PACKERS: Final = {name: Packer(">" + code) for name, code in FIXED_TYPES.items()}


# -------------------------------------------------------------------- helpers of compiled functions

Namespace = dict[str, object]
"""The names that generated code sees."""


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint (KIP-482): 7 bits per byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string_uvarint(value: int) -> bytes:
    """The unsigned varint of the length + 1 of a compact string; see `uvarint`."""
    check_string(value - 1)
    return uvarint(value)


def check_string(size_bytes: int) -> None:
    """Raise StringTooLong for a string of more than STRING_SIZE_MAX bytes."""
    if size_bytes > STRING_SIZE_MAX:
        raise StringTooLong(size_bytes)


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """(value, next position).  IndexError at the end of the bytes; ValueError above 31 bits."""
    first = buffer[position]
    if first < 0x80:
        return first, position + 1
    return rest_of_uvarint(buffer, position + 1, first)


def rest_of_uvarint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint whose first byte has its high bit set; see `read_uvarint`."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _UVARINT_MAX:
                break
            return value, position
    raise ValueError("varint of more than 31 bits")


def rest_of_string_length(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read the rest of the length + 1 of a compact string; see `rest_of_uvarint`."""
    value, position = rest_of_uvarint(buffer, position, first)
    if value > STRING_SIZE_MAX + 1:
        raise ValueError("string too long")
    return value, position


def skip_tags(buffer: Buffer, position: int, count: int) -> int:
    """The position after the tagged fields; `count` is the first byte of their number."""
    if count > 0x7F:
        count, position = rest_of_uvarint(buffer, position, count)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
    return position


def spread(values: list[Any]) -> tuple[int, list[Any]]:
    """For a records value that is a list: (total bytes, buffers)."""
    buffers = [getattr(value, "buffer", value) for value in values]
    return sum(map(len, buffers)), buffers


# ---------------------------------------------------------------------------------- careful decoder


@cache
def min_size_bytes(struct: StructSchema, version: int, flexible: bool) -> int:
    """The least size of a struct on the wire."""
    fields = struct.untagged(version)
    return sum(_min_field_size(f, version, flexible) for f in fields) + flexible


def _min_field_size(field: FieldSchema, version: int, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    return _min_item_size(field, version, flexible)


def _min_item_size(field: FieldSchema, version: int, flexible: bool) -> int:
    if field.type in PACKERS:
        return PACKERS[field.type].size
    if field.struct is None:
        return 1 if flexible else (2 if field.type == "string" else 4)
    if field.may_be_null(version) and not field.is_array:
        return 1
    return min_size_bytes(field.struct, version, flexible)


def decode_carefully(
    schema: MessageSchema, top: type[Message], version: int, buffer: Buffer, position: int = 0
) -> Message:
    """The message that fills `buffer` from `position` on; ProtocolError if there is none."""
    reader = CarefulReader(memoryview(buffer), position, version, schema.is_flexible(version), top)
    message = reader.struct(schema.top, top)
    if reader.left and not schema.ignores_rest:
        raise ProtocolError(f"{reader.left} bytes follow the message", reader.position)
    return message


class CarefulReader:
    """The state of the careful decoder: its position and the path of the current field."""

    __slots__ = ("buffer", "flexible", "path", "position", "top", "version")

    def __init__(
        self, buffer: memoryview, position: int, version: int, flexible: bool, top: type[Message]
    ) -> None:
        self.buffer = buffer
        self.position = position
        self.version = version
        self.flexible = flexible
        self.top = top
        self.path: list[str | int] = []

    def fail(self, reason: str, position: int) -> ProtocolError:
        text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in self.path)
        return ProtocolError(reason, position, text.removeprefix("."))

    def struct(self, struct: StructSchema, kind: type[Message]) -> Message:
        values: dict[str, object] = {}
        for field in struct.untagged(self.version):
            self.path.append(field.name)
            values[field.name] = self.array(field) if field.is_array else self.item(field)
            self.path.pop()
        if self.flexible:
            self.tags(struct, values)
        return kind(**values)

    def tags(self, struct: StructSchema, values: dict[str, object]) -> None:
        by_tag = {field.tag: field for field in struct.tagged(self.version)}
        self.path.append("tags")
        count = self.uvarint()
        if count > self.left:
            raise self.fail(f"{count} tagged fields in {self.left} bytes", self.position)
        for _ in range(count):
            tag = self.uvarint()
            size = self.uvarint()
            end = self.position + size
            if size > self.left:
                raise self.fail(f"tag {tag} of {size} bytes, {self.left} left", self.position)
            field = by_tag.get(tag)
            if field is None:
                self.position = end
                continue
            self.path[-1] = field.name
            values[field.name] = self.array(field) if field.is_array else self.item(field)
            # DIFFERS: 4.4.0 does not check the size of a known tagged field.
            if self.position != end:
                raise self.fail(f"tag {tag} is not of the {size} bytes it claims", self.position)
            self.path[-1] = "tags"
        self.path.pop()

    def item(self, field: FieldSchema) -> Any:
        """One value, or one element of an array."""
        packer = PACKERS.get(field.type)
        if packer is not None:
            return packer.unpack(self.take(packer.size))[0]
        null = field.may_be_null(self.version) and not field.is_array
        if field.struct is not None:
            if null and self.is_null(field):
                return None
            return self.struct(field.struct, getattr(self.top, field.type))
        start = self.position
        size = self.length("int16" if field.type == "string" else "int32")
        if size < 0:
            if null:
                return None
            raise self.fail("null is not allowed here", start)
        if field.type == "string" and size > STRING_SIZE_MAX:
            raise self.fail(f"string of {size} bytes", start)
        if size > self.left:
            raise self.fail(f"{size} bytes claimed, {self.left} left", start)
        if field.type == "records":
            return self.take(size)
        data = bytes(self.take(size))
        if field.type == "bytes":
            return data
        # DIFFERS: 4.4.0 replaces bytes that are not UTF-8 by replacement characters.
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            at = self.position - size + error.start
            raise self.fail("not UTF-8", at) from None

    def is_null(self, field: FieldSchema) -> bool:
        """Read the marker before a struct that may be null (-1 or 1; if tagged, varint 0 or 1);
        returns whether the struct is null."""
        if field.is_tagged(self.version):
            return self.uvarint() == 0
        return self.fixed("int8") < 0

    def array(self, field: FieldSchema) -> list[Any] | None:
        start = self.position
        count = self.length("int32")
        if count < 0:
            if field.may_be_null(self.version):
                return None
            raise self.fail("null is not allowed here", start)
        needed = count * _min_item_size(field, self.version, self.flexible)
        if needed > self.left:
            raise self.fail(f"{count} elements in {self.left} bytes", start)
        items = []
        self.path.append(0)
        for index in range(count):
            self.path[-1] = index
            items.append(self.item(field))
        self.path.pop()
        return items

    @property
    def left(self) -> int:
        return len(self.buffer) - self.position

    def take(self, size: int) -> memoryview:
        if size > self.left:
            raise self.fail(f"{size} bytes needed, {self.left} left", self.position)
        self.position += size
        return self.buffer[self.position - size : self.position]

    def fixed(self, kind: str) -> int:
        packer = PACKERS[kind]
        value: int = packer.unpack(self.take(packer.size))[0]
        return value

    def length(self, kind: str) -> int:
        """Read a length; the result is below 0 for null."""
        return self.uvarint() - 1 if self.flexible else self.fixed(kind)

    def uvarint(self) -> int:
        start = self.position
        try:
            value, self.position = read_uvarint(self.buffer, start)
        except IndexError:
            raise self.fail("the bytes end inside a varint", start) from None
        except ValueError as error:
            raise self.fail(str(error), start) from None
        return value
