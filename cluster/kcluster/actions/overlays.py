"""Values that are set for a while, perhaps several at once for the same name.

Owns: which value is in force after one of them ends.  Never: sets a value.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class _Stack(Generic[V]):
    """The values of one name: the one from before, and those above it by number, oldest first."""

    def __init__(self, beneath: V | None) -> None:
        self.beneath = beneath
        self.above: dict[int, V] = {}


class Overlays(Generic[V]):
    """The values of all names of all owners, such as a topic's configs.  A value that ends leaves
    the newest of the others in force; the last one leaves the value from before all of them, or
    None, which stands for the default."""

    def __init__(self) -> None:
        self._stacks: dict[tuple[Hashable, str], _Stack[V]] = {}
        self._count = 0

    def begin(
        self, owner: Hashable, values: Mapping[str, V], present: Mapping[str, V]
    ) -> Callable[[], dict[str, V | None]]:
        """Record values that are set now, while `present` are in force.  Returns what ends them,
        once; it returns the values that are in force then, of the names where that changes."""
        self._count += 1
        number = self._count
        for name, value in values.items():
            stack = self._stacks.setdefault((owner, name), _Stack(present.get(name)))
            stack.above[number] = value
        return lambda: {
            name: self._newest(owner, name)
            for name in values
            if self._ends_newest(owner, name, number)
        }

    def _ends_newest(self, owner: Hashable, name: str, number: int) -> bool:
        above = self._stacks[owner, name].above
        was_newest = number == next(reversed(above))
        del above[number]
        return was_newest

    def _newest(self, owner: Hashable, name: str) -> V | None:
        stack = self._stacks[owner, name]
        if stack.above:
            return next(reversed(stack.above.values()))
        del self._stacks[owner, name]
        return stack.beneath
