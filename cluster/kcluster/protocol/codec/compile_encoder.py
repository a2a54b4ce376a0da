"""Writes the Python source that encodes one message version.

Owns: generated encoders.  Never: runs them (compiler.py), checks values: a wrong value is our bug
and raises struct.error, TypeError or AttributeError.  A string beyond 32,767 bytes may have come
from a client, and raises StringTooLong.

Adjacent fields of fixed size, and a length below 128 after them, are written by one
struct.Struct.pack.  Variables in the source: o the list of small pieces, a its `append`, c the list
of buffers.  The pieces are joined at the end and before each records value, which is added to c.
"""

from __future__ import annotations

from struct import Struct as Packer

from kcluster.protocol.codec import primitives
from kcluster.protocol.codec.primitives import STRING_SIZE_MAX, Namespace
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


def encoder_source(
    schema: MessageSchema, top: type[Message], version: int
) -> tuple[str, Namespace]:
    """Return (source of `def encode(message) -> list of buffers`, the globals that it needs)."""
    writer = _EncoderWriter(schema, top, version)
    writer.struct(schema.top, "message")
    writer.flush()
    end = ["return [b''.join(o)]"]
    if writer.has_records:
        end = ["if o: c.append(b''.join(o))", "return c"]
        writer.lines.insert(0, "    c = []")
    lines = [
        "def encode(message):",
        "    o = []; a = o.append",
        *writer.lines,
        *("    " + line for line in end),
        "",
    ]
    return "\n".join(lines), writer.names


class _EncoderWriter:
    """Collects lines.  `run`: pending values of fixed size, as (struct format, value)."""

    def __init__(self, schema: MessageSchema, top: type[Message], version: int) -> None:
        self.version = version
        self.flexible = schema.is_flexible(version)
        self.top = top
        self.lines: list[str] = []
        self.depth = 1
        self.run: list[tuple[str, str]] = []
        self.count = 0
        self.has_records = False
        self.names: Namespace = {
            name: getattr(primitives, name)
            for name in (
                *("uvarint", "string_uvarint", "check_string", "spread"),
                *("ONE_BYTE", "INT32_ARRAYS", "INT16_ARRAYS"),
            )
        }

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def variable(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def packed(self, run: list[tuple[str, str]]) -> str:
        """The expression that packs the pending values of fixed size."""
        code = "".join(code for code, _ in run)
        values = ", ".join(value for _, value in run)
        if code == "B":
            return f"ONE_BYTE[{values}]"
        name = f"P_{code.replace('?', 'o')}"
        self.names[name] = Packer(">" + code).pack
        return f"{name}({values})"

    def flush(self) -> None:
        if self.run:
            self.emit(f"a({self.packed(self.run)})")
            self.run = []

    def compact_length(self, n: str, encode: str) -> None:
        """Write a varint; a short one is one byte of the run.  `encode`: the helper for longer
        ones."""
        self.emit(f"if {n} < 128: a({self.packed([*self.run, ('B', n)])})")
        before = f"a({self.packed(self.run)}); " if self.run else ""
        self.emit(f"else: {before}a({encode}({n}))")
        self.run = []

    def struct(self, struct: StructSchema, source: str) -> None:
        for field in struct.untagged(self.version):
            self.field(field, f"{source}.{field.name}")
        if self.flexible:
            self.tags(struct, source)

    def field(self, field: FieldSchema, source: str) -> None:
        if field.is_array:
            self.array(field, source)
        else:
            self.item(field, source, field.may_be_null(self.version))

    def item(self, field: FieldSchema, source: str, null: bool) -> None:
        if field.type in FIXED_TYPES:
            self.run.append((FIXED_TYPES[field.type], source))
        elif field.type == "records":
            self.records(source, null)
        elif field.struct is None:
            self.sized(field.type, source, null)
        elif null:
            value = self.variable()
            self.flush()
            self.emit(f"{value} = {source}")
            null_marker = 0 if field.is_tagged(self.version) else 255
            self.emit(f"if {value} is None: a(ONE_BYTE[{null_marker}])")
            self.emit("else:")
            self.depth += 1
            self.run.append(("b", "1"))
            self.struct(field.struct, value)
            self.flush()
            self.depth -= 1
        else:
            value = self.variable()
            self.emit(f"{value} = {source}")
            self.struct(field.struct, value)

    def length(self, n: str, code: str) -> None:
        """Write a length; in flexible versions `n` is one greater than the length, 0 for null."""
        if self.flexible:
            self.compact_length(n, "string_uvarint" if code == "h" else "uvarint")
            return
        if code == "h":
            self.emit(f"if {n} > {STRING_SIZE_MAX}: check_string({n})")
        self.run.append((code, n))
        self.flush()

    def sized(self, kind: str, source: str, null: bool) -> None:
        """Write the code that packs a string or bytes."""
        value, n = self.variable(), self.variable()
        encoded = ".encode()" if kind == "string" else ""
        size = f"len({value}) + 1" if self.flexible else f"len({value})"
        self.emit(f"{value} = {source}")
        if null:
            self.emit(f"if {value} is None: {value} = b''; {n} = {0 if self.flexible else -1}")
            change = f"{value} = {value}.encode(); " if encoded else ""
            self.emit(f"else: {change}{n} = {size}")
        else:
            if encoded:
                self.emit(f"{value} = {value}.encode()")
            self.emit(f"{n} = {size}")
        self.length(n, "h" if kind == "string" else "i")
        self.emit(f"a({value})")

    def records(self, source: str, null: bool) -> None:
        self.has_records = True
        value, n, more = self.variable(), self.variable(), self.variable()
        self.emit(f"{value} = {source}")
        none = (0 if self.flexible else -1) if null else (1 if self.flexible else 0)
        self.emit(f"if {value} is None: {n} = {none}; {more} = ()")
        plus = " + 1" if self.flexible else ""
        self.emit(f"elif type({value}) is list:")
        self.emit(f"    {n}, {more} = spread({value}){f'; {n} += 1' if plus else ''}")
        self.emit(f"else: {n} = len({value}){plus}; {more} = ({value},)")
        self.length(n, "i")
        self.emit(f"if {more}: c.append(b''.join(o)); o.clear(); c.extend({more})")

    def array(self, field: FieldSchema, source: str) -> None:
        value, n = self.variable(), self.variable()
        null = field.may_be_null(self.version)
        size = f"len({value}) + 1" if self.flexible else f"len({value})"
        self.emit(f"{value} = {source}")
        if null:
            self.emit(f"if {value} is None: {value} = (); {n} = {0 if self.flexible else -1}")
            self.emit(f"else: {n} = {size}")
        else:
            self.emit(f"{n} = {size}")
        self.length(n, "i")
        if field.type in _ARRAYS:
            name, code = _ARRAYS[field.type], FIXED_TYPES[field.type]
            self.names["Packer"] = Packer
            self.emit(f"{n} = len({value})")
            self.emit(f"if {n} < 32: a({name}[{n}].pack(*{value}))")
            self.emit(f"else: a(Packer(f'>{{{n}}}{code}').pack(*{value}))")
            return
        element = self.variable()
        self.emit(f"for {element} in {value}:")
        self.depth += 1
        if field.struct is None:
            self.item(field, element, null=False)
        else:
            self.struct(field.struct, element)
        self.flush()
        self.depth -= 1

    def tags(self, struct: StructSchema, source: str) -> None:
        known = struct.tagged(self.version)
        if not known:
            self.run.append(("B", "0"))
            return
        values = {field.name: self.variable() for field in known}
        for field in known:
            self.emit(f"{values[field.name]} = {source}.{field.name}")
        is_set = {field.name: self.is_set(field, values[field.name]) for field in known}
        self.emit(f"if {' or '.join(is_set.values())}:")
        self.depth += 1
        run = [*self.run]
        self.flush()
        tagged = self.variable()
        self.emit(f"{tagged} = []")
        for field in known:
            self.emit(f"if {is_set[field.name]}:")
            self.depth += 1
            outer, body = self.variable(), self.variable()
            self.emit(f"{outer} = o; o = []; a = o.append")
            self.field(field, values[field.name])
            self.flush()
            self.emit(f"{body} = b''.join(o); o = {outer}; a = o.append")
            self.emit(f"{tagged} += (uvarint({field.tag}), uvarint(len({body})), {body})")
            self.depth -= 1
        self.emit(f"a(uvarint(len({tagged}) // 3)); o.extend({tagged})")
        self.depth -= 1
        self.emit(f"else: a({self.packed([*run, ('B', '0')])})")

    def is_set(self, field: FieldSchema, value: str) -> str:
        """Whether a tagged field is sent: only if it differs from its default (KIP-482)."""
        if field.default is None:
            return f"{value} is not None"
        if field.default is NEW_STRUCT:
            name = f"DEFAULT_{field.type}"
            self.names[name] = getattr(self.top, field.type)()
            return f"{value} != {name}"
        if field.default == NEW_LIST:
            null = f"{value} is None or " if field.may_be_null(self.version) else ""
            return f"({null}len({value}) > 0)"
        return f"{value} != {field.default!r}"
