"""The results of a session: every value of every figure, saved as JSON.

Owns: the record of a session.  Never: renders it for readers (report.py).
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.figures import OURS, Figure
from bench.processes import ROOT

LATEST: Final = ROOT / "bench" / "results" / "latest.json"
DOCUMENT: Final = ROOT / "docs" / "reference" / "benchmarks.md"


class Found(msgspec.Struct):
    """One figure of one system."""

    values: list[float] = []
    """In the order measured."""

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.values), max(self.values)


class Session(msgspec.Struct):
    """One session.  `figures`: by system, then by the figure's key.  `missing`: the reasons for
    missing values, by system, then by the figure's key or the name of a step."""

    date: str
    runs: int
    mb: int
    quick: bool = False
    machine: dict[str, str] = {}
    versions: dict[str, str] = {}
    figures: dict[str, dict[str, Found]] = {}
    missing: dict[str, dict[str, str]] = {}

    def add(self, system: str, values: dict[str, float]) -> None:
        """Add the values of one run."""
        by_key = self.figures.setdefault(system, {})
        for key, value in values.items():
            found = by_key.setdefault(key, Found([]))
            found.values.append(round(value, 4))

    def add_missing(self, system: str, what: str, reason: str) -> None:
        """Add the reason for a missing value."""
        self.missing.setdefault(system, {})[what] = reason

    def found(self, system: str, key: str) -> Found | None:
        return self.figures.get(system, {}).get(key)

    def ratio(self, figure: Figure, peer: str) -> float | None:
        """How many times better than the peer this cluster is, by the medians."""
        ours, theirs = self.found(OURS, figure.key), self.found(peer, figure.key)
        if ours is None or theirs is None or not ours.median or not theirs.median:
            return None
        if figure.better == "more":
            return ours.median / theirs.median
        return theirs.median / ours.median

    def update(self, newer: Session) -> None:
        """Take the figures of a later session, keep the others."""
        for system, figures in newer.figures.items():
            self.figures.setdefault(system, {}).update(figures)
            gone = self.missing.get(system, {})
            self.missing[system] = {
                key: reason for key, reason in gone.items() if key not in figures
            }
        for system, reasons in newer.missing.items():
            self.missing.setdefault(system, {}).update(reasons)
        self.versions.update(newer.versions)


def load(path: Path = LATEST) -> Session | None:
    """The last saved session."""
    if not path.exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=Session)


def save(session: Session, path: Path = LATEST) -> None:
    """Save a session."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(session), indent=1) + b"\n")
