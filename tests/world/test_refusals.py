"""What cannot live in virtual time says so in one line, and the world remembers it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from kcluster.world.errors import NotInVirtualTime
from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python


async def start_program() -> None:
    await asyncio.create_subprocess_exec(sys.executable)


def wait_for_a_pipe() -> None:
    reading, writing = os.pipe()
    try:
        select.select([reading], [], [], 1)
    finally:
        os.close(reading)
        os.close(writing)


REFUSED: dict[str, tuple[str, Callable[[], object]]] = {
    "subprocess": ("process", lambda: subprocess.run(["true"], check=True)),
    "fork": ("os.fork", lambda: os.fork()),
    "system": ("os.system", lambda: os.system("true")),
    "multiprocessing": ("multiprocessing", lambda: multiprocessing.Process().start()),
    "process pool": ("ProcessPool", lambda: concurrent.futures.ProcessPoolExecutor()),
    "asyncio's subprocess": ("process", lambda: asyncio.run(start_program())),
    "alarm": ("signal.alarm", lambda: signal.alarm(1)),
    "timer": ("signal.setitimer", lambda: signal.setitimer(signal.ITIMER_REAL, 1)),
    "pause": ("signal.pause", lambda: signal.pause()),
    "UDP": ("UDP", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
    "path": ("not a path", lambda: socket.socket(socket.AF_UNIX).bind("its.sock")),
    "pipe": ("sockets", wait_for_a_pipe),
    "file": ("sockets", lambda: selectors.DefaultSelector().register(sys.__stdin__ or 0, 1)),
    "epoll": ("select.epoll", lambda: select.epoll()),
    "host": ("example.org", lambda: socket.create_connection(("example.org", 80))),
}


def test_each_is_refused_in_one_line() -> None:
    for name, (expected, use) in REFUSED.items():
        with empty_world() as world:
            with pytest.raises(NotInVirtualTime) as caught:
                use()
            assert expected in str(caught.value), name
            assert "\n" not in str(caught.value), name
            assert world.refused or name == "host"
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0
