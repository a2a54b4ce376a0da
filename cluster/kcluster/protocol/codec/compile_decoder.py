"""Writes the Python source that decodes one message version.

Owns: generated decoders.  Never: runs them (compiler.py).

Four things make them fast.  Adjacent fields of fixed size, and the first byte of the length after
them, are read by one struct.Struct.  Short lengths and absent tags cost one comparison. Nested
structs are inlined, so a message is one function.  Classes are built by position.

Strings need no check of their size, and no claimed size is allocated: a slice past the end is
silently short in Python, but it moves the position past the end too, so the next read, or the check
at the end, fails.

Variables in the source: b the bytes, p the position, s the start, m a memoryview of the buffer.
"""

from __future__ import annotations

from struct import Struct as Packer

from kcluster.protocol.codec import primitives
from kcluster.protocol.codec.primitives import Namespace
from kcluster.protocol.codec.schema import (
    FIXED_TYPES,
    NEW_LIST,
    NEW_STRUCT,
    FieldSchema,
    MessageSchema,
    StructSchema,
)
from kcluster.protocol.messages import Message

_ARRAYS = {"int32": "INT32_ARRAYS", "int16": "INT16_ARRAYS"}


def decoder_source(
    schema: MessageSchema, top: type[Message], version: int
) -> tuple[str, Namespace]:
    """Return (source of `def decode(buffer, p=0)`, the globals that it needs)."""
    writer = _DecoderWriter(schema, top, version)
    value = writer.struct(schema.top, top)
    writer.flush()
    has_records = _has_records(schema.top, version)
    start = "m = b = buffer if type(buffer) is memoryview else memoryview(buffer)"
    lines = [
        "def decode(buffer, p=0):",
        "    s = p",
        "    try:",
        f"        {start if has_records else 'b = bytes(buffer)'}",
        *writer.lines,
        f"        if p {'>' if schema.ignores_rest else '!='} len(b): raise ValueError",
        f"        return {value}",
        "    except (StructError, IndexError, ValueError):",
        "        return decode_carefully(buffer, s)",
        "",
    ]
    return "\n".join(lines), writer.names


def _has_records(struct: StructSchema, version: int) -> bool:
    return any(
        f.type == "records" or (f.struct is not None and _has_records(f.struct, version))
        for f in struct.fields
        if f.is_in(version)
    )


class _DecoderWriter:
    """Collects lines.  `run`: pending reads of fixed size, as (struct format, variable)."""

    def __init__(self, schema: MessageSchema, top: type[Message], version: int) -> None:
        self.version = version
        self.flexible = schema.is_flexible(version)
        self.top = top
        self.lines: list[str] = []
        self.depth = 2
        self.run: list[tuple[str, str]] = []
        self.count = 0
        self.names: Namespace = {
            name: getattr(primitives, name)
            for name in (
                "rest_of_uvarint",
                "rest_of_string_length",
                "read_uvarint",
                "skip_tags",
                "INT32_ARRAYS",
                "INT16_ARRAYS",
            )
        }

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def variable(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def unpacker(self, code: str) -> tuple[str, int]:
        packer = Packer(">" + code)
        name = f"U_{code.replace('?', 'o')}"
        self.names[name] = packer.unpack_from
        return name, packer.size

    def flush(self) -> None:
        """Write one read for all pending reads."""
        if not self.run:
            return
        code = "".join(code for code, _ in self.run)
        if code == "B":
            self.emit(f"{self.run[0][1]} = b[p]; p += 1")
        else:
            name, size = self.unpacker(code)
            self.emit(f"{', '.join(v for _, v in self.run)}, = {name}(b, p); p += {size}")
        self.run = []

    def struct(self, struct: StructSchema, kind: type[Message]) -> str:
        """Write the code that reads a struct; returns the expression that builds it."""
        self.names[kind.__name__] = kind
        values = {f.name: self.field(f) for f in struct.untagged(self.version)}
        if self.flexible:
            values |= self.tags(struct)
        self.flush()
        fields = struct.fields
        while fields and fields[-1].name not in values:
            fields = fields[:-1]  # the class has the defaults
        arguments = [values.get(f.name) or self.default(f) for f in fields]
        return f"{kind.__name__}({', '.join(arguments)})"

    def default(self, field: FieldSchema) -> str:
        if field.default is NEW_STRUCT:
            self.names[field.type] = getattr(self.top, field.type)
            return f"{field.type}()"
        return "[]" if field.default == NEW_LIST else repr(field.default)

    def field(self, field: FieldSchema) -> str:
        """Write the code that reads a field; returns its variable, which the next flush sets."""
        return self.array(field) if field.is_array else self.item(field)

    def item(self, field: FieldSchema) -> str:
        target = self.variable()
        null = field.may_be_null(self.version) and not field.is_array
        if field.type in FIXED_TYPES:
            self.run.append((FIXED_TYPES[field.type], target))
        elif field.struct is None:
            self.sized(field.type, target, null)
        elif null:
            marker = self.variable()
            if field.is_tagged(self.version):
                self.emit(f"{marker}, p = read_uvarint(b, p)")
                self.emit(f"if not {marker}: {target} = None")
            else:
                self.run.append(("b", marker))
                self.flush()
                self.emit(f"if {marker} < 0: {target} = None")
            self.emit("else:")
            self.depth += 1
            value = self.struct(field.struct, getattr(self.top, field.type))
            self.emit(f"{target} = {value}")
            self.depth -= 1
        else:
            value = self.struct(field.struct, getattr(self.top, field.type))
            self.emit(f"{target} = {value}")
        return target

    def length(self, code: str, rest_of_length: str) -> str:
        """Write the code that reads a length or count; in flexible versions its variable is one
        greater, 0 for null."""
        n = self.variable()
        self.run.append(("B" if self.flexible else code, n))
        self.flush()
        if self.flexible:
            self.emit(f"if {n} > 127: {n}, p = {rest_of_length}(b, p, {n})")
        return n

    def null_or(self, n: str, target: str, null: bool) -> None:
        """Write the check for null; if null is allowed, the code that follows is the `else`
        branch."""
        is_null = f"not {n}" if self.flexible else f"{n} < 0"
        if null:
            self.emit(f"if {is_null}: {target} = None")
            self.emit("else:")
            self.depth += 1
        else:
            self.emit(f"if {is_null}: raise ValueError")

    def sized(self, kind: str, target: str, null: bool) -> None:
        """Write the code that reads a string, bytes or records."""
        code = "h" if kind == "string" else "i"
        rest = "rest_of_string_length" if kind == "string" else "rest_of_uvarint"
        n = self.length(code, rest)
        self.null_or(n, target, null)
        end = f"p + {n} - 1" if self.flexible else f"p + {n}"
        self.emit(f"q = {end}")
        value = {"string": "str(b[p:q], 'utf-8')", "bytes": "bytes(b[p:q])", "records": "m[p:q]"}
        self.emit(f"{target} = {value[kind]}; p = q")
        self.depth -= null

    def array(self, field: FieldSchema) -> str:
        target = self.variable()
        null = field.may_be_null(self.version)
        n = self.length("i", "rest_of_uvarint")
        self.null_or(n, target, null)
        if self.flexible:
            self.emit(f"{n} -= 1")
        if field.type in _ARRAYS:
            code = FIXED_TYPES[field.type]
            name = _ARRAYS[field.type]
            size = Packer(">" + code).size
            self.emit(f"if {n} < 32: {target} = list({name}[{n}].unpack_from(b, p))")
            self.emit(f"elif {n} * {size} > len(b) - p: raise ValueError")
            self.names["Packer"] = Packer
            self.emit(f"else: {target} = list(Packer(f'>{{{n}}}{code}').unpack_from(b, p))")
            self.emit(f"p += {n} * {size}")
        else:
            self.emit(f"{target} = []")
            self.emit(f"for _ in range({n}):")
            self.depth += 1
            value = self.element(field)
            self.emit(f"{target}.append({value})")
            self.depth -= 1
        self.depth -= null
        return target

    def element(self, field: FieldSchema) -> str:
        if field.struct is not None:
            return self.struct(field.struct, getattr(self.top, field.type))
        value = self.item(field)
        self.flush()
        return value

    def tags(self, struct: StructSchema) -> dict[str, str]:
        """Write the code that reads the tagged fields after a struct; returns the variables of the
        known fields."""
        count = self.variable()
        self.run.append(("B", count))
        self.flush()
        known = struct.tagged(self.version)
        if not known:
            self.emit(f"if {count}: p = skip_tags(b, p, {count})")
            return {}
        targets = {}
        for field in known:
            targets[field.name] = self.variable()
        defaults = "; ".join(f"{targets[f.name]} = {self.default(f)}" for f in known)
        self.emit(defaults)
        self.emit(f"if {count}:")
        self.depth += 1
        self.emit(f"if {count} > 127: {count}, p = rest_of_uvarint(b, p, {count})")
        tag, size, end = (self.variable() for _ in range(3))
        self.emit(f"for _ in range({count}):")
        self.depth += 1
        self.emit(f"{tag}, p = read_uvarint(b, p)")
        self.emit(f"{size}, p = read_uvarint(b, p)")
        self.emit(f"{end} = p + {size}")
        for index, field in enumerate(known):
            self.emit(f"{'el' if index else ''}if {tag} == {field.tag}:")
            self.depth += 1
            value = self.field(field)
            self.flush()
            self.emit(f"{targets[field.name]} = {value}")
            self.emit(f"if p != {end}: raise ValueError")
            self.depth -= 1
        self.emit(f"else: p = {end}")
        self.depth -= 2
        return targets
