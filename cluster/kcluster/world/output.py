"""The output of programs in a world: lines that begin with the virtual time and the program's name.

Owns: joining the parts of lines, for each program.  Never: knows the program of a thread
(scheduler.py does), changes a program's text.  Kafka: no counterpart; the log of a process manager
that runs several programs.
"""

from __future__ import annotations

import contextlib
import errno
import io
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from kcluster.world.active import app_here, is_dying

Prefix = Callable[[str], str]
"""Makes the beginning of a line of this program at this moment."""


class ProgramOutput(io.TextIOBase):
    """sys.stdout or sys.stderr of a world's programs.  `out`: the real output.  When the reader of
    `out` is gone or its disk is full, printing ends, and the programs go on."""

    def __init__(self, out: IO[str], prefix: Prefix) -> None:
        self._out = out
        self._prefix = prefix
        self._unfinished: dict[str, str] = {}
        self._is_over = False
        self.buffer = _Bytes(self)

    encoding = "utf-8"
    errors = "backslashreplace"

    def write(self, text: str) -> int:
        """Take text of the calling thread's program, and print the lines that it completes."""
        if self._is_over or is_dying():
            return len(text)
        app = app_here()
        whole, newline, rest = (self._unfinished.pop(app, "") + text).rpartition("\n")
        if newline:
            # Split at newlines, and not by splitlines(), which also splits at characters that do
            # not end lines of files.
            self._print(app, whole.split("\n"))
        if rest:
            self._unfinished[app] = rest
        return len(text)

    def finish(self) -> None:
        """Print the unfinished lines, then nothing more: the output of threads that are then ended
        by force is not the program's."""
        self._is_over = True
        unfinished, self._unfinished = self._unfinished, {}
        for app, text in unfinished.items():
            self._print(app, [text])
        self.flush()

    def flush(self) -> None:
        """Do nothing: finished lines are printed already."""
        with self._lost_quietly():
            self._out.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._out.fileno()

    def _print(self, app: str, lines: Iterable[str]) -> None:
        with self._lost_quietly():
            prefix = self._prefix(app)
            self._out.writelines(f"{prefix}{line}\n" for line in lines)

    @contextlib.contextmanager
    def _lost_quietly(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ENOSPC):
                raise
            self._is_over = True


class _Bytes(io.RawIOBase):
    """The `buffer` of a ProgramOutput, as of sys.stdout."""

    def __init__(self, output: ProgramOutput) -> None:
        self._output = output

    def write(self, data: Any) -> int:
        self._output.write(bytes(data).decode(errors="backslashreplace"))
        return len(data)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._output.flush()
