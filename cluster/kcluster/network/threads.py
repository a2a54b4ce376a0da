"""The network threads of a listener in virtual time, as far as TLS handshakes keep them busy.

Owns: which thread serves a connection, and when it is free.  Never: moves time, carries a message.
Kafka: SocketServer.Processor, num.network.threads: each new connection goes to the next thread.
"""

from __future__ import annotations

from typing import final


@final
class NetworkThread:
    """A thread that handles what arrives in order."""

    __slots__ = ("_free_us",)

    def __init__(self) -> None:
        self._free_us = 0
        """The time at which the thread has handled everything that has arrived."""

    def takes_up(self, now_us: int, cost_us: int) -> int:
        """Give the thread work that has arrived; returns the time at which the work is done."""
        self._free_us = max(self._free_us, now_us) + cost_us
        return self._free_us


@final
class NetworkThreads:
    """The threads of one listener of one life of a broker."""

    __slots__ = ("_next", "_threads")

    def __init__(self, count: int) -> None:
        self._threads = [NetworkThread() for _ in range(count)]
        self._next = 0

    def assign(self) -> NetworkThread:
        """The thread of a new connection."""
        thread = self._threads[self._next]
        self._next = (self._next + 1) % len(self._threads)
        return thread
