"""A node's deadlines: moved, cancelled, and run in order."""

from __future__ import annotations

from kcluster.timers import NEVER_MS, Timers


def test_timers__run_in_order_of_deadline_then_of_setting() -> None:
    timers, ran = Timers(), []
    timers.set("b", 20, lambda now_ms: ran.append("b"))
    timers.set("a", 10, lambda now_ms: ran.append("a"))
    timers.set("c", 20, lambda now_ms: ran.append("c"))
    timers.run_due(20)
    assert ran == ["a", "b", "c"]


def test_timers__setting_again_moves_a_deadline_and_cancelling_removes_it() -> None:
    timers = Timers()
    ran: list[int] = []
    timers.set("moved", 10, ran.append)
    timers.set("moved", 30, ran.append)
    timers.set("cancelled", 10, ran.append)
    timers.cancel("cancelled")
    timers.run_due(29)
    assert ran == []
    assert timers.next_ms == 30
    timers.run_due(31)
    assert ran == [31]
    assert timers.next_ms == NEVER_MS


def test_timers__a_callback_may_set_its_own_deadline_again() -> None:
    timers, ran = Timers(), []

    def again(now_ms: int) -> None:
        ran.append(now_ms)
        timers.set("k", now_ms + 10, again)

    timers.set("k", 10, again)
    timers.run_due(10)
    timers.run_due(20)
    assert ran == [10, 20]


def test_timers__moving_one_deadline_many_times_keeps_the_heap_small() -> None:
    timers = Timers()
    for at_ms in range(10_000):
        timers.set("k", at_ms, lambda now_ms: None)
    assert len(timers._heap) < 200
