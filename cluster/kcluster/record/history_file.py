"""The file of a history, to which several clients of a program write.

Owns: the file, its lock, the clock of its operations, values as text.  Never: knows a client.
Kafka: no counterpart.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Self

import msgspec

from kcluster.judge.history import AnyOperation


class HistoryFile:
    """A history in JSON lines.  Each operation is written at once, so that a program that is killed
    leaves what it saw; an existing file is continued.  Thread-safe; several processes may write to
    one file of a local disk."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close)
        self._lock = threading.Lock()
        if not _ends_a_line(path):
            self._file.write(b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def write(self, operation: AnyOperation) -> None:
        """Write one operation; after `close` nothing is written."""
        line = msgspec.json.encode(operation) + b"\n"
        with self._lock:
            if not self._file.closed:
                self._file.write(line)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


def _ends_a_line(path: str | os.PathLike[str]) -> bool:
    """Whether a file is empty, or its last line is whole."""
    with open(path, "rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def now_ms() -> int:
    """The time of an operation, in ms since 1970."""
    return time.time_ns() // 1_000_000


def value_text(value: object) -> str | None:
    """A record's value as text: bytes as UTF-8, other values, before or after serializers, as JSON
    with sorted keys."""
    match value:
        case None:
            return None
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode("utf-8", "backslashreplace")
        case str():
            return value
    return json.dumps(value, sort_keys=True, default=repr)
