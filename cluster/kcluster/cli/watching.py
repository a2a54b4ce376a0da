"""`--watch`: shows something again when it has changed, until Ctrl-C or until the cluster stops.

Owns: the rhythm, clearing the terminal.  Never: knows what is shown.
Kafka: no counterpart; watch(1).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Event
from typing import Final

from kcluster.cli.control.protocol import ControlError

EVERY_S: Final = 0.5
_CLEAR: Final = "\033[H\033[2J"


def watch(read: Callable[[], object], show: Callable[[], object]) -> None:
    """Call `show` whenever `read()` has changed.  On a terminal each text replaces the one before;
    elsewhere it follows it."""
    pause = Event()
    shown: object = None
    try:
        while True:
            try:
                found = read()
            except ControlError:
                if shown is None:
                    raise
                print("the cluster has stopped")
                return
            if found != shown:
                if sys.stdout.isatty():
                    print(_CLEAR, end="")
                elif shown is not None:
                    print()
                shown = found
                show()
                sys.stdout.flush()
            pause.wait(EVERY_S)
    except KeyboardInterrupt:
        return
