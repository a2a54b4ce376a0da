"""Races in users' code: random interleavings find them, and find them again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kcluster.world.interleaving import is_users_code
from tests.world.rig import empty_world


class Account:
    """Two bugs: a lost update, and a check that holds no longer when it is acted upon."""

    def __init__(self) -> None:
        self.paid_in = 0
        self.balance = 10

    def pay_in(self) -> None:
        before = self.paid_in
        self.paid_in = before + 1

    def withdraw(self) -> None:
        if self.balance >= 10:
            self.balance -= 10


def outcome(work: Callable[[Account], None], seed: int, schedule: str) -> Account:
    """An account after two threads have worked with it."""
    account = Account()

    def begin() -> None:
        together.wait()
        work(account)

    with empty_world(seed=seed, schedule=schedule):
        together = threading.Barrier(2)
        threads = [threading.Thread(target=begin) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return account


def pay_in_often(account: Account) -> None:
    for _ in range(20):
        account.pay_in()


@pytest.mark.parametrize(
    ("work", "is_wrong"),
    [
        (pay_in_often, lambda account: account.paid_in != 40),
        (Account.withdraw, lambda account: account.balance < 0),
    ],
    ids=["a lost update", "check, then act"],
)
def test_interleaving__a_race_is_found_by_some_seeds_each_time_the_same(
    work: Callable[[Account], None], is_wrong: Callable[[Account], bool]
) -> None:
    def wrong_seeds() -> list[int]:
        return [seed for seed in range(30) if is_wrong(outcome(work, seed, "random"))]

    found = wrong_seeds()
    assert found
    assert found == wrong_seeds()
    assert not is_wrong(outcome(work, found[0], "fifo"))


def test_interleaving__reading_the_clock_may_interrupt_too() -> None:
    def run(seed: int) -> list[str]:
        order: list[str] = []
        source = "order.append(name); time(); order.append(name); time(); order.append(name)"
        work = compile(source, "<a library>", "exec")
        with empty_world(seed=seed, schedule="random"):
            names = {"time": time.time, "order": order}
            threads = [
                threading.Thread(target=exec, args=(work, {**names, "name": name})) for name in "ab"
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return order

    orders = [run(seed) for seed in range(30)]
    assert any(order[0] == order[-1] for order in orders), "one within the other"
    assert orders == [run(seed) for seed in range(30)]


def test_interleaving__whose_code_a_file_is() -> None:
    assert is_users_code(__file__)
    assert not is_users_code(threading.__file__)
    assert not is_users_code("/home/me/.venv/lib/python3.12/site-packages/kafka/future.py")
    assert not is_users_code("<string>")
