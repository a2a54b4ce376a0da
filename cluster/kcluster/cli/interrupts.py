"""Ctrl-C: quiet while the command is loading, an exception while a verb works.

Owns: the handler of SIGINT until a verb runs, the exit code of an interrupted command.  Never:
imports anything that takes time: it comes first, so that a Ctrl-C during all later imports is
quiet.  What serves until it is stopped waits for signals in its own way
(stop_signals.py).
Kafka: no counterpart.
"""

from __future__ import annotations

# `signal` is this module with enums around it, which take as long as the rest of this start.
import _signal  # type: ignore[import-not-found]  # it has no stub
import os

INTERRUPTED = 130
"""The exit code, as of a shell: 128 + SIGINT."""
_is_ours = False


def leave_on_interrupt() -> None:
    """From now on Ctrl-C ends the process at once: nothing has been started or written yet."""
    global _is_ours
    _is_ours = True
    _signal.signal(_signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, so that a verb can clean up.  Nothing changes if
    leave_on_interrupt() was not called: then the process is not ours, as in a test."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def leave_on_second_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt once, and then ends the process at once: what
    other people's code does meanwhile may take for ever.  Not in a process that is not ours."""
    if _is_ours:
        _signal.signal(_signal.SIGINT, _raise_once)


def _raise_once(number: int, frame: object) -> None:
    _signal.signal(_signal.SIGINT, _leave)
    raise KeyboardInterrupt


def _leave(number: int, frame: object) -> None:
    os._exit(INTERRUPTED)
