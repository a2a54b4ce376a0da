"""Puts replacements where the originals are held, and puts the originals back.

Owns: who holds an original: modules, classes, objects, default arguments.  Never: what is replaced
(replaced/), or what a replacement does.
Kafka: no counterpart; unittest.mock.patch, for everything that was imported by name before.

A replacement asks whether the calling thread is one of the world, and calls the original if not.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

UNTOUCHED: Final = (
    "kcluster", "gevent", "_pytest", "pytest", "pluggy", "xdist", "execnet", "coverage",
    "faulthandler",
)  # fmt: skip
"""Packages that measure real time, or are the simulator itself."""


class Replacement(NamedTuple):
    """What takes the place of what."""

    original: Any
    replacement: Any


class _Holder(NamedTuple):
    """A place where an original is held.  `key`: None for the defaults of a function."""

    owner: Any
    key: Any
    original: Any
    replacement: Any


class Replacing:
    """The replacements of one process; put in and taken out as often as there are worlds."""

    def __init__(self, pairs: Callable[[], Iterable[Replacement]]) -> None:
        self._pairs = pairs
        self._holders: list[_Holder] = []
        self._modules_seen = 0

    def put_in(self, undo: ExitStack) -> None:
        """Replace; `undo` puts the originals back."""
        if self._modules_seen != len(sys.modules):
            self._holders = _holders_of(tuple(self._pairs()))
            self._modules_seen = len(sys.modules)
        undo.callback(self._put_back)
        for owner, key, original, replacement in self._holders:
            _set(owner, key, original, replacement)

    def _put_back(self) -> None:
        for owner, key, original, replacement in self._holders:
            _set(owner, key, replacement, original)


def _set(owner: Any, key: Any, old: Any, new: Any) -> None:
    if key is None:
        owner.__defaults__ = new
    elif isinstance(owner, type):
        setattr(owner, key, new)
    elif owner.get(key) is old:
        owner[key] = new


def set_attribute(undo: ExitStack, owner: Any, name: str, value: Any) -> None:
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


def set_in_builtin_type(undo: ExitStack, owner: type, name: str, value: Any) -> None:
    """The same for a type written in C, whose attributes cannot be set from Python."""
    (attributes,) = (x for x in gc.get_referents(owner.__dict__) if isinstance(x, dict))
    old = attributes[name]

    def restore() -> None:
        attributes[name] = old
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))

    undo.callback(restore)
    attributes[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def _holders_of(replacements: tuple[Replacement, ...]) -> list[_Holder]:
    by_id = {id(each.original): each for each in replacements}
    dicts, tuples = [], []
    for owner in gc.get_referrers(*(each.original for each in replacements)):
        if isinstance(owner, dict):
            dicts.append(owner)
        elif isinstance(owner, tuple):
            tuples.append(owner)
    return _in_dicts(dicts, by_id) + _in_defaults(tuples, by_id)


def _in_dicts(dicts: list[dict[Any, Any]], by_id: dict[int, Replacement]) -> list[_Holder]:
    found = []
    classes = _classes_of([attributes for attributes in dicts if "__module__" in attributes])
    for owner in dicts:
        module = owner.get("__name__") if "__spec__" in owner else owner.get("__module__")
        if _is_untouched(module):
            continue
        for key, value in tuple(owner.items()):
            if id(value) in by_id and isinstance(key, str):
                place = classes.get(id(owner), owner)
                found.append(_Holder(place, key, value, by_id[id(value)].replacement))
    return found


def _is_untouched(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in UNTOUCHED


def _classes_of(dicts: list[dict[Any, Any]]) -> dict[int, type]:
    """The class of each of these attributes, by address: its cache of lookups hears of changes."""
    wanted = {id(attributes) for attributes in dicts}
    return {
        id(attributes): cls
        for cls in gc.get_referrers(*dicts)
        if isinstance(cls, type)
        for attributes in gc.get_referents(cls)
        if id(attributes) in wanted
    }


def _in_defaults(tuples: list[tuple[Any, ...]], by_id: dict[int, Replacement]) -> list[_Holder]:
    wanted = {id(values) for values in tuples}
    found = []
    for function in gc.get_referrers(*tuples):
        if not isinstance(function, types.FunctionType) or _is_untouched(function.__module__):
            continue
        values = function.__defaults__
        if values is not None and id(values) in wanted:
            replaced = tuple(by_id[id(x)].replacement if id(x) in by_id else x for x in values)
            found.append(_Holder(function, None, values, replaced))
    return found
