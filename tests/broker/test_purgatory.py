"""Parked requests: each is expired once, in order, or never."""

from __future__ import annotations

from kcluster.broker.purgatory import DelayedOperation, Purgatory
from kcluster.timers import NEVER_MS


class Parked(DelayedOperation):
    __slots__ = ("expired",)

    def __init__(self, expired: list[Parked]) -> None:
        super().__init__()
        self.expired = expired

    def expire(self, now_ms: int) -> None:
        self.done = True
        self.expired.append(self)


def test_purgatory__expires_in_order_of_deadline_whatever_the_wait() -> None:
    purgatory = Purgatory()
    expired: list[Parked] = []
    late, early = Parked(expired), Parked(expired)
    purgatory.park(late, 500, now_ms=0)
    purgatory.park(early, 100, now_ms=10)
    assert purgatory.next_ms == 110
    purgatory.run_due(499)
    assert expired == [early]
    purgatory.run_due(500)
    assert expired == [early, late]
    assert purgatory.next_ms == NEVER_MS


def test_purgatory__a_completed_operation_neither_expires_nor_sets_a_deadline() -> None:
    purgatory = Purgatory()
    expired: list[Parked] = []
    done, waiting = Parked(expired), Parked(expired)
    purgatory.park(done, 100, now_ms=0)
    purgatory.park(waiting, 100, now_ms=50)
    done.done = True
    assert len(purgatory) == 1
    purgatory.run_due(100)
    assert purgatory.next_ms == 150
    purgatory.run_due(1_000)
    assert expired == [waiting]


def test_purgatory__an_operation_completed_by_another_does_not_expire() -> None:
    purgatory = Purgatory()
    expired: list[Parked] = []
    other = Parked(expired)

    class Finisher(Parked):
        def expire(self, now_ms: int) -> None:
            super().expire(now_ms)
            other.done = True

    purgatory.park(Finisher(expired), 100, now_ms=0)
    purgatory.park(other, 200, now_ms=0)
    purgatory.run_due(300)
    assert other not in expired


def test_purgatory__a_long_wait_does_not_retain_completed_operations() -> None:
    purgatory = Purgatory()
    expired: list[Parked] = []
    purgatory.park(Parked(expired), 30_000, now_ms=0)
    for _ in range(10_000):
        quick = Parked(expired)
        purgatory.park(quick, 30_000, now_ms=1)
        quick.done = True
    retained, one = 0, purgatory._queues[30_000]._first
    while one is not None:
        retained, one = retained + 1, one.parked_behind
    assert retained < 2_000
    assert len(purgatory) == 1


def test_purgatory__is_empty_after_waits_of_every_length() -> None:
    purgatory = Purgatory()
    expired: list[Parked] = []
    for wait_ms in range(1, 10_000):
        quick = Parked(expired)
        purgatory.park(quick, 1_000_000 + wait_ms, now_ms=0)
        quick.done = True
    assert len(purgatory._queues) <= 64
    purgatory.run_due(0)
    assert purgatory.next_ms == NEVER_MS
