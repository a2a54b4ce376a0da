"""What tests of rules share: connections to brokers on either clock, and the rules.

Owns: Stage.  Never: asserts what a test is about.
"""

from __future__ import annotations

import time
from typing import Any

from kcluster import rule
from kcluster.contract import Note
from kcluster.events.network import RuleHit
from tests.rig.cluster import LiveRig, Rig


class Stage:
    """A rig, its lines, and its rules."""

    def __init__(self, rig: Rig) -> None:
        self.rig: Any = rig
        self.lines: list[Any] = []
        rig.wait_for_isr(1, 2, 3)

    def line(self, broker_id: int = 1) -> Any:
        self.lines.append(self.rig.line(broker_id))
        return self.lines[-1]

    def add(self, **words: Any) -> str:
        name: str = self.rig.add_rule(rule(**words))
        return name

    def now_ms(self) -> float:
        if isinstance(self.rig, LiveRig):
            return time.monotonic() * 1000
        return float(self.rig.now_ms)

    def hits(self) -> list[Note]:
        notes: list[Note] = self.rig.notes_of(RuleHit)
        return notes

    def end(self) -> int:
        """The log end of orders-0."""
        return self.rig.partition().log_end_offset or 0
