"""Signals that stop commands that run until they are stopped: `kcluster up`, `serve`, `play`.

Owns: the thread that waits for SIGINT and SIGTERM, the time that stopping may take.  Never: stops
anything itself.
Kafka: Exit and the shutdown hook of a broker.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STOP_LIMIT_S: Final = 2.0


def on_stop_signals(
    stop: Callable[[], None],
    is_started: Callable[[], bool] = lambda: True,
    has_noticed: Callable[[], bool] = lambda: True,
) -> None:
    """The first SIGINT or SIGTERM stops cleanly, by `stop`; a second one stops at once, as does the
    first one before `is_started()`, when nothing has been written yet.  If `has_noticed()` is still
    false after STOP_LIMIT_S, the process ends without cleaning up: it may be stuck in its output.

    A thread waits for the signals.  A handler would run in the main thread when that next runs
    Python code: never, if the signal arrives just before it waits for the inbox.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    # Before any other thread starts: a thread inherits the signal mask of the thread that starts
    # it.
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def wait() -> None:
        number = signal.sigwait(numbers)
        if not is_started():
            os._exit(128 + number)
        stop()
        in_time = threading.Timer(STOP_LIMIT_S, lambda: has_noticed() or os._exit(128 + number))
        in_time.daemon = True
        in_time.start()
        os._exit(128 + signal.sigwait(numbers))

    threading.Thread(target=wait, name="signals", daemon=True).start()


@contextmanager
def leaving_within(limit_s: float = STOP_LIMIT_S) -> Iterator[None]:
    """Run the body, which stops a cluster; if it takes longer, the process ends without it, with
    exit code 1."""

    def leave() -> None:
        if sys.stderr is not None:
            text = f"not stopped within {limit_s:g} s; the process ends all the same"
            print(f"kcluster: {text}", file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(limit_s, leave)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
