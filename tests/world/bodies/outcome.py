"""What a story saw, on either clock.

Owns: the outcome's shape.  Never: knows a client library.
"""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """The records of one story."""

    acked: list[bytes]
    read: list[bytes]
    failed: list[BaseException]
    """Why sends failed; their records may have been written all the same."""
    longest_ack_s: float
    took_s: float

    @property
    def lost(self) -> list[bytes]:
        """Acked records that nobody read."""
        read = frozenset(self.read)
        return [value for value in self.acked if value not in read]
