"""Rows with the state of an object from a time on, kept within a bound.

Owns: the choice of rows to drop.  Never: interprets a row.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


def _one(row: object) -> int:
    return 1


class StateRows(Generic[K, R]):
    """Rows in order of time; the newest row of a key is the key's present state.

    Beyond the bound the older half is reduced to the newest row of each key in it, so that the
    state at any later time stays known.  If that is not enough, the oldest rows are dropped.
    `newest`: the newest row by key.  `weight_of`: a row's share of the bound.
    """

    def __init__(
        self, key_of: Callable[[R], K], max_weight: int, weight_of: Callable[[R], int] = _one
    ) -> None:
        self.rows: list[R] = []
        self.newest: dict[K, R] = {}
        self.max_weight = max_weight
        self._weight = 0
        self._key_of = key_of
        self._weight_of = weight_of

    def add(self, row: R) -> None:
        """Add a row, which is the state of its key from now on."""
        self.rows.append(row)
        self.newest[self._key_of(row)] = row
        self._weight += self._weight_of(row)

    def trim(self) -> None:
        """Drop rows beyond the bound."""
        if self._weight <= self.max_weight:
            return
        key_of = self._key_of
        half = len(self.rows) // 2
        older = {key_of(row): row for row in self.rows[:half]}
        # A dict keeps a key at the place of its first row, so the order of time must be restored.
        last = {key: place for place, key in enumerate(map(key_of, self.rows[:half]))}
        kept = [older[key] for key in sorted(older, key=last.__getitem__)] + self.rows[half:]
        weights = list(map(self._weight_of, kept))
        weight, begin = sum(weights), 0
        while weight > self.max_weight * 3 // 4 and begin < len(kept) - 1:
            weight -= weights[begin]
            begin += 1
        for row in kept[:begin]:
            key = key_of(row)
            if self.newest.get(key) is row:
                del self.newest[key]
        self.rows, self._weight = kept[begin:], weight
