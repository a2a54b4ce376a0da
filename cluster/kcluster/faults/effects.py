"""What a rule does to a request or to its reply.

Owns: the effects and how each is named in text.  Never: carries them out (runtime/gate.py does).
Kafka: no counterpart; toxiproxy's toxics, but they know the protocol.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode


class AnswerError(Struct, frozen=True):
    """Answer with an error (a name of ErrorCode).  The broker never sees the request; with `after`
    it serves the request first, and the client gets the error all the same."""

    error: str
    after: bool = False

    @property
    def code(self) -> ErrorCode:
        return ErrorCode[self.error]

    def __str__(self) -> str:
        return f"answers {self.error}" + (" after serving the request" if self.after else "")


class Delay(Struct, frozen=True):
    """Hold a request (or, with `of="reply"`, its reply) for `ms` plus up to `jitter_ms`, uniformly
    distributed.  Its connection waits; others do not."""

    ms: int
    of: str = "request"
    jitter_ms: int = 0

    def __str__(self) -> str:
        more = f" to {self.ms + self.jitter_ms}" if self.jitter_ms else ""
        return f"delays the {self.of} by {self.ms}{more} ms"


class Drop(Struct, frozen=True):
    """Lose a request before the broker sees it, or, with `what="reply"`, the reply after the broker
    has served it, which is how duplicates come about.  No later reply reaches the client over this
    connection, since replies come in order.  With `close` the connection is closed at once, and the
    client need not wait for its timeout."""

    what: str = "request"
    close: bool = False

    def __str__(self) -> str:
        return f"drops the {self.what}" + (", closes the connection" if self.close else "")


class Close(Struct, frozen=True):
    """Close the connection: `before` the broker sees the request, or `after` it has served it."""

    when: str = "before"

    def __str__(self) -> str:
        return f"closes the connection {self.when} the request is served"


class ThrottleClient(Struct, frozen=True):
    """Answer with throttle_time_ms, and mute the connection for as long (KIP-219)."""

    ms: int

    def __str__(self) -> str:
        return f"throttles for {self.ms} ms"


class StaleMetadata(Struct, frozen=True):
    """Answer from the metadata that this broker had when the rule was added."""

    def __str__(self) -> str:
        return "answers from old metadata"


class Reorder(Struct, frozen=True):
    """Hold a request until the rule matches a request of another connection to the same broker,
    which then overtakes it; for `limit_ms` at most."""

    limit_ms: int = 1_000

    def __str__(self) -> str:
        return f"lets another pass first, for {self.limit_ms} ms at most"


Effect = AnswerError | Delay | Drop | Close | ThrottleClient | StaleMetadata | Reorder
EFFECTS: Final = (AnswerError, Delay, Drop, Close, ThrottleClient, StaleMetadata, Reorder)


def waits_for_reply(effect: Effect) -> bool:
    """Whether it happens when the broker replies, so the request must have a reply."""
    match effect:
        case AnswerError(after=True) | Delay(of="reply") | Drop(what="reply") | Close(when="after"):
            return True
    return isinstance(effect, ThrottleClient)
