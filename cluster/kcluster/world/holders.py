"""The holders of functions of the standard library that a world replaces.

Owns: the search for them, and the exchange of the function in each.  Never: chooses functions
(replaced/) or moments (replacing.py). Kafka: no counterpart.

Found: modules, classes, objects with attributes or slots, dicts with names for keys, lists, default
values of functions (also keyword-only), variables of closures, dataclasses' default factories,
functools.partial.  Not found: tuples, sets, dicts with other keys, variables of functions that are
running, arguments of threads and bound methods; copies that are made while the world exists.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from kcluster.world import heap

UNTOUCHED: Final = (
    "kcluster", "gevent", "_pytest", "pytest", "pluggy", "xdist", "execnet", "coverage",
    "faulthandler", "pytest_timeout",
)  # fmt: skip
"""Packages that measure real time, or are the simulator itself."""

_NEVER_HOLDERS: Final = (
    types.FrameType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type,
    types.GeneratorType, types.CoroutineType, set, frozenset,
)  # fmt: skip


class Replacement(NamedTuple):
    """An original and its replacement."""

    original: object
    replacement: Any


class Holder(NamedTuple):
    """A place where an original is held.  `put`: stores the original or the replacement in it."""

    put: Callable[[object], None]
    original: object
    replacement: object


def is_untouched(module: object) -> bool:
    """Whether the functions and classes of a module keep the originals."""
    return isinstance(module, str) and module.partition(".")[0] in UNTOUCHED


def holders_of(replacements: Callable[[], Iterable[Replacement]]) -> list[Holder]:
    """All holders that the garbage collector knows.  This takes up to three walks through the heap,
    and one more that `replacements` may take."""
    was_frozen = heap.is_frozen()
    if was_frozen:
        gc.unfreeze()  # the search does not find frozen objects
    search = _HeapSearch(replacements())
    if was_frozen:
        gc.freeze()
    return [*search.in_objects(), *search.in_functions(), *search.in_cells(), *search.in_statics()]


class _HeapSearch:
    """A search through the heap.  `dicts`, `tuples`, `cells`, `statics`, `others`: the owners of
    originals, by kind."""

    def __init__(self, replacements: Iterable[Replacement]) -> None:
        pairs = tuple(replacements)
        self.by_id = {id(each.original): each.replacement for each in pairs}
        self.dicts: list[dict[Any, object]] = []
        self.tuples: list[tuple[object, ...]] = []
        self.cells: list[types.CellType] = []
        self.statics: list[staticmethod[..., object]] = []
        self.others: list[Any] = []
        ours = _cells_of(pairs)
        for owner in gc.get_referrers(*(each.original for each in pairs)):
            if isinstance(owner, dict):
                self.dicts.append(owner)
            elif isinstance(owner, tuple):
                if not isinstance(owner, Replacement):
                    self.tuples.append(owner)
            elif isinstance(owner, types.CellType):
                if id(owner) not in ours:
                    self.cells.append(owner)
            elif isinstance(owner, staticmethod):
                self.statics.append(owner)
            elif not isinstance(owner, _NEVER_HOLDERS) and not is_untouched(type(owner).__module__):
                self.others.append(owner)
        attributes = [names for names in self.dicts if "__module__" in names]
        self.second = _referrers(*attributes, *self.tuples, *self.cells, *self.statics)
        self.third = _referrers(*self._closures(), *self._with_statics())

    def in_objects(self) -> Iterator[Holder]:
        """Holders in modules, classes, dicts, lists and objects."""
        classes = self._classes()
        for owner in self.dicts:
            if is_untouched(owner.get("__name__" if "__spec__" in owner else "__module__")):
                continue
            for key, value in tuple(owner.items()):
                if id(value) in self.by_id and isinstance(key, str):
                    cls = classes.get(id(owner))
                    yield (
                        self._in_dict(owner, key, value)
                        if cls is None
                        else self._in_class(cls, key, value)
                    )
        for owner in self.others:
            yield from self._in_object(owner)

    def _classes(self) -> dict[int, type]:
        """The classes whose attributes hold originals, by the address of their attributes.  A class
        must be notified of changes, because it caches lookups."""
        wanted = {id(attributes) for attributes in self.dicts}
        return {
            id(attributes): cls
            for cls in self.second
            if isinstance(cls, type)
            for attributes in gc.get_referents(cls)
            if id(attributes) in wanted
        }

    def _in_dict(self, owner: dict[str, object], key: str, value: object) -> Holder:
        twin = self.by_id[id(value)]

        def put(new: object) -> None:
            if owner.get(key) in (value, twin):  # the program may have set another value
                owner[key] = new

        return Holder(put, value, twin)

    def _in_class(self, cls: type, key: str, value: object) -> Holder:
        """Put a built-in function into a class; neither the function nor its twin becomes a method
        there."""
        twin = self.by_id[id(value)]
        if isinstance(value, types.BuiltinFunctionType):
            twin = staticmethod(twin)
        return Holder(functools.partial(setattr, cls, key), value, twin)

    def _in_object(self, owner: object) -> Iterator[Holder]:
        if isinstance(owner, list):
            for position, value in enumerate(owner):
                if id(value) in self.by_id:
                    put = functools.partial(_put_in_list, owner, position)
                    yield Holder(put, value, self.by_id[id(value)])
        elif isinstance(owner, functools.partial):
            if id(owner.func) in self.by_id:
                put = functools.partial(_put_in_partial, owner)
                yield Holder(put, owner.func, self.by_id[id(owner.func)])
        else:
            for name in _names_of(owner):
                value = getattr(owner, name, None)
                if id(value) in self.by_id:
                    put = functools.partial(object.__setattr__, owner, name)
                    yield Holder(put, value, self.by_id[id(value)])

    def in_functions(self) -> Iterator[Holder]:
        """Holders among the default values of functions."""
        wanted = {id(values) for values in self.tuples}
        for function in self.second:
            if not isinstance(function, types.FunctionType) or is_untouched(function.__module__):
                continue
            values = function.__defaults__
            if values is not None and id(values) in wanted:
                replaced = tuple(self.by_id.get(id(value), value) for value in values)
                yield Holder(functools.partial(_put_defaults, function), values, replaced)

    def _closures(self) -> list[tuple[object, ...]]:
        known = {id(values) for values in self.tuples}
        return [x for x in self.second if isinstance(x, tuple) and id(x) not in known]

    def in_cells(self) -> Iterator[Holder]:
        """Holders among the variables of closures."""
        wanted = {id(cell): cell for cell in self.cells}
        for function in self.third:
            if not isinstance(function, types.FunctionType) or is_untouched(function.__module__):
                continue
            for cell in function.__closure__ or ():
                if wanted.pop(id(cell), None) is not None:
                    value = cell.cell_contents
                    put = functools.partial(_put_in_cell, cell)
                    yield Holder(put, value, self.by_id[id(value)])

    def _with_statics(self) -> list[dict[str, object]]:
        wanted = {id(static) for static in self.statics}
        return [
            x
            for x in self.second
            if isinstance(x, dict)
            and "__module__" in x
            and any(id(value) in wanted for value in x.values())
        ]

    def in_statics(self) -> Iterator[Holder]:
        """Holders among static methods."""
        wanted = {id(static) for static in self.statics}
        for cls in self.third:
            if not isinstance(cls, type) or is_untouched(cls.__module__):
                continue
            for name, value in tuple(vars(cls).items()):
                if id(value) in wanted:
                    twin = staticmethod(self.by_id[id(value.__func__)])
                    yield Holder(functools.partial(setattr, cls, name), value, twin)


def _cells_of(pairs: Iterable[Replacement]) -> set[int]:
    """The cells in which replacements keep the originals, for calling them, by address."""
    functions = (each.replacement for each in pairs)
    return {id(cell) for one in functions for cell in getattr(one, "__closure__", None) or ()}


def _referrers(*objects: object) -> list[object]:
    """The objects that refer to these; found by a walk through the heap, which takes longer for
    more objects."""
    return gc.get_referrers(*objects) if objects else []


def _names_of(owner: object) -> list[str]:
    names = list(getattr(owner, "__dict__", ()))
    for cls in type(owner).__mro__:
        slots = vars(cls).get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return names


def _put_in_list(owner: list[object], position: int, new: object) -> None:
    if position < len(owner):
        owner[position] = new


def _put_in_partial(owner: functools.partial[object], new: object) -> None:
    state: Any = owner
    state.__setstate__((new, owner.args, owner.keywords, owner.__dict__ or None))


def _put_defaults(function: types.FunctionType, new: tuple[object, ...]) -> None:
    function.__defaults__ = new


def _put_in_cell(cell: types.CellType, new: object) -> None:
    cell.cell_contents = new
