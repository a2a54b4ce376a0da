"""SQLite's own sleep and clock: it waits in C for a lock, and asks the system for the time.

Owns: replacing both, for threads of a world, in SQLite's table of system functions (VFS). Never:
replaces anything else of SQLite: its files, its locks and its random numbers are the machine's.
Kafka: no counterpart; https://sqlite.org/c3ref/vfs.html.

The tables belong to the library, so this affects every connection, however its time-out was set.
While a thread waits in this way, its connection is locked: another thread that uses the connection
blocks in C, which the watchdog reports.  Where Python's SQLite shows no table, nothing changes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Any, Final, NamedTuple

from kcluster.world.active import scheduler_here
from kcluster.world.waits import WaitFor, Waiting

_FOR_LOCK: Final = Waiting(WaitFor.TIME, "SQLite's lock")
_JULIAN_EPOCH_MS: Final = 210_866_760_000_000
"""1970-01-01 in milliseconds since noon in Greenwich on November 24, 4714 B.C."""
_FIRST_WITH_TIME_IN_MS: Final = 2
"""The first version of the table that has a clock in ms.  Only in older versions, SQLite calls the
other clock, in days."""

_Sleep: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_Time: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))


class _Table(ctypes.Structure):
    """The part of sqlite3_vfs that is used here."""


_Table._fields_ = [
    ("version", ctypes.c_int),
    ("file_size", ctypes.c_int),
    ("max_path", ctypes.c_int),
    ("next", ctypes.POINTER(_Table)),
    ("name", ctypes.c_char_p),
    ("data", ctypes.c_void_p),
    ("files", ctypes.c_void_p * 4),
    ("libraries", ctypes.c_void_p * 4),
    ("randomness", ctypes.c_void_p),
    ("sleep", ctypes.c_void_p),
    ("time_in_days", ctypes.c_void_p),
    ("last_error", ctypes.c_void_p),
    ("time_in_ms", ctypes.c_void_p),
]


def _tables() -> Iterator[_Table]:
    """The tables of the SQLite that Python's module uses; of later versions only the known part."""
    file = getattr(sys.modules.get("_sqlite3"), "__file__", None)
    try:
        find: Any = ctypes.CDLL(file).sqlite3_vfs_find
    except (AttributeError, OSError):
        return  # SQLite is linked into the interpreter, without names
    find.argtypes, find.restype = [ctypes.c_char_p], ctypes.POINTER(_Table)
    table = find(None)
    while table:
        yield table.contents
        table = table.contents.next


class _Replaced(NamedTuple):
    """A replaced function of a table.  `function` must stay referenced: C code calls it."""

    table: _Table
    name: str
    original: int
    function: Any


_replaced: Final[list[_Replaced]] = []
"""The replacements, made once per process."""


def replace_sqlite(module: ModuleType, undo: ExitStack) -> None:
    """Let SQLite sleep in virtual time for threads of a world, until `undo` ends."""
    if not _replaced:
        _replaced.extend(_functions())
    for table, name, original, function in _replaced:
        undo.callback(setattr, table, name, original)
        setattr(table, name, ctypes.cast(function, ctypes.c_void_p).value)


def _functions() -> Iterator[_Replaced]:
    for table in _tables():
        yield _Replaced(table, "sleep", table.sleep, _sleeping(_Sleep(table.sleep)))
        if table.version >= _FIRST_WITH_TIME_IN_MS and table.time_in_ms:
            real = _Time(table.time_in_ms)
            yield _Replaced(table, "time_in_ms", table.time_in_ms, _asking(real))


def _sleeping(real: Any) -> object:
    def sleep(table: int, duration_us: int) -> int:
        scheduler = scheduler_here()
        if scheduler is None:
            return int(real(table, duration_us))
        scheduler.sleep_in_c(duration_us, _FOR_LOCK)
        return duration_us

    return _Sleep(sleep)


def _asking(real: Any) -> object:
    def ask(table: int, time_ms: Any) -> int:
        scheduler = scheduler_here()
        if scheduler is None:
            return int(real(table, time_ms))
        time_ms[0] = scheduler.now_us // 1_000 + _JULIAN_EPOCH_MS
        return 0

    return _Time(ask)
