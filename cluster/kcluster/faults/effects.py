"""What a rule does to a request or to its reply.

Owns: these values and their words.  Never: carries them out (runtime/gate.py does).
Kafka: no counterpart; toxiproxy's toxics, but they know the protocol.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode


class Answer(Struct, frozen=True):
    """Tell the client an error (a name of ErrorCode).  The broker never sees what is answered so;
    with `after` it does what it was asked first, and the client is told of the error all the
    same."""

    error: str
    after: bool = False

    @property
    def code(self) -> ErrorCode:
        return ErrorCode[self.error]

    def __str__(self) -> str:
        return f"answers {self.error}" + (" after the deed" if self.after else "")


class Delay(Struct, frozen=True):
    """Keep a request (or, with `of="reply"`, its reply) for `ms`, and for up to `jitter_ms` more,
    evenly spread.  Its connection waits, others go on."""

    ms: int
    of: str = "request"
    jitter_ms: int = 0

    def __str__(self) -> str:
        more = f" to {self.ms + self.jitter_ms}" if self.jitter_ms else ""
        return f"delays the {self.of} by {self.ms}{more} ms"


class Drop(Struct, frozen=True):
    """Lose a request before the broker sees it, or, with `what="reply"`, the reply after it did as
    it was asked: the maker of duplicates.  The client hears nothing more over this connection, as
    when packets are lost: answers come in order, so none may overtake the missing one.  With
    `close` the connection is closed at once, and the client need not wait for its timeout."""

    what: str = "request"
    close: bool = False

    def __str__(self) -> str:
        return f"drops the {self.what}" + (", closes the connection" if self.close else "")


class Close(Struct, frozen=True):
    """Close the connection `when` the request has come: `before` the broker sees it, or `after` it
    did as it was asked."""

    when: str = "before"

    def __str__(self) -> str:
        return f"closes the connection {self.when} the request is served"


class Throttle(Struct, frozen=True):
    """Answer with throttle_time_ms, and hear no more from the connection for as long (KIP-219)."""

    ms: int

    def __str__(self) -> str:
        return f"throttles for {self.ms} ms"


class StaleMetadata(Struct, frozen=True):
    """Answer from the cluster as it was, as this broker knew it, when the rule was added."""

    def __str__(self) -> str:
        return "answers from old metadata"


class Reorder(Struct, frozen=True):
    """Keep a request until one like it, of another connection to the same broker, has passed; for
    `limit_ms` at most."""

    limit_ms: int = 1_000

    def __str__(self) -> str:
        return f"lets another pass first, for {self.limit_ms} ms at most"


Effect = Answer | Delay | Drop | Close | Throttle | StaleMetadata | Reorder
EFFECTS: Final = (Answer, Delay, Drop, Close, Throttle, StaleMetadata, Reorder)


def waits_for_reply(effect: Effect) -> bool:
    """Whether it happens when the broker answers; such an effect needs an answer."""
    match effect:
        case Answer(after=True) | Delay(of="reply") | Drop(what="reply") | Close(when="after"):
            return True
    return isinstance(effect, Throttle)
