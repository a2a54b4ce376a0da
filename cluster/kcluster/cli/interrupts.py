"""Ctrl-C: quiet while the command is loading, an exception while a verb works.

Owns: the handler of SIGINT until a verb runs, the exit code of an interrupted command.  Never:
imports anything that takes time: it comes first, so that a Ctrl-C during all later imports is
quiet.  Commands that serve until they are stopped wait for signals in their own way
(stop_signals.py).
Kafka: no counterpart.
"""

from __future__ import annotations

# `signal` wraps this module in enums, whose import takes as long as the rest of this start.
import _signal  # type: ignore[import-not-found]  # it has no stub
import os

INTERRUPTED = 130
"""The exit code, as from a shell: 128 + SIGINT."""
_is_ours = False


def leave_on_interrupt() -> None:
    """From now on Ctrl-C ends the process at once: nothing has been started or written yet."""
    global _is_ours
    _is_ours = True
    _signal.signal(_signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, so that a verb can clean up.  Nothing changes if
    leave_on_interrupt() was not called: the process then belongs to other code, such as a test."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def leave_on_second_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt once, and then ends the process at once: other
    people's code may then take for ever.  Nothing changes in a process that belongs to other
    code."""
    if _is_ours:
        _signal.signal(_signal.SIGINT, _raise_once)


def _raise_once(number: int, frame: object) -> None:
    _signal.signal(_signal.SIGINT, _leave)
    raise KeyboardInterrupt


def _leave(number: int, frame: object) -> None:
    os._exit(INTERRUPTED)
