"""Client libraries in a world: some are refused, others adapted.

Owns: refusals of clients whose I/O is in C, Python twins of C code that reads the clock, the orders
of objects that would follow from addresses, the counters of the process.  Never: imports a library;
it adapts the libraries that the program imports, before the world or in it.  Kafka: no counterpart.

The libraries' code runs unchanged except for these adaptations, none of which could be avoided.  If
another release of a library lacks a name that is adapted here, runs may differ in an order or in a
client id.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from kcluster.world import refusals, tls_sockets
from kcluster.world.active import refused, world_here
from kcluster.world.holders import Replacement
from kcluster.world.replaced import sqlite
from kcluster.world.replaced.threads import let_pools_wait
from kcluster.world.replacing import set_attribute

_HEAP_TYPE: Final = 1 << 9
"""The value of Py_TPFLAGS_HEAPTYPE, the flag of classes whose attributes can be set."""


class RefusedLibrary(NamedTuple):
    """Classes of a library that cannot be used by a thread of a world."""

    module: str
    classes: tuple[str, ...]
    reason: str


REFUSALS: Final = (
    RefusedLibrary(
        "confluent_kafka.cimpl",
        ("Producer", "Consumer", "ShareConsumer", "_AdminClientImpl"),
        "confluent_kafka does its I/O in C (librdkafka), which virtual time cannot reach: "
        "run it live, or use kafka-python or aiokafka",
    ),
    RefusedLibrary(
        "uvloop.loop",
        ("Loop",),
        "uvloop does its I/O in C (libuv), which virtual time cannot reach: use asyncio's own loop",
    ),
)


# ---------------------------------------------------------------------------------------- order

_serials = itertools.count(1)


def _serial(thing: Any) -> int:
    """A number in place of an object's address, counted in the order of first use.  An object whose
    hash was first needed outside of a world keeps its address: it may be in a set."""
    serial: int | None = getattr(thing, "_world_serial", None)
    if serial is None:
        is_outside = world_here() is None
        serial = thing._world_serial = object.__hash__(thing) if is_outside else next(_serials)
    return serial


def _is_earlier(one: object, other: object) -> bool:
    return _serial(one) < _serial(other)


def _with_serials(cls: type) -> type:
    """A subclass, with serial numbers for hashes, of a class that is written in C."""
    attributes = {
        "__hash__": _serial,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
    }
    return type(cls.__name__, (cls,), attributes)


ORDERED: Final = {
    "asyncio.tasks": ("_GatheringFuture",),
    "concurrent.futures._base": ("Future",),
    "threading": ("Thread",),
    "kafka.net.selector": ("Task",),
    "kafka.producer.producer_batch": ("ProducerBatch",),
}
"""Classes whose objects are put into sets, by module."""


def _order(module: ModuleType) -> None:
    """Give these classes hashes that do not depend on addresses.  This is never undone: an object
    in a set must keep its hash after the world.  Objects whose hash no world has needed keep their
    usual hash."""
    for name in ORDERED.get(module.__name__, ()):
        cls: Any = getattr(module, name, None)
        if cls is not None:
            cls.__hash__ = _serial
    if module.__name__ == "kafka.net.selector" and hasattr(module, "Task"):
        module.Task.__lt__ = _is_earlier  # the module orders timers of one time by address
    elif module.__name__ == "concurrent.futures._base":
        vars(module)["id"] = _serial  # the module sorts futures by hash
    elif module.__name__ == "threading":
        for thread in tuple(module._dangling):  # each thread needs its hash when it is made
            _serial(thread)


# ------------------------------------------------------------------------------------- counters


class Counting(NamedTuple):
    """A counter of the process that begins again in each world."""

    owner: str
    """The class that has the counter, or "" for the module itself."""
    name: str
    start: Callable[[object], object]
    """Makes a new counter from the current one."""


COUNTERS: Final = {
    "threading": Counting("", "_counter", lambda _: itertools.count(1).__next__),
    "concurrent.futures.thread": Counting(
        "ThreadPoolExecutor", "_counter", lambda _: itertools.count().__next__
    ),
    "kafka.producer.kafka": Counting("", "PRODUCER_CLIENT_ID_SEQUENCE", lambda was: type(was)()),
    "aiokafka.producer.producer": Counting(
        "AIOKafkaProducer", "_PRODUCER_CLIENT_ID_SEQUENCE", lambda _: 0
    ),
}
"""Counters by module: names of threads, and client ids that a library makes up."""


def _start_counting(module: ModuleType, undo: ExitStack) -> None:
    counting = COUNTERS.get(module.__name__)
    if counting is not None:
        owner = getattr(module, counting.owner, None) if counting.owner else module
        if hasattr(owner, counting.name):
            start = counting.start(getattr(owner, counting.name))
            set_attribute(undo, owner, counting.name, start)


# -------------------------------------------------------------------------------------- others


def _own_pools(thread: ModuleType, undo: ExitStack) -> None:
    """Keep the process from waiting for a world's pools at its exit."""
    set_attribute(undo, thread, "_threads_queues", WeakKeyDictionary())


def _ask_no_programs(module: ModuleType, undo: ExitStack) -> None:
    """Keep the platform module from running other programs (file, uname), as on a machine without
    them. Otherwise the import of croniter would run them."""
    names: Any = module
    real = names._syscmd_file

    def ask_file(target: str, default: str = "") -> str:
        return str(real(target, default)) if world_here() is None else default

    set_attribute(undo, names, "_syscmd_file", ask_file)
    real_processor = names._Processor.from_subprocess

    def ask_uname() -> str | None:
        processor: str | None = real_processor() if world_here() is None else None
        return processor

    set_attribute(undo, names._Processor, "from_subprocess", staticmethod(ask_uname))


REPLACED: Final = ("asyncio.futures", "asyncio.tasks", "aiokafka.record.default_records")
"""Modules whose classes written in C are replaced first."""

OTHERS: Final[dict[str, Callable[[ModuleType, ExitStack], None]]] = {
    **dict.fromkeys(refusals.MODULES, refusals.refuse_methods),
    "concurrent.futures.thread": _own_pools,
    "multiprocessing.pool": let_pools_wait,
    "platform": _ask_no_programs,
    "sqlite3.dbapi2": sqlite.replace_sqlite,
    "ssl": tls_sockets.replace_tls,
}
"""The adaptations by module."""

ADAPTED: Final = tuple(dict.fromkeys((*ORDERED, *COUNTERS, *OTHERS, *REPLACED)))


def _adapt(module: ModuleType, undo: ExitStack) -> None:
    """Adapt a module, at the beginning of a world or when it is imported in one."""
    _order(module)
    _start_counting(module, undo)
    if module.__name__ in OTHERS:
        OTHERS[module.__name__](module, undo)


# ------------------------------------------------------------------------------------- refusals


def _refusing(made_by: Callable[..., object], reason: str) -> Callable[..., object]:
    """A `__new__` for a class that threads of a world must not use."""

    def refuse(cls: type, *arguments: object, **keywords: object) -> object:
        if world_here() is not None:
            raise refused(reason)
        return made_by(cls, *arguments, **keywords)

    return refuse


def _refuse(module: ModuleType, refusal: RefusedLibrary, undo: ExitStack) -> None:
    """Replace `__new__` of classes written in Python, and of users' classes derived from them."""
    for name in refusal.classes:
        cls = getattr(module, name, None)
        if cls is None:
            continue  # an older release lacks it
        if "_refuses" in vars(cls):
            cls = cls.__base__  # the class that this one replaces
        refuse = _refusing(cls.__new__, refusal.reason)
        for derived in (cls, *_derived(cls)):
            if derived.__flags__ & _HEAP_TYPE and "_refuses" not in vars(derived):
                set_attribute(undo, derived, "__new__", refuse)


def _derived(cls: type) -> list[type]:
    direct: list[type] = cls.__subclasses__()
    return [*direct, *(further for each in direct for further in _derived(each))]


_stand_ins: Final[dict[type, type]] = {}
"""The Python twin of each class written in C. Twins are made once, so that a later world can find
and remove them."""


def _stand_in(cls: type, reason: str) -> type:
    if cls not in _stand_ins:
        attributes = {
            "__new__": _refusing(cls.__new__, reason),
            "__module__": cls.__module__,
            "_refuses": True,
        }
        _stand_ins[cls] = type(cls.__name__, (cls,), attributes)
    return _stand_ins[cls]


# ----------------------------------------------------------------------------- for world.py


def pairs() -> list[Replacement]:
    """The twins of the classes written in C whose modules are imported now."""
    found = []
    for refusal in REFUSALS:
        module = sys.modules.get(refusal.module)
        for name in refusal.classes:
            cls = getattr(module, name, None)
            if isinstance(cls, type) and not cls.__flags__ & _HEAP_TYPE:
                found.append(Replacement(cls, _stand_in(cls, refusal.reason)))
    asyncio = sys.modules.get("_asyncio")
    if asyncio is not None:
        for cls in (asyncio.Task, asyncio.Future):
            if cls not in _stand_ins:
                _stand_ins[cls] = _with_serials(cls)
            found.append(Replacement(cls, _stand_ins[cls]))
    records = sys.modules.get("aiokafka.record.default_records")
    if records is not None and hasattr(records, "DefaultRecordBatchBuilder"):
        # The original, written in C, asks the C library for a record's time.
        twin, in_use = records._DefaultRecordBatchBuilderPy, records.DefaultRecordBatchBuilder
        if in_use is not twin:
            found.append(Replacement(in_use, twin))
    return found


def adapt(undo: ExitStack) -> None:
    """Adapt the modules that are imported, now and later; `undo` ends all of it.  Called after the
    twins have been put in."""
    global _serials
    _serials = itertools.count(1)
    for name in ADAPTED:
        if name in sys.modules:
            _adapt(sys.modules[name], undo)
    for refusal in REFUSALS:
        if refusal.module in sys.modules:
            _refuse(sys.modules[refusal.module], refusal, undo)
    watch = _ImportWatch(undo)
    sys.meta_path.insert(0, watch)
    undo.callback(sys.meta_path.remove, watch)


class _ImportWatch(MetaPathFinder):
    """Adapts modules that are imported while the world exists."""

    def __init__(self, undo: ExitStack) -> None:
        self._undo = undo
        self._refusals = {refusal.module: refusal for refusal in REFUSALS}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec from the other finders, with a loader that adapts the module."""
        if fullname not in ADAPTED and fullname not in self._refusals:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Adapting(spec.loader, self._adapt)
                return spec
        return None

    def _adapt(self, module: ModuleType) -> None:
        _adapt(module, self._undo)
        # This is never undone: modules that import names from this one keep them.
        for original, replacement in pairs():
            for name, value in tuple(vars(module).items()):
                if value is original:
                    setattr(module, name, replacement)
        refusal = self._refusals.get(module.__name__)
        if refusal is not None:
            _refuse(module, refusal, self._undo)


class _Adapting(Loader):
    """A loader that adapts the module after another loader has executed it."""

    def __init__(self, loader: Loader, adapt_module: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._adapt = adapt_module

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with the other loader, then adapt it."""
        self._loader.exec_module(module)
        self._adapt(module)
