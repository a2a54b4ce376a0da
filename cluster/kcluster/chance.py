"""The streams of chance of a cluster or of a world: random numbers, apart for each purpose.

Owns: the streams' seeds, and drawing anew from a moment on.  Never: decides anything by a number.
Kafka: no counterpart.

A stream depends on the seed and on its own name alone, so one client or one fault less does not
change the luck of the others.
"""

from __future__ import annotations

from random import Random
from weakref import WeakKeyDictionary

from msgspec import Struct


class Anew(Struct, frozen=True):
    """From `at_ms` after the start on, chance is drawn as with another seed."""

    at_ms: int
    seed: int


class Chance:
    """The streams of one seed, by their names; those that are no longer used are forgotten."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._names: WeakKeyDictionary[Random, str] = WeakKeyDictionary()

    def stream(self, name: str, seed: int | None = None) -> Random:
        """A new stream.  `seed`: that of a scenario with its own; None: this one."""
        rng = Random(f"{self._seed if seed is None else seed}/{name}")
        self._names[rng] = name
        return rng

    def draw_anew(self, seed: int) -> None:
        """From now on, draw as with another seed: in every stream, and in those to come."""
        self._seed = seed
        for rng, name in self._names.items():
            rng.seed(f"{seed}/{name} anew")
