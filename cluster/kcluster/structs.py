"""Bases that give the Structs of compiled modules their options.

Owns: the options.  Never: is compiled itself: mypyc calls a metaclass without the keywords of a
class, so `class Marker(Struct, frozen=True)` would be neither frozen nor hashable there; a base's
options are inherited in both builds (docs/decisions/003).  Kafka: no counterpart.
"""

from __future__ import annotations

from msgspec import Struct


class Frozen(Struct, frozen=True):
    """A value that never changes, and can be a key.  A subclass says `frozen=True` too, for
    mypy."""


class Untracked(Struct, gc=False):
    """An object that the garbage collector skips, because it is never part of a cycle."""


class FrozenUntracked(Struct, frozen=True, gc=False):
    """Both."""
