"""A request that passes the proxy, and what is known of its answer.

Owns: this value, and reading it from a request's header.  Never: decodes a body.
Kafka: RequestContext, ClientRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packer
from struct import error as StructError
from typing import Final

from msgspec import Struct

from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import RequestHeader, decode_request_header
from kcluster.protocol.messages import Message
from kcluster.proxy.sessions import FetchPart, PartKey
from kcluster.runs.proxied_rows import BatchHead

BARE_TOKEN: Final = -1
"""Instead of an API key, for a token of SASL without a header, which follows SaslHandshake v0."""

_CORRELATION_ID: Final = Packer(">i")
_PRODUCE: Final = int(ApiKey.PRODUCE)
_ACKS: Final = Packer(">h")
_FIRST_WITH_TRANSACTIONS: Final = 3
_FIRST_FLEXIBLE_PRODUCE: Final = 9


class AskedRequest(Struct, gc=False):
    """What the record keeps of a request until its answer.  `heads`: of a Produce, the batches by
    (topic id, topic, partition); `parts`: of a Fetch, its partitions with those of its session."""

    body: Message
    heads: list[tuple[bytes, str, int, list[BatchHead]]] = []
    parts: dict[PartKey, FetchPart] = {}


class Exchange(Struct, gc=False):
    """A request and its answer.

    `asked_ms`: since 1970; `asked_s`: the same moment on the monotonic clock.  `size_bytes`: of the
    request, without its length.  `is_answered`: whether an answer is to come.  `on_answer`: what a
    rule does with the answer.  `is_held`: whether a rule sends the answer later.  `is_own`: whether
    the proxy itself asks, so that the answer is for no client.  `kept`: what the record keeps of
    the request.  `rule`: the name of the rule that applied.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    asked_ms: int
    asked_s: float
    size_bytes: int
    body_position: int = 0
    is_answered: bool = True
    on_answer: Callable[[Message], Message | None] | None = None
    is_held: bool = False
    is_own: bool = False
    kept: AskedRequest | None = None
    rule: str = ""


def exchange_of(frame: memoryview, asked_ms: int, asked_s: float) -> Exchange:
    """The exchange that a request's frame begins; ProtocolError for bytes without a header."""
    header = decode_request_header(frame, "replace")  # the broker judges a client id
    return Exchange(
        header.api_key,
        header.api_version,
        header.correlation_id,
        header.client_id or "",
        asked_ms,
        asked_s,
        len(frame),
        header.body_position,
        header.api_key != _PRODUCE or acks_of(header, frame) != 0,
    )


def bare_token(frame: memoryview, asked_ms: int, asked_s: float) -> Exchange:
    """The exchange of a SASL token without a header."""
    return Exchange(BARE_TOKEN, 0, 0, "", asked_ms, asked_s, len(frame))


def acks_of(header: RequestHeader, frame: memoryview) -> int:
    """The acks of a Produce request, which come after the transactional id; 1 if the bytes end
    before."""
    position = header.body_position
    try:
        if header.api_version >= _FIRST_FLEXIBLE_PRODUCE:
            length, shift = 0, 0
            while True:
                byte = frame[position]
                position += 1
                length |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            position += max(length - 1, 0)
        elif header.api_version >= _FIRST_WITH_TRANSACTIONS:
            position += 2 + max(_ACKS.unpack_from(frame, position)[0], 0)
        acks: int = _ACKS.unpack_from(frame, position)[0]
    except (IndexError, StructError):
        return 1
    return acks


def correlation_id_of(frame: memoryview) -> int | None:
    """The correlation id of an answer; None if it is too short to have one."""
    if len(frame) < _CORRELATION_ID.size:
        return None
    number: int = _CORRELATION_ID.unpack_from(frame)[0]
    return number
