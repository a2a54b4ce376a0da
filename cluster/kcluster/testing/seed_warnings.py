"""Warnings of forked children, for pytest's summary.

Owns: noting warnings in a child, and reporting them here.  Never: forks, filters warnings (the
filters of the item do, in the child, too).  Kafka: no counterpart.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
from msgspec import Struct


class SeedWarning(Struct, frozen=True):
    """A warning as plain values.  `module`, `name`: its class."""

    module: str
    name: str
    text: str
    file: str
    line: int


@contextmanager
def noting_warnings() -> Iterator[list[SeedWarning]]:
    """A list that gets each different warning of the block once, at the end of the block."""
    noted: list[SeedWarning] = []
    with warnings.catch_warnings(record=True) as raised:
        try:
            yield noted
        finally:
            noted += dict.fromkeys(map(_as_values, raised))


def _as_values(raised: warnings.WarningMessage) -> SeedWarning:
    cls = raised.category
    return SeedWarning(
        cls.__module__, cls.__qualname__, str(raised.message), raised.filename, raised.lineno
    )


class WarningsOfSeeds:
    """The warnings that the children of one item noted, with the lowest seed of each."""

    def __init__(self) -> None:
        self._seeds: dict[SeedWarning, int] = {}

    def add(self, seed: int, noted: Iterable[SeedWarning]) -> None:
        """Add the warnings that a child with this seed noted."""
        for each in noted:
            self._seeds[each] = min(seed, self._seeds.get(each, seed))

    def report(self, item: pytest.Item, up_to: int | None = None) -> None:
        """Add the warnings to pytest's summary, without the warnings of seeds above `up_to`: how
        many such seeds ran depends on the machine."""
        for each, seed in sorted(self._seeds.items(), key=lambda pair: pair[1]):
            if up_to is None or seed <= up_to:
                item.ihook.pytest_warning_recorded.call_historic(
                    kwargs={
                        "warning_message": _as_message(each),
                        "nodeid": f"{item.nodeid} (seed {seed})",
                        "when": "runtest",
                        "location": None,
                    }
                )


def _as_message(noted: SeedWarning) -> warnings.WarningMessage:
    """The warning as pytest's message; its class may exist in the child only, or may need other
    arguments."""
    cls = getattr(sys.modules.get(noted.module), noted.name, None)
    if not isinstance(cls, type) or not issubclass(cls, Warning):
        cls = type(noted.name, (Warning,), {"__module__": noted.module})
    message = Warning(noted.text)
    return warnings.WarningMessage(message, cls, noted.file, noted.line)
