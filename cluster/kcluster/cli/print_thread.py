"""Printing in a thread of its own: a blocked terminal does not keep a cluster from stopping.

Owns: the thread that prints until the cluster stops, the end of a process in which it is stuck.
Never: knows what is printed (foreground.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Final

PRINT_LIMIT_S: Final = 1.0
"""The time to print the events before the stop."""


class PrintThread:
    """Calls `work`, which prints until the cluster stops."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, name="prints", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is printed.  If the reader of the output takes too long, the rest is not
        printed."""
        self._thread.join(PRINT_LIMIT_S)
        if self._thread.is_alive():
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # until the process ends

    def leave_if_stuck(self, exit_code: int) -> None:
        """End the process if the thread is still printing: the interpreter could not exit, because
        the thread holds the lock of the output."""
        if self._thread.is_alive():
            if sys.stderr is not None:
                sys.stderr.flush()
            os._exit(exit_code)
