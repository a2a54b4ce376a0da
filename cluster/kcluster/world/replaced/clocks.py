"""Clocks and calendars of a world.

Owns: the replacements of time and datetime.  Never: moves time (scheduler.py). Kafka:
org.apache.kafka.common.utils.MockTime.
"""

from __future__ import annotations

import datetime as calendar
import gc
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import BuiltinMethodType
from typing import Any, Final

from kcluster.world.active import scheduler_here
from kcluster.world.holders import Replacement
from kcluster.world.replacing import set_in_builtin_type
from kcluster.world.waits import WaitFor, Waiting

EPOCH_S: Final = 1_767_225_600
"""The beginning of every world, in seconds: 2026-01-01, 00:00 UTC.  The cluster's clock shows this
time, too."""
MONOTONIC_AT_START_NS: Final = 1_000_000_000_000
"""The first reading of the monotonic clock, as on a machine that has been up for a while."""

_BACK_NS: Final = EPOCH_S * 1_000_000_000 - MONOTONIC_AT_START_NS
_sleep: Final = time.sleep


def _clock(real: Callable[[], object], back_ns: int, is_ns: bool) -> Callable[[], object]:
    def read() -> object:
        scheduler = scheduler_here()
        if scheduler is None:
            return real()
        reading_ns = scheduler.read_clock_ns() - back_ns
        return reading_ns if is_ns else reading_ns / 1e9

    read.__name__ = real.__name__
    return read


def _replaced_clock(name: str, back_ns: int) -> Replacement:
    real = getattr(time, name)
    return Replacement(real, _clock(real, back_ns, name.endswith("_ns")))


def sleep(seconds: float) -> None:
    """Replaces time.sleep."""
    scheduler = scheduler_here()
    if scheduler is None:
        return _sleep(seconds)
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    until_us = scheduler.deadline_us(seconds) if seconds else scheduler.now_us
    if until_us is None:
        raise OverflowError("timestamp too large to convert to C _PyTime_t")
    scheduler.sleep(until_us - scheduler.now_us, Waiting(WaitFor.TIME, f"{seconds:g} s"))


def _of_now(real: Callable[..., object], position: int) -> Callable[..., object]:
    """Wraps a function whose argument at `position` is a time, by default now."""
    takes_fields = real.__name__ in ("strftime", "asctime")

    def convert(*arguments: object) -> object:
        scheduler = scheduler_here()
        is_now = len(arguments) <= position or arguments[position] is None
        if scheduler is None or not is_now:
            return real(*arguments)
        now_s = scheduler.read_clock_ns() / 1e9
        now = _localtime(now_s) if takes_fields else now_s
        return real(*arguments[:position], now)

    convert.__name__ = real.__name__
    return convert


_localtime: Final = time.localtime
_CALENDAR: Final = tuple(
    Replacement(getattr(time, name), _of_now(getattr(time, name), int(name == "strftime")))
    for name in ("localtime", "gmtime", "ctime", "asctime", "strftime")
)
PAIRS: Final = (
    *(_replaced_clock(name, 0) for name in ("time", "time_ns")),
    *(
        _replaced_clock(name + suffix, _BACK_NS)
        for name in ("monotonic", "perf_counter", "process_time", "thread_time")
        for suffix in ("", "_ns")
    ),
    *_CALENDAR,
    Replacement(_sleep, sleep),
)


_TAKEN: Final = ("now", "utcnow", "today")


def methods_taken() -> list[Replacement]:
    """Methods of datetime and date that a program has taken from their class, as in
    `default_factory=datetime.now`: each such method is a separate object, bound to its class."""
    classes: list[type] = [calendar.date]
    for cls in classes:  # `classes` grows meanwhile
        classes += cls.__subclasses__()
    known = set(classes)
    taken = {}
    for method in gc.get_referrers(*classes):
        if isinstance(method, BuiltinMethodType) and method.__name__ in _TAKEN:
            owner: object = method.__self__
            if isinstance(owner, type) and owner in known:
                taken[id(method)] = Replacement(method, _asking_class(owner, method.__name__))
    return list(taken.values())


def _asking_class(cls: type, name: str) -> Callable[..., object]:
    def ask(*arguments: object, **keywords: object) -> object:
        return getattr(cls, name)(*arguments, **keywords)

    ask.__name__ = name
    return ask


def replace_calendar(undo: ExitStack) -> None:
    """Replace datetime.now, utcnow and today, and date.today."""
    real_now, real_utcnow = calendar.datetime.now, calendar.datetime.utcnow
    real_today = calendar.date.today

    def now(cls: Any, tz: calendar.tzinfo | None = None) -> object:
        scheduler = scheduler_here()
        if scheduler is None:
            return real_now(tz) if cls is calendar.datetime else _as(cls, real_now(tz))
        return cls.fromtimestamp(scheduler.read_clock_ns() / 1e9, tz)

    def utcnow(cls: Any) -> object:
        scheduler = scheduler_here()
        if scheduler is None:
            return real_utcnow() if cls is calendar.datetime else _as(cls, real_utcnow())
        now_s = scheduler.read_clock_ns() / 1e9
        return cls.fromtimestamp(now_s, calendar.UTC).replace(tzinfo=None)

    def today(cls: Any) -> object:
        scheduler = scheduler_here()
        if scheduler is None:
            return real_today() if cls is calendar.date else cls.fromtimestamp(time.time())
        return cls.fromtimestamp(scheduler.read_clock_ns() / 1e9)

    set_in_builtin_type(undo, calendar.datetime, "now", classmethod(now))
    set_in_builtin_type(undo, calendar.datetime, "utcnow", classmethod(utcnow))
    set_in_builtin_type(undo, calendar.date, "today", classmethod(today))


def _as(cls: Any, value: calendar.datetime) -> Any:
    """A moment as an object of a subclass of datetime."""
    return cls.combine(value.date(), value.timetz())
