"""The memory that the unfinished requests of a broker's clients may take together.

Owns: the bytes that the connections hold, and the permission to read on when these are too many.
Never: reads, knows the time, counts delivered bytes (a produced batch is then in the log).  Kafka:
SimpleMemoryPool, Selector's mute for lack of memory; queued.max.request.bytes.

# DIFFERS: -1, the default, is no bound in Kafka.  A broker here has 256 MiB: all brokers are in one
# process, and it is often a laptop's.
# DIFFERS: Kafka counts a request with its whole size once its length is read, so a hundred clients
# that announce 100 MB and send nothing leave none for others.  Here only arrived bytes count.
# While they are too many, only connections in the middle of a request wait, so that small requests
# are served.  The first of them reads on, whatever the size of its request, so that some request is
# always completed; if its client sends nothing for `STALL_MS`, it is closed.
"""

from __future__ import annotations

from typing import Final, Protocol

DEFAULT_BYTES: Final = 256 << 20
STALL_MS: Final = 10_000


class HoldingReader(Protocol):
    """A connection in the middle of a request."""

    def read_on(self) -> None:
        """Read on if it is this connection's turn; called when that may be so."""


class RequestMemory:
    """The memory of one life of one broker.  `limit_bytes`: the configured limit, -1 for the
    default."""

    __slots__ = ("_limit_bytes", "_waiting", "held_bytes", "is_exhausted")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes if limit_bytes >= 0 else DEFAULT_BYTES
        self.held_bytes = 0
        self.is_exhausted = False
        self._waiting: dict[HoldingReader, None] = {}
        """The connections in order of arrival: the first one may read on, the others may not."""

    @property
    def first(self) -> HoldingReader | None:
        """The connection that reads on while all others wait; None if none waits."""
        return next(iter(self._waiting), None)

    def count(self, reader: HoldingReader, change_bytes: int, is_done: bool) -> None:
        """Count the bytes that a connection now holds.  `is_done`: whether it holds none."""
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
