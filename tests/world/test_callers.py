"""Exceptions for known callers: each is needed, and its test is there."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kcluster.world import selecting
from kcluster.world.callers import CALLERS, KnownCaller
from kcluster.world.compute import POLLS
from kcluster.world.replaced import locks
from tests.world.rig import empty_world

NOBODY = KnownCaller(why="", read_in="", test="")
LOOKS = POLLS + 100


def seconds_of(work: Callable[[], object]) -> float:
    """The virtual time that `work` takes; polling without an end costs time."""
    with empty_world():
        began = time.monotonic()
        work()
        return time.monotonic() - began


def ask_a_loop_again_and_again() -> None:
    async def turns() -> None:
        for _ in range(LOOKS):
            await asyncio.sleep(0)

    asyncio.run(turns())


def notify_again_and_again() -> None:
    condition = threading.Condition(threading.Lock())
    for _ in range(LOOKS):
        with condition:
            condition.notify()


def submit_again_and_again() -> None:
    may_go_on = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(may_go_on.wait)
        for _ in range(LOOKS):
            pool.submit(int)
        may_go_on.set()


def test_asyncio__looks_for_sockets_without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet_s = seconds_of(ask_a_loop_again_and_again)
    monkeypatch.setattr(selecting, "ASYNCIO", NOBODY)
    assert quiet_s + 0.1 < seconds_of(ask_a_loop_again_and_again)


def test_condition__looks_whether_it_owns_its_lock_without_polling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quiet_s = seconds_of(notify_again_and_again)
    monkeypatch.setattr(locks, "IS_OWNED", NOBODY)
    assert quiet_s + 0.1 < seconds_of(notify_again_and_again)


def test_thread_pool__looks_for_an_idle_thread_without_polling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quiet_s = seconds_of(submit_again_and_again)
    monkeypatch.setattr(locks, "THREAD_POOL", NOBODY)
    assert quiet_s + 0.1 < seconds_of(submit_again_and_again)


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.test)
def test_each_caller_is_in_this_python_and_has_its_test(caller: KnownCaller) -> None:
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert f"def {caller.test}(" in tests
    assert (caller.code is None) != (not caller.modules)
    for module in caller.modules:
        assert importlib.import_module(module).__name__ == module
