"""The effects of a rule on a request or its reply, as values.

Owns: the effects, in rules and in events.  Never: carries them out (runtime/gate.py), makes words
for them (words/).  Kafka: no counterpart; toxiproxy's toxics, but they know the protocol.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.events.base import kind_of
from kcluster.protocol.errors import ErrorCode


class Half(StrEnum):
    """The half of an exchange that an effect concerns."""

    REQUEST = "request"
    REPLY = "reply"


class CloseTime(StrEnum):
    """The time at which a connection is closed: before the broker sees the request, or after it has
    served it."""

    BEFORE = "before"
    AFTER = "after"


class Corruption(StrEnum):
    """What a consumer can know of a changed value: the batch's CRC is wrong, or right."""

    CRC = "crc"
    VALUE = "value"


class RuleEffect(Struct, frozen=True, gc=False, tag_field="kind", tag=kind_of):
    """The base of the effects of a rule."""


class AnswerError(RuleEffect, frozen=True):
    """Answer with an error (a name of ErrorCode).  The broker never sees the request; but with
    `after`, it first serves the request, and the client still gets the error."""

    error: str
    after: bool = False

    @property
    def code(self) -> ErrorCode:
        return ErrorCode[self.error]


class Delay(RuleEffect, frozen=True):
    """Hold a request (or, with `of=Half.REPLY`, its reply) for `delay_ms` plus up to `jitter_ms`,
    uniformly distributed.  Its connection waits; other connections do not."""

    delay_ms: int
    of: Half = Half.REQUEST
    jitter_ms: int = 0


class Drop(RuleEffect, frozen=True):
    """Lose a request before the broker sees it, or, with `of=Half.REPLY`, the reply after the
    broker has served the request, a common origin of duplicates.  No later reply reaches the client
    over this connection, since replies come in order.  With `close` the connection is closed at
    once, and the client need not wait for its timeout."""

    of: Half = Half.REQUEST
    close: bool = False


class Close(RuleEffect, frozen=True):
    """Close the connection."""

    when: CloseTime = CloseTime.BEFORE


class ThrottleClient(RuleEffect, frozen=True):
    """Answer with throttle_time_ms, and mute the connection for as long (KIP-219)."""

    throttle_ms: int


class StaleMetadata(RuleEffect, frozen=True):
    """Answer from the metadata that this broker had when the rule was added."""


class Reorder(RuleEffect, frozen=True):
    """Hold a request until the rule matches a request of another connection to the same broker,
    which then overtakes it; for `limit_ms` at most."""

    limit_ms: int = 1_000


class DuplicateRecords(RuleEffect, frozen=True):
    """Append the batches of a Produce a second time after the broker has appended them, as an
    application that sends its records twice.  The copies have offsets of their own and no producer
    id, so that idempotence does not recognize them.  Transactions are left alone."""


class CorruptRecords(RuleEffect, frozen=True):
    """Invert the first byte of one value in the answer to a fetch, for each partition: the last
    value of the first batch that has a value.  The log stays sound."""

    of: Corruption = Corruption.CRC


class EmptyFetch(RuleEffect, frozen=True):
    """Answer a fetch without records although there are some.  The high watermark is true.  If no
    partition has records left, the answer comes after the fetch's max_wait_ms."""


class ReplaceSchemaId(RuleEffect, frozen=True):
    """Replace the schema id in the values of a fetch's answer.  Values in another format than
    Confluent's (a zero byte, the id in 4 bytes) stay as they are.  So does the log."""

    schema_id: int


class CapVersion(RuleEffect, frozen=True):
    """Serve an API like a broker that does not know its versions above `max_version`: ApiVersions
    leaves them out, and a request in one of them closes its connection."""

    max_version: int


AnyEffect = (
    AnswerError
    | Delay
    | Drop
    | Close
    | ThrottleClient
    | StaleMetadata
    | Reorder
    | DuplicateRecords
    | CorruptRecords
    | EmptyFetch
    | ReplaceSchemaId
    | CapVersion
)
EFFECTS: Final = (
    AnswerError, Delay, Drop, Close, ThrottleClient, StaleMetadata, Reorder, DuplicateRecords,
    CorruptRecords, EmptyFetch, ReplaceSchemaId, CapVersion,
)  # fmt: skip
EFFECTS_ON_FETCHED: Final = (CorruptRecords, EmptyFetch, ReplaceSchemaId)
"""Effects on records in the answer to a fetch."""
EFFECTS_ON_RECORDS: Final = (DuplicateRecords, *EFFECTS_ON_FETCHED)
"""Effects that need an answer with records: a rule with one of them matches such exchanges only."""
