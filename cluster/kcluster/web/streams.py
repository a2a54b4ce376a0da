"""Parts shared by all streams: an inbox that other threads fill, and the text of server-sent
events.

Owns: Inbox, sse_event.  Never: knows what is streamed.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from gevent.event import Event

T = TypeVar("T")

MAX_WAITING: Final = 20_000
"""Items that may wait for a slow reader; a reader that falls further behind loses its stream."""
QUIET_S: Final = 10.0
"""The time after which a stream without news sends a comment, and so notices that it has no
reader."""
GATHER_S: Final = 0.02
"""The time within which items are gathered, to be sent together."""
COMMENT: Final = b": nothing has happened\n\n"


class Inbox(Generic[T]):
    """Items from any thread for one greenlet of the server's hub.  `call_soon`: see ServerSide.
    `limit`: the most items that may wait for the greenlet."""

    def __init__(
        self, call_soon: Callable[[Callable[[], object]], None], limit: int = MAX_WAITING
    ) -> None:
        self._call_soon = call_soon
        self._limit = limit
        self._items: deque[T] = deque()
        self._news = Event()
        self.is_closed = False
        """Whether no further items come: the reader was too slow, or the source has ended."""

    def put(self, item: T) -> None:
        """Add an item, from any thread; never waits."""
        if len(self._items) >= self._limit:
            self.close()
        if self.is_closed:
            return
        self._items.append(item)
        if len(self._items) == 1:
            self._call_soon(self._news.set)

    def close(self) -> None:
        """End the stream, from any thread."""
        self.is_closed = True
        self._call_soon(self._news.set)

    def take(self, timeout_s: float) -> list[T]:
        """All items, after a wait for the first; empty if none comes in time."""
        if not self._items:
            self._news.wait(timeout_s)
        self._news.clear()
        items = []
        while self._items:
            items.append(self._items.popleft())
        return items


def sse_event(kind: str, data: bytes, id: object = None) -> bytes:
    """A server-sent event; `data` is one line."""
    head = b"" if id is None else b"id: %s\n" % str(id).encode()
    return b"%sevent: %s\ndata: %s\n\n" % (head, kind.encode(), data)
