"""The memory that the unfinished requests of a broker's clients may take together.

Owns: how much the connections hold, which of them may read on when that is too much.  Never: reads,
knows the time, counts what the broker has taken (a produced batch is in the log by then).
Kafka: SimpleMemoryPool, Selector's mute for lack of memory; queued.max.request.bytes.

# DIFFERS: -1, the default, is no bound in Kafka.  A broker here has 256 MiB: all brokers are in one
# process, and it is often a laptop's.
# DIFFERS: Kafka counts a request with its whole size once its length is read, so a hundred clients
# that announce 100 MB and send nothing leave none for others.  Here counts what has arrived.  While
# it is too much, only connections in the middle of a request wait, so that small requests are
# served.  The first of them reads on, whatever the size of its request, so some request is always
# completed; if its client sends nothing for `STALL_MS`, it is closed.
"""

from __future__ import annotations

from typing import Final, Protocol

DEFAULT_BYTES: Final = 256 << 20
STALL_MS: Final = 10_000


class HoldingReader(Protocol):
    """A connection in the middle of a request."""

    def read_on(self) -> None:
        """It may be its turn: ask again."""


class RequestMemory:
    """Of one life of one broker.  `limit_bytes`: as configured, -1 for the default."""

    __slots__ = ("_limit_bytes", "_waiting", "held_bytes", "is_exhausted")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes if limit_bytes >= 0 else DEFAULT_BYTES
        self.held_bytes = 0
        self.is_exhausted = False
        self._waiting: dict[HoldingReader, None] = {}
        """Who may not read on, and before them the first one, who may; by when they came."""

    @property
    def first(self) -> HoldingReader | None:
        """Who reads on while all others wait; None: nobody waits."""
        return next(iter(self._waiting), None)

    def count(self, reader: HoldingReader, change_bytes: int, is_done: bool) -> None:
        """A connection holds more or less than before.  `is_done`: it holds nothing now."""
        self.held_bytes += change_bytes
        was_first = is_done and self.first is reader
        if is_done:
            self._waiting.pop(reader, None)
        self.is_exhausted = self.held_bytes >= self._limit_bytes > 0
        if not self.is_exhausted:
            waiting, self._waiting = self._waiting, {}
            for other in waiting:
                other.read_on()
        elif was_first and self._waiting:
            next(iter(self._waiting)).read_on()

    def may_read(self, reader: HoldingReader) -> bool:
        """Whether a connection in the middle of a request may read on; if not, it waits."""
        if self.is_exhausted:
            self._waiting.setdefault(reader)
            return self.first is reader
        return True
