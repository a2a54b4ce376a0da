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


class Pair(NamedTuple):
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

    def __init__(self, pairs: Callable[[], Iterable[Pair]]) -> None:
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


def _holders_of(pairs: tuple[Pair, ...]) -> list[_Holder]:
    by_id = {id(pair.original): pair for pair in pairs}
    found: list[_Holder] = []
    if gc.get_freeze_count():
        # Frozen objects are found by nobody; somebody froze them to make collections short.
        gc.unfreeze()
        try:
            return _holders_of(pairs)
        finally:
            gc.freeze()
    for owner in gc.get_referrers(*(pair.original for pair in pairs)):
        if isinstance(owner, dict):
            found += _in_dict(owner, by_id)
        elif isinstance(owner, tuple):
            found += _in_defaults(owner, by_id)
    return found


def _in_dict(owner: dict[Any, Any], by_id: dict[int, Pair]) -> list[_Holder]:
    module = owner.get("__name__") if "__spec__" in owner else owner.get("__module__")
    if isinstance(module, str) and module.partition(".")[0] in UNTOUCHED:
        return []
    place: Any = _class_of(owner) if "__module__" in owner else owner
    return [
        _Holder(place, key, value, by_id[id(value)].replacement)
        for key, value in tuple(owner.items())
        if id(value) in by_id and isinstance(key, str)
    ]


def _class_of(attributes: dict[str, Any]) -> Any:
    """The class whose attributes these are, so that its cache of lookups is told of changes."""
    classes = [x for x in gc.get_referrers(attributes) if isinstance(x, type)]
    return classes[0] if len(classes) == 1 else attributes


def _in_defaults(values: tuple[Any, ...], by_id: dict[int, Pair]) -> list[_Holder]:
    replaced = tuple(by_id[id(x)].replacement if id(x) in by_id else x for x in values)
    return [
        _Holder(function, None, values, replaced)
        for function in gc.get_referrers(values)
        if isinstance(function, types.FunctionType)
        and function.__defaults__ is values
        and function.__module__.partition(".")[0] not in UNTOUCHED
    ]
