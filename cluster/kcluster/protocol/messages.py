"""One class per message for all its versions, built on first use.

Owns: turning a MessageSchema into msgspec.Struct classes.  Never: bytes (compiler.py).
Kafka: the generated org.apache.kafka.common.message.*Data classes.

    from kcluster.protocol import messages as m
    m.ProduceResponse(responses=[m.ProduceResponse.TopicProduceResponse(name="orders")])

Fields have the names and the order of the schema table, and Kafka's defaults; they can be passed by
position.  Types: string -> str, bytes -> bytes, uuid -> 16 bytes, arrays -> list.  A records field
is decoded to a memoryview into the frame, or None.  To be encoded it may be any bytes-like value,
None, or a list of bytes-like values or of objects with a `buffer`.  messages.pyi has the static
types.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kcluster.protocol.codec import schema as _schema
from kcluster.protocol.uuids import uuid_text


class Message(msgspec.Struct, gc=False):
    """Base class of all messages and their structs, with a short text form."""

    def __repr__(self) -> str:
        """The fields that differ from their defaults; bytes as their length, ids as Kafka prints
        them."""
        shown = []
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            default = field.default
            if field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            if value != default:
                shown.append(f"{field.name}={_text(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _text(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        if len(value) == 16 and isinstance(value, bytes):
            return uuid_text(value)
        return f"<{len(value)} bytes>"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


def message_class(name: str) -> type[Message]:
    """The class of `ProduceRequest`, `OffsetCommitKey`, …; KeyError if there is none."""
    known = globals().get(name)
    if isinstance(known, type) and known.__module__ == __name__ and known is not Message:
        return known
    top = _schema.message_schema(name).top
    classes: dict[str, type[Message]] = {}
    for struct in _schema.structs_below(top).values():
        classes[struct.name] = _build(struct, f"{name}.{struct.name}", classes, {})
    built = _build(top, name, classes, classes)
    globals()[name] = built
    return built


def _build(
    struct: _schema.StructSchema,
    qualified_name: str,
    known: dict[str, type[Message]],
    nested: dict[str, type[Message]],
) -> type[Message]:
    fields: list[object] = []
    for field in struct.fields:
        default = field.default
        if default == _schema.NEW_LIST:
            default = msgspec.field(default_factory=list)
        elif default is _schema.NEW_STRUCT:
            default = msgspec.field(default_factory=known[field.type])
        fields.append((field.name, Any, default))
    return msgspec.defstruct(
        struct.name,
        fields,
        bases=(Message,),
        module=__name__,
        namespace={**nested, "__qualname__": qualified_name},
        gc=False,
    )


def __getattr__(name: str) -> type[Message]:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return message_class(name)
    except KeyError:
        raise AttributeError(f"Kafka has no message {name}") from None


def __dir__() -> list[str]:
    return [*_schema.message_names(), "Message", "message_class"]
