"""A node's timers: many deadlines, of which the driver sees only the earliest.

Owns: keyed deadlines of one node.  Never: reads a clock; `now_ms` comes in.
Kafka: TimingWheel / SystemTimer; a heap here, for the few deadlines that a node has at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Final

NEVER_MS: Final = 1 << 62
"""The value for no deadline: later than any deadline, in ms or µs."""
NEVER_US: Final = NEVER_MS


class Timers:
    """Deadlines by key; setting a key again moves its deadline.  Due callbacks run in order of
    deadline, then in the order in which they were set.

    `next_ms`: the time before which nothing is due; NEVER_MS when nothing is set.  It may be too
    early, because moving or cancelling a deadline does not update it; then `run_due` runs nothing
    and corrects it.
    """

    __slots__ = ("_armed", "_heap", "_sequence", "next_ms")

    def __init__(self) -> None:
        self._armed: dict[Hashable, tuple[int, Callable[[int], None]]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._sequence = 0
        self.next_ms = NEVER_MS

    def set(self, key: Hashable, at_ms: int, callback: Callable[[int], None]) -> None:
        """Call `callback(now_ms)` at `at_ms` or later, unless moved or cancelled before."""
        self._sequence += 1
        self._armed[key] = (self._sequence, callback)
        heappush(self._heap, (at_ms, self._sequence, key))
        if at_ms < self.next_ms:
            self.next_ms = at_ms
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._armed):
            self._drop_stale()

    def cancel(self, key: Hashable) -> None:
        """Forget `key`; no error if it is not set."""
        self._armed.pop(key, None)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._armed

    def __len__(self) -> int:
        """The number of deadlines that are set."""
        return len(self._armed)

    def run_due(self, now_ms: int) -> None:
        """Run every callback whose deadline has come, including callbacks that another one sets for
        now."""
        heap, armed = self._heap, self._armed
        while heap:
            at_ms, sequence, key = heap[0]
            entry = armed.get(key)
            is_stale = entry is None or entry[0] != sequence
            if not is_stale and at_ms > now_ms:
                break
            heappop(heap)
            if entry is not None and not is_stale:
                del armed[key]
                entry[1](now_ms)
                heap = self._heap
        self.next_ms = heap[0][0] if heap else NEVER_MS

    def _drop_stale(self) -> None:
        live = {sequence for sequence, _ in self._armed.values()}
        self._heap = sorted(entry for entry in self._heap if entry[1] in live)
