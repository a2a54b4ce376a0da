"""Locks of a world are the interpreter's own, whoever made them and whenever."""

from __future__ import annotations

import logging
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import pytest

from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python

MADE_AT_IMPORT = threading.Lock()
REENTRANT_AT_IMPORT = threading.RLock()
QUEUE_AT_IMPORT: queue.SimpleQueue[int] = queue.SimpleQueue()


def hold(lock: threading.Lock | threading.RLock, seconds: float, order: list[str]) -> None:
    with lock:
        order.append(threading.current_thread().name)
        time.sleep(seconds)


@pytest.mark.parametrize("lock", [MADE_AT_IMPORT, REENTRANT_AT_IMPORT], ids=["Lock", "RLock"])
def test_a_lock_made_at_import_is_waited_for_in_virtual_time(lock: threading.Lock) -> None:
    order: list[str] = []
    with empty_world() as world:
        began = time.monotonic()
        threads = [
            threading.Thread(target=hold, args=(lock, 10, order), name=name) for name in "abc"
        ]
        for thread in threads:
            thread.start()
        time.sleep(1)
        assert not lock.acquire(blocking=False)
        assert not lock.acquire(timeout=2)
        assert 3 <= time.monotonic() - began < 3.1
        assert lock.acquire(timeout=100)
        assert 30 <= time.monotonic() - began < 30.1
        lock.release()
        for thread in threads:
            thread.join()
        assert not world.scheduler.lines.reserved
    assert order == ["a", "b", "c"]
    with pytest.raises(RuntimeError):
        lock.release()


def test_conditions_keep_the_depth_of_a_reentrant_lock() -> None:
    with empty_world():
        condition = threading.Condition()

        def tell() -> None:
            time.sleep(5)
            with condition:
                condition.notify_all()
                time.sleep(1)

        threading.Thread(target=tell).start()
        with condition, condition:
            assert condition.wait(60)
            assert time.monotonic() > 1006 - 0.1
            assert not condition.wait(1)


def test_queues_made_at_import_and_in_the_world() -> None:
    with empty_world():
        inside: queue.SimpleQueue[int] = queue.SimpleQueue()
        for items in (QUEUE_AT_IMPORT, inside):
            began = time.monotonic()
            threading.Timer(5, items.put, (1,)).start()
            with pytest.raises(queue.Empty):
                items.get(timeout=2)
            assert items.get() == 1
            assert 5 <= time.monotonic() - began < 5.1
            with pytest.raises(queue.Empty):
                items.get_nowait()


def test_everything_that_is_built_from_locks() -> None:
    with empty_world():
        barrier, gate = threading.Barrier(3), threading.BoundedSemaphore(2)
        last: queue.LifoQueue[int] = queue.LifoQueue()
        least: queue.PriorityQueue[int] = queue.PriorityQueue()

        def work(number: int) -> float:
            barrier.wait(timeout=10)
            with gate:
                time.sleep(1)
                last.put(number)
                least.put(-number)
            return round(time.monotonic(), 1)

        with ThreadPoolExecutor(3) as pool:
            assert sorted(pool.map(work, range(3))) == [1001.0, 1001.0, 1002.0]
        assert sorted(last.get() for _ in range(3)) == [0, 1, 2]
        assert [least.get() for _ in range(3)] == [-2, -1, 0]
        last.task_done()


class Shop:
    @cached_property
    def stock(self) -> list[int]:
        time.sleep(1)
        return [1]


def test_a_logger_s_lock_may_be_contended(caplog: pytest.LogCaptureFixture) -> None:
    with empty_world(schedule="random"):
        shop = Shop()
        threads = [
            threading.Thread(target=lambda: logging.warning("%s", shop.stock)) for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(caplog.records) == 5


def test_threads_of_no_world_use_the_same_locks() -> None:
    lock, stop, turns = threading.Lock(), threading.Event(), [0]

    def spin() -> None:
        while not stop.is_set():
            with lock:
                turns[0] += 1

    outside = threading.Thread(target=spin)
    outside.start()
    try:
        with empty_world():
            before = turns[0]
            for _ in range(200):
                with lock:
                    time.sleep(1)
            assert time.monotonic() >= 1200
            while turns[0] == before:
                pass
    finally:
        stop.set()
        outside.join()
    assert not lock.locked()


def test_handing_over_many_items_takes_no_time() -> None:
    """A condition asks whether it owns its lock, and a pool whether one of its threads is idle:
    neither is a look in vain by code that spins."""
    with empty_world():
        began = time.monotonic()
        items: queue.Queue[int] = queue.Queue()
        for number in range(1000):
            items.put(number)
        assert sum(items.get() for _ in range(1000)) == 499500
        with ThreadPoolExecutor(2) as pool:
            assert len(list(pool.map(abs, range(1000)))) == 1000
        assert time.monotonic() - began < 0.1
        lock = threading.Lock()
        lock.acquire()
        for _ in range(1000):
            assert not lock.acquire(blocking=False)
        assert time.monotonic() - began > 1
        lock.release()
