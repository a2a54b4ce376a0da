"""Puts replacements in place of the originals, and puts the originals back.

Owns: the moments of both, and attributes that are set during a world.  Never: finds the holders of
originals (holders.py), chooses what to replace, or defines a replacement (replaced/). Kafka: no
counterpart; like unittest.mock.patch, but also for names that were imported before.

A replacement calls the original for threads outside of the world.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from kcluster.world.holders import Holder, Replacement, holders_of


class Replacing:
    """The replacements of one process; put in and taken out once for each world.

    Holders are searched again if modules were imported since the last world.
    """

    def __init__(self, replacements: Callable[[], Iterable[Replacement]]) -> None:
        self._replacements = replacements
        self._holders: list[Holder] = []
        self._modules_seen: set[int] = set()
        """The modules at the last search, by address: one may have been imported anew."""

    def put_in(self, undo: ExitStack) -> None:
        """Put the replacements in; `undo` puts the originals back."""
        modules = set(map(id, sys.modules.values()))
        if not modules <= self._modules_seen:
            self._holders = []  # holders would be found as holders
            self._holders = holders_of(self._replacements)
            self._modules_seen = modules
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
    """Set an attribute of a type written in C, which Python does not allow; `undo` restores it."""
    (attributes,) = (x for x in gc.get_referents(owner.__dict__) if isinstance(x, dict))
    old = attributes[name]

    def restore() -> None:
        attributes[name] = old
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))

    undo.callback(restore)
    attributes[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
