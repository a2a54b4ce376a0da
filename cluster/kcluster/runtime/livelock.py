"""The error of a run that stays at one moment for ever, because nothing lets time pass.

Owns: LivelockError.  Never: decides when to raise it (dispatch.py, invariants/livelock.py,
drivers/virtual_time.py do). Kafka: no counterpart: on a real clock every step takes time.
"""

from __future__ import annotations


class LivelockError(AssertionError):
    """The error for time that stands still at `at_ms`, because of `text`.  A scenario's run ends
    with a verdict that lists it as a violation; elsewhere it is an ordinary bug."""

    def __init__(self, at_ms: int, text: str) -> None:
        super().__init__(f"time stands still at {at_ms} ms: {text}")
        self.at_ms = at_ms
        self.text = text
