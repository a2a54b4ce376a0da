"""`--watch` and `--follow`: output that goes on until Ctrl-C, the end of the cluster, or the end of
its reader.

Owns: the rhythm, clearing the terminal, noticing that the reader of the output is gone.  Never:
knows what is shown.
Kafka: no counterpart; watch(1).
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

from kcluster.cli.errors import CommandError
from kcluster.plain_output import styled

EVERY_S: Final = 0.5
_CLEAR: Final = "\033[H\033[2J"


def watch(read: Callable[[], object], show: Callable[[], object]) -> None:
    """Call `show` whenever `read()` has changed.  On a terminal each text replaces the previous
    one; elsewhere it follows it."""
    is_over = Event()
    when_nobody_reads(is_over.set)
    shown: object = None
    try:
        while not is_over.is_set():
            try:
                found = read()
            except CommandError:
                if shown is None:
                    raise
                print("the cluster has stopped")
                return
            if found != shown:
                if sys.stdout.isatty():
                    print(_CLEAR, end="", file=styled(sys.stdout))
                elif shown is not None:
                    print()
                shown = found
                show()
                sys.stdout.flush()
            is_over.wait(EVERY_S)
    except KeyboardInterrupt:
        return


def when_nobody_reads(end: Callable[[], object]) -> None:
    """Call `end`, in another thread, once the output's reader has closed it: `events --follow
    | head -1` must not wait for the next event."""
    try:
        output = sys.stdout.fileno()
    except (AttributeError, OSError):  # closed, or no file
        return
    poll = select.poll()
    poll.register(output, 0)  # errors only, which are always reported

    def wait() -> None:
        poll.poll()
        end()

    Thread(target=wait, name="output", daemon=True).start()
