"""How many seeds of a test passed and failed, and why.

Owns: SeedTally, the reasons of failures and their equality.  Never: runs a seed.  Kafka: no
counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_NUMBERS: Final = re.compile(r"[0-9]+|-[0-9a-f]{8}\b")
"""The parts of a reason that differ from seed to seed: numbers, ids of members."""
_MAX_CHARS: Final = 160


class _Reason(Struct):
    """Seeds that failed for one reason.  `text`: the words of the first; `first`: its seed."""

    text: str
    first: int
    count: int = 0


class SeedTally:
    """The outcomes of the seeds that have ended."""

    def __init__(self) -> None:
        self.passed = 0
        self.reasons: dict[str, _Reason] = {}
        """The reasons of failures, by their words without numbers."""

    def add(self, seed: int, reason: str | None) -> None:
        """Count a seed; `reason`: why it failed, None if it passed."""
        if reason is None:
            self.passed += 1
            return
        found = self.reasons.setdefault(signature(reason), _Reason(reason, seed))
        found.count += 1
        if seed < found.first:
            found.text, found.first = reason, seed

    @property
    def failed(self) -> int:
        """The number of seeds that failed."""
        return sum(reason.count for reason in self.reasons.values())

    def lines(self, seeds: int) -> Iterator[str]:
        """How many of the seeds fail, then a line for each reason, the most frequent first."""
        yield f"{self.failed} of {seeds} seeds fail"
        for reason in sorted(self.reasons.values(), key=lambda each: (-each.count, each.first)):
            yield f"  {reason.count} (first seed {reason.first}): {reason.text}"

    def interrupted(self, seeds: int) -> str:
        """The state of the seeds when Ctrl-C came."""
        failed = f", {self.failed} had failed" if self.failed else ""
        return f"interrupted: {self.passed} of {seeds} seeds had passed{failed}"


def signature(reason: str) -> str:
    """What equal reasons have in common: the words without numbers."""
    return _NUMBERS.sub("N", reason)


def reason_of(longrepr: object) -> str:
    """The first line of the error of a failed report, as pytest serializes it."""
    crash = longrepr.get("reprcrash") if isinstance(longrepr, dict) else None
    text = str(crash["message"] if crash else longrepr)
    return next(iter(text.strip().splitlines()), "")[:_MAX_CHARS]


def place_of_failure(longrepr: object) -> str:
    """Where and how a report failed, so that equal failures have equal texts: the place in the
    code, and the words of the error before the first number."""
    crash = longrepr.get("reprcrash") if isinstance(longrepr, dict) else None
    place = f"{crash['path']}:{crash['lineno']} " if crash else ""
    return place + re.split(r"[0-9]", reason_of(longrepr))[0]
