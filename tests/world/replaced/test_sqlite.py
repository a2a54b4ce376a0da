"""SQLite waits for its locks in virtual time, and asks for the time in it."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kcluster.world.errors import TimeLimit
from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A file with a table, by a connection of the time before the world."""
    file = str(tmp_path / "orders.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE orders (number INTEGER)")
    return file


def insert(connection: sqlite3.Connection) -> float:
    """Insert an order; returns how long that took."""
    began_s = time.monotonic()
    with connection:
        connection.execute("INSERT INTO orders VALUES (1)")
    return time.monotonic() - began_s


def hold_for(duration_s: float, file: str) -> None:
    """Another service has a transaction open for so long."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(duration_s)
        connection.commit()


def holding(duration_s: float, file: str) -> threading.Thread:
    thread = threading.Thread(target=hold_for, args=(duration_s, file))
    thread.start()
    time.sleep(0.1)
    return thread


def test_sqlite__waits_for_a_lock_of_another_thread(database: str) -> None:
    with closing(sqlite3.connect(database)) as early, empty_world():
        holder = holding(1, database)
        assert 0.8 < insert(early) < 1.1
        holder.join()


def test_sqlite__gives_up_after_its_time_out_however_it_was_set(database: str) -> None:
    began_s = time.monotonic()
    with empty_world(), closing(sqlite3.connect(database, timeout=3)) as connection:
        holder = holding(60, database)
        for setting, timeout_s in (("", 3), ("PRAGMA busy_timeout = 20000", 20)):
            connection.execute(setting)
            before_s = time.monotonic()
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                insert(connection)
            assert time.monotonic() - before_s == pytest.approx(timeout_s, abs=0.1)
        holder.join()
    assert time.monotonic() - began_s < 30, "60 s passed, in virtual time alone"


def test_sqlite__its_clock_is_the_worlds(database: str) -> None:
    def year() -> Any:
        with closing(sqlite3.connect(database)) as connection:
            return connection.execute("SELECT strftime('%Y', 'now')").fetchone()[0]

    real = year()
    with empty_world(limit_s=0):
        time.sleep(400 * 86_400)
        assert year() == "2027"
    assert year() == real


def test_sqlite__the_limit_is_raised_at_the_next_wait(database: str) -> None:
    with empty_world(limit_s=10):
        holding(3_600, database)
        with closing(sqlite3.connect(database, timeout=60)) as connection:
            with pytest.raises(sqlite3.OperationalError):
                insert(connection)
            with pytest.raises(TimeLimit):
                time.sleep(1)
