"""Signals that stop what runs until it is stopped: `kcluster up`, `serve`, `play`.

Owns: the thread that waits for SIGINT and SIGTERM.  Never: stops anything itself.
Kafka: Exit and the shutdown hook of a broker.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


def on_stop_signals(stop: Callable[[], None]) -> None:
    """The first SIGINT or SIGTERM stops cleanly; a second one at once.

    A thread waits for them.  A handler would run in the main thread when that next runs Python
    code: never, if the signal arrives just before it waits for the inbox.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    # Before any other thread starts: a thread inherits the mask of the one that starts it.
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def wait() -> None:
        signal.sigwait(numbers)
        stop()
        os._exit(128 + signal.sigwait(numbers))

    threading.Thread(target=wait, name="signals", daemon=True).start()
