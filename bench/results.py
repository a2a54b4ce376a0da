"""What a sitting found: every value of every figure, kept as JSON.

Owns: the record of a sitting.  Never: writes text for people (report.py).
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.figures import OURS, Figure
from bench.processes import ROOT

LATEST: Final = ROOT / "bench" / "results" / "latest.json"
DOCUMENT: Final = ROOT / "docs" / "benchmarks.md"


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


class Sitting(msgspec.Struct):
    """One sitting.  `figures`: by system, then by the figure's key; `missing`: by system, then by
    the figure's key or the name of a step, why there is no value."""

    date: str
    runs: int
    mb: int
    quick: bool = False
    machine: dict[str, str] = {}
    versions: dict[str, str] = {}
    figures: dict[str, dict[str, Found]] = {}
    missing: dict[str, dict[str, str]] = {}

    def add(self, system: str, values: dict[str, float]) -> None:
        """Values of one run."""
        kept = self.figures.setdefault(system, {})
        for key, value in values.items():
            found = kept.setdefault(key, Found([]))
            found.values.append(round(value, 4))

    def lacks(self, system: str, what: str, why: str) -> None:
        """There is no value, and why."""
        self.missing.setdefault(system, {})[what] = why

    def found(self, system: str, key: str) -> Found | None:
        return self.figures.get(system, {}).get(key)

    def ratio(self, figure: Figure, peer: str) -> float | None:
        """How many times better than the peer we are; medians."""
        ours, theirs = self.found(OURS, figure.key), self.found(peer, figure.key)
        if ours is None or theirs is None or not ours.median or not theirs.median:
            return None
        if figure.better == "more":
            return ours.median / theirs.median
        return theirs.median / ours.median

    def update(self, newer: Sitting) -> None:
        """Take over what a later sitting measured, keep the rest."""
        for system, figures in newer.figures.items():
            self.figures.setdefault(system, {}).update(figures)
            gone = self.missing.get(system, {})
            self.missing[system] = {key: why for key, why in gone.items() if key not in figures}
        for system, reasons in newer.missing.items():
            self.missing.setdefault(system, {}).update(reasons)
        self.versions.update(newer.versions)


def load(path: Path = LATEST) -> Sitting | None:
    """The last sitting that was saved."""
    if not path.exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=Sitting)


def save(sitting: Sitting, path: Path = LATEST) -> None:
    """Keep a sitting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(sitting), indent=1) + b"\n")
