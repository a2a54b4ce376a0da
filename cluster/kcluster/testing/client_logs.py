"""Log lines of client libraries in a failed test's report, folded.

Owns: the choice of captured lines to fold.  Never: folds a line of the user's own loggers.  Kafka:
no counterpart.

While a broker is down, kafka-python logs an error per attempt to connect: dozens of them hide the
test's own lines.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

KEPT: Final = 3
"""The number of entries of client libraries that each section keeps."""
_ENTRY: Final = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) +([\w.]+):\S+:\d+ ")
"""The beginning of an entry in pytest's default log_format; a traceback may follow."""
_LIBRARIES: Final = ("kafka", "aiokafka")


def fold_client_logs(report: pytest.TestReport) -> None:
    """Keep the first entries of client libraries in the sections with captured logs."""
    report.sections = [
        (title, _folded(text) if title.startswith("Captured log") else text)
        for title, text in report.sections
    ]


def _folded(text: str) -> str:
    lines: list[str] = []
    left_out: dict[str, int] = {}
    kept, is_kept = 0, True
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            logger = entry[1]
            is_kept = logger.split(".")[0] not in _LIBRARIES or kept < KEPT
            if not is_kept:
                left_out[logger] = left_out.get(logger, 0) + 1
            elif logger.split(".")[0] in _LIBRARIES:
                kept += 1
        if is_kept:
            lines.append(line)
    if left_out:
        named = ", ".join(f"{count} of {logger}" for logger, count in left_out.items())
        lines.append(f"... and more log entries: {named} (pytest -vv shows them)")
    return "\n".join(lines)
