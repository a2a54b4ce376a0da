"""Races in users' code: random interleavings find them, and find them again."""

from __future__ import annotations

import functools
import importlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

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


def run_in_two_threads(source: str, seed: int, **names: Any) -> list[Any]:
    """What two threads that run a library's code append to `order`."""
    order: list[Any] = []
    work = compile(source, "<a library>", "exec")
    with empty_world(seed=seed, schedule="random"):
        threads = [
            threading.Thread(target=exec, args=(work, {**names, "order": order, "name": name}))
            for name in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return order


def test_interleaving__what_a_process_remembers_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module is imported, and a logger asked for its level, by the first world only."""
    lines = ["import threading", "lock = threading.Lock()", *["with lock: pass"] * 20]
    (tmp_path / "first_used.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    source = """
for turn in range(20):
    import first_used
    is_logged = log.isEnabledFor(turn + 1)
    with lock: order.append((name, turn))
"""
    for seed in (3, 4):
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "first_used", raising=False)
        names = {"log": logging.getLogger(f"first used by {seed}"), "lock": threading.Lock()}
        first, second = (run_in_two_threads(source, seed, **names) for _ in range(2))
        assert first == second


def test_interleaving__a_lock_of_coverage_does_not_matter() -> None:
    tool: dict[str, Any] = {"__name__": "coverage.collector", "lock": threading.Lock()}
    exec("def watch():\n  with lock: pass", tool)
    source = """
for turn in range(20):
    watch()
    with lock: order.append(name)
"""
    for seed in range(5):
        watched, alone = (
            run_in_two_threads(source, seed, watch=watch, lock=threading.Lock())
            for watch in (tool["watch"], int)
        )
        assert watched == alone


@contextmanager
def covered() -> Iterator[None]:
    """With coverage at work, in this process and its threads."""
    coverage = pytest.importorskip("coverage")
    watching = coverage.Coverage(data_file=None, config_file=False, include=[__file__])
    watching.start()
    try:
        yield
    finally:
        watching.stop()


one_line = functools.partial(lambda seen: sum(x for x in seen), [1])
"""Functions on one line: their events are others with coverage."""


def pay_in_by_lines(account: Account) -> None:
    for _ in range(20):
        one_line()
        account.pay_in()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no lines with coverage (sys.settrace)")
@pytest.mark.skipif(sys.gettrace() is not None, reason="another tracer is at work")
def test_interleaving__coverage_changes_nothing() -> None:
    def paid_in(context: Callable[[], Any]) -> list[int]:
        with context():
            return [outcome(pay_in_by_lines, seed, "random").paid_in for seed in range(30)]

    alone = paid_in(nullcontext)
    assert min(alone) < 40
    assert paid_in(covered) == alone


def test_interleaving__whose_code_a_file_is() -> None:
    assert is_users_code(__file__)
    assert not is_users_code(threading.__file__)
    assert not is_users_code("/home/me/.venv/lib/python3.12/site-packages/kafka/future.py")
    assert not is_users_code("<string>")
