"""Codecs: decode and encode functions of one message version, compiled when first used.

Owns: Codec, RecordCodec.  Never: writes source (compile_decoder.py, compile_encoder.py), explains
why bytes do not decode (compiled functions call primitives.decode_carefully for that).
Kafka: MessageDataGenerator's read and write; coordinator records: CoordinatorRecordSerde.
"""

from __future__ import annotations

from functools import partial
from struct import Struct as Packer
from struct import error as StructError
from typing import Any, Final, Protocol

from kcluster.protocol.codec.compile_decoder import decoder_source
from kcluster.protocol.codec.compile_encoder import encoder_source
from kcluster.protocol.codec.primitives import Buffer, Namespace, decode_carefully
from kcluster.protocol.codec.schema import api_lines, message_schema, record_lines
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.messages import Message, message_class

_INT16: Final = Packer(">h")
_CONTROLLED_SHUTDOWN: Final = 7
_API_VERSIONS: Final = 18


class Decode(Protocol):
    """Returns the message that fills `buffer` from `position` on; ProtocolError if there is none.
    Its records are views into `buffer`; its strings and bytes are copies."""

    def __call__(self, buffer: Buffer, position: int = 0, /) -> Any: ...


class Encode(Protocol):
    """Returns the message's bytes as buffers: one, unless it has records, which are not copied.
    Fields that the version does not have are left out."""

    def __call__(self, message: object, /) -> list[Buffer]: ...


def compile_decoder(name: str, version: int, on_failure: Decode | None = None) -> Decode:
    """The decoder of a message version (`ProduceRequest`, 9).  It calls `on_failure`, by default
    the careful decoder, for bytes that it cannot read."""
    schema, top = message_schema(name), message_class(name)
    source, names = decoder_source(schema, top, version)
    names["StructError"] = StructError
    names["decode_carefully"] = on_failure or partial(decode_carefully, schema, top, version)
    decode: Decode = _defined("decode", source, f"<decode {name} v{version}>", names)
    return decode


def compile_encoder(name: str, version: int) -> Encode:
    """The encoder of a message version."""
    source, names = encoder_source(message_schema(name), message_class(name), version)
    encode: Encode = _defined("encode", source, f"<encode {name} v{version}>", names)
    return encode


def _defined(name: str, source: str, title: str, names: Namespace) -> Any:
    """The object that generated code defines under a name."""
    exec(compile(source, title, "exec"), names)
    return names[name]


class Codec:
    """One API version.  Each of its four functions is compiled at the first call, and then
    replaced.  So callers keep the codec, not a function."""

    __slots__ = (
        "api_key", "decode_request", "decode_response", "encode_request", "encode_response",
        "is_flexible", "name", "request_header_version", "response_header_version", "version",
    )  # fmt: skip
    decode_request: Decode
    decode_response: Decode
    encode_request: Encode
    encode_response: Encode

    def __init__(self, name: str, api_key: int, version: int) -> None:
        flexible = api_lines()[name].flexible
        self.name = name
        self.api_key = api_key
        self.version = version
        self.is_flexible = flexible[0] <= version <= flexible[1]
        self.request_header_version = 2 if self.is_flexible else 1
        if api_key == _CONTROLLED_SHUTDOWN and version == 0:
            self.request_header_version = 0
        # The answer to a client that does not know the broker's versions yet must be readable in
        # version 0.
        self.response_header_version = int(self.is_flexible and api_key != _API_VERSIONS)
        self.decode_request = self._lazy_decoder("decode_request", name + "Request")
        self.decode_response = self._lazy_decoder("decode_response", name + "Response")
        self.encode_request = self._lazy_encoder("encode_request", name + "Request")
        self.encode_response = self._lazy_encoder("encode_response", name + "Response")

    def _lazy_decoder(self, attribute: str, message: str) -> Decode:
        def decode(buffer: Buffer, position: int = 0, /) -> object:
            compiled = compile_decoder(message, self.version)
            setattr(self, attribute, compiled)
            return compiled(buffer, position)

        return decode

    def _lazy_encoder(self, attribute: str, message: str) -> Encode:
        def encode(value: object, /) -> list[Buffer]:
            compiled = compile_encoder(message, self.version)
            setattr(self, attribute, compiled)
            return compiled(value)

        return encode


class RecordCodec:
    """One version of a value of an internal topic or of the consumer protocol.

    `encode` and `decode` are for the bare value.  `encode_prefixed` and `decode_prefixed` are for
    the value as it is stored, after a number: the record type for a coordinator's key, the version
    for any other value.
    """

    __slots__ = ("decode", "encode_to_buffers", "kind", "name", "prefix", "version")

    def __init__(self, name: str, version: int) -> None:
        line = record_lines()[name]
        self.name = name
        self.version = version
        self.kind = line.kind
        self.prefix = line.number if line.kind == "coordinator-key" else version
        self.decode = compile_decoder(name, version)
        self.encode_to_buffers = compile_encoder(name, version)

    def encode(self, message: Message) -> bytes:
        """Encode the bare value."""
        return bytes(self.encode_to_buffers(message)[0])

    def encode_prefixed(self, message: Message) -> bytes:
        """Encode the value with the number before it."""
        return _INT16.pack(self.prefix) + self.encode(message)

    def decode_prefixed(self, buffer: Buffer) -> Any:
        """Decode a value with the number before it, which must be this codec's."""
        if len(buffer) < 2:
            raise ProtocolError(f"{len(buffer)} bytes are too few for a {self.name}", 0)
        (prefix,) = _INT16.unpack_from(buffer)
        if prefix != self.prefix:
            raise ProtocolError(f"{prefix} instead of {self.prefix} before a {self.name}", 0)
        return self.decode(buffer, 2)
