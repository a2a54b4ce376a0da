"""What had taken a function from the standard library before the world finds the world's."""

from __future__ import annotations

import dataclasses
import functools
import logging
import random
import threading
import time
from collections.abc import Callable
from time import monotonic, sleep

import pytest

from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python

BY_LIST = [monotonic]
BY_NAME = {"now": time.monotonic}


class Service:
    clock: Callable[..., float] = time.monotonic
    own = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.now = time.monotonic


class Slotted:
    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = time.monotonic


@dataclasses.dataclass
class Stamp:
    at: float = dataclasses.field(default_factory=time.monotonic)


def by_default(now: Callable[[], float] = time.monotonic) -> float:
    return now()


def by_keyword(*, now: Callable[[], float] = time.monotonic) -> float:
    return now()


def by_closure(now: Callable[[], float]) -> Callable[[], float]:
    return lambda: now()


IN_CLOSURE = by_closure(time.monotonic)
PARTIAL = functools.partial(by_closure, time.monotonic)
NOW = functools.partial(time.monotonic)
SERVICE, SLOTTED = Service(), Slotted()


def readings() -> list[float]:
    return [
        monotonic(), BY_LIST[0](), BY_NAME["now"](), SERVICE.clock(), SERVICE.own(), SERVICE.now(),
        SLOTTED.now(), Stamp().at, by_default(), by_keyword(), IN_CLOSURE(), NOW(),
    ]  # fmt: skip


def test_all_read_the_clock_of_the_world_and_then_the_real_one_again() -> None:
    before = readings()
    with empty_world(limit_s=1e9) as world:
        sleep(1e7)
        assert all(1e7 <= reading - 1000 < 1e7 + 1 for reading in readings())
        formatter = logging.Formatter("%(asctime)s")
        record = logging.LogRecord("x", 1, "x", 1, "x", (), None)
        assert formatter.format(record).startswith("2026-04-26")
        assert world.scheduler.switches == 0
        seen: list[float] = []
        outside = threading.Thread(target=lambda: seen.extend(readings()))
    outside.start()
    outside.join()
    assert before[0] <= seen[0] < before[0] + 1e6
    assert all(abs(reading - seen[0]) < 100 for reading in (*before, *seen))
    assert time.monotonic.__module__ == "time"
    assert isinstance(random.Random().random(), float)
