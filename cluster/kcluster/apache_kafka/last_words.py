"""Why a process of Kafka has ended: its exit code, and the last error that it printed.

Owns: reading these from a node's output.  Never: waits for a process (processes.py does).
Kafka: log4j2.yaml, whose pattern the entries of a log have.
"""

from __future__ import annotations

import re
import signal
from itertools import takewhile
from typing import Final

_ENTRY: Final = re.compile(r"\[[^]]*\] (?P<level>[A-Z]+) (?P<message>.*?)(?: \(\S+\))?")
"""A line of the log: [time] LEVEL message (class)."""
_NO_REASON: Final = re.compile(
    r"#|.*\bwarning: .*|WARNING: .*|Picked up \S+: .*|Error occurred during initialization of VM"
    r"|Error: Could not create the Java Virtual Machine\.|Error: A fatal exception has occurred\..*"
)
"""Lines of Java that are no reason for an end: warnings, and introductions to the reason."""
_UNCAUGHT: Final = "Exception in thread "


def error_in(text: str) -> str | None:
    """The last error in a node's output, in one line: its message, or the exception below it; None
    if there is none.  Java, and Kafka's tools, print the reason of a failure without a level, after
    all entries of the log."""
    lines = [line for line in text.splitlines() if line.strip()]
    last = list(takewhile(lambda line: _ENTRY.fullmatch(line) is None, reversed(lines)))[::-1]
    reason = _reason_in(last, is_whole=len(last) == len(lines))
    return _logged_error(lines) if reason is None else reason


def _reason_in(lines: list[str], *, is_whole: bool) -> str | None:
    """The reason in lines without a level.  `is_whole`: whether no entry is before them; below an
    entry, an exception with its stack belongs to that entry."""
    has_stack = any(line[0].isspace() for line in lines)
    is_own = is_whole or not has_stack
    return next(
        (
            line.removeprefix("# ")
            for line in lines
            if not line[0].isspace()
            and _NO_REASON.fullmatch(line) is None
            and (is_own or line.startswith(_UNCAUGHT))
        ),
        None,
    )


def _logged_error(lines: list[str]) -> str | None:
    found, is_error = None, False
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            is_error = entry["level"] in ("ERROR", "FATAL")
            found = entry["message"] if is_error else found
        elif is_error and not line[0].isspace():
            found, is_error = line, False
    return found


def ended_with(code: int) -> str:
    """The end of a process by its return code, which is a signal's number if it is negative."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"
