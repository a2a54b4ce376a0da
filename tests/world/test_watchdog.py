"""A thread that keeps the baton is named, and the run ends; so does Ctrl-C."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from kcluster.world import watchdog
from kcluster.world.errors import StandStill
from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python


def block(pipe: int) -> None:
    time.sleep(1)
    os.read(pipe, 1)


def test_a_thread_that_blocks_in_c_is_named_and_the_run_goes_on_without_it() -> None:
    reading, writing = os.pipe()
    with empty_world(patience_s=0.3) as world:
        threading.Thread(target=block, args=(reading,), name="reader").start()
        with pytest.raises(StandStill, match=r"reader has been blocked in C .*test_watchdog\.py"):
            time.sleep(10)
        began = time.monotonic()
        other = threading.Thread(target=time.sleep, args=(100,))
        other.start()
        other.join()
        assert time.monotonic() - began >= 100
    os.write(writing, b"x")
    assert world.left == []
    silent = os.pipe()  # one that the reader, which wakes up now, does not read from
    with empty_world(patience_s=0.3), pytest.raises(StandStill, match="MainThread"):
        os.read(silent[0], 1)
    for pipe in (reading, writing, *silent):
        os.close(pipe)


def spin(begun: list[int], stop: list[int]) -> None:
    time.sleep(1)
    begun.append(1)
    while not stop:
        pass


@pytest.fixture
def ctrl_c_as_usual() -> Iterator[None]:
    """A process that has used Spark has a handler of Spark's."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_as_usual")
def test_ctrl_c_ends_a_run_in_which_another_thread_spins() -> None:
    begun: list[int] = []
    stop: list[int] = []
    main = _thread.get_ident()

    def press_ctrl_c() -> None:
        while not begun:
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    outside = threading.Thread(target=press_ctrl_c)
    outside.start()
    with empty_world():
        threading.Thread(target=spin, args=(begun, stop)).start()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)
    stop.append(1)
    outside.join()
    with empty_world():
        time.sleep(1)


def compute_for_ever() -> None:
    while True:
        pass


def test_a_thread_that_computes_for_ever_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the CPU time that it used: a busy machine makes no program stand still."""
    monkeypatch.setattr(watchdog, "COMPUTING_S", 0.1)
    monkeypatch.setattr(watchdog, "TICK_S", 0.02)
    with empty_world(), pytest.raises(StandStill, match=r"MainThread has computed .* CPU time"):
        compute_for_ever()
