"""Puts replacements where the originals are held, and puts the originals back.

Owns: when that happens, attributes that are set for the time of a world.  Never: who holds an
original (holders.py), what is replaced (replaced/), or what a replacement does.
Kafka: no counterpart; unittest.mock.patch, for everything that was imported by name before.

A replacement asks whether the calling thread is one of the world, and calls the original if not.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from kcluster.world.holders import Holder, Replacement, holders_of


class Replacing:
    """The replacements of one process; put in and taken out as often as there are worlds.

    Holders are looked for again when modules were imported since the last world.
    """

    def __init__(self, replacements: Callable[[], Iterable[Replacement]]) -> None:
        self._replacements = replacements
        self._holders: list[Holder] = []
        self._modules_seen = 0

    def put_in(self, undo: ExitStack) -> None:
        """Replace; `undo` puts the originals back."""
        if self._modules_seen != len(sys.modules):
            self._holders = []  # which are holders themselves
            self._holders = holders_of(self._replacements)
            self._modules_seen = len(sys.modules)
        undo.callback(self._put_back)
        for holder in self._holders:
            holder.put(holder.replacement)

    def _put_back(self) -> None:
        for holder in self._holders:
            holder.put(holder.original)


def set_attribute(undo: ExitStack, owner: object, name: str, value: object) -> None:
    """Set an attribute of a module or a Python class; `undo` restores it."""
    is_own = name in vars(owner)
    old = vars(owner).get(name)

    def restore() -> None:
        if is_own:
            setattr(owner, name, old)
        else:
            delattr(owner, name)

    undo.callback(restore)
    setattr(owner, name, value)


def set_in_builtin_type(undo: ExitStack, owner: type, name: str, value: object) -> None:
    """The same for a type written in C, whose attributes cannot be set from Python."""
    (attributes,) = (x for x in gc.get_referents(owner.__dict__) if isinstance(x, dict))
    old = attributes[name]

    def restore() -> None:
        attributes[name] = old
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))

    undo.callback(restore)
    attributes[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
