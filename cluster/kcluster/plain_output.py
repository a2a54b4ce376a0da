"""Text for terminals: names given by strangers cannot control the terminal that shows them.

Owns: the set of escaped characters, the escaping stdout and stderr of all verbs of `kcluster`, and
the exception for this program's own colours.  Never: knows what is printed.  Kafka: none; its tools
print names unchanged.

A client.id, a group's name or a file of another user's run may have control characters, which clear
a terminal or hide text in it, and marks that reverse its direction.  They are shown as in JSON, so
that a line of JSON stays valid.
"""

from __future__ import annotations

import io
import os
import re
import sys
from typing import IO, TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # change direction, or break lines
)


def escaped(text: str) -> str:
    """Text whose control characters are shown as in JSON.  Tabs and newlines are kept."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PlainOutput(io.TextIOWrapper):
    """An output on which only `styled` has control characters."""

    def write(self, text: str) -> int:
        """Write text, escaped."""
        return super().write(escaped(text))

    def write_styled(self, text: str) -> int:
        """Write text as it is."""
        return super().write(text)


class _Styled(io.TextIOBase):
    """An output that also takes text with this program's own control characters."""

    def __init__(self, output: PlainOutput) -> None:
        self._output = output

    @property
    def encoding(self) -> str:  # type: ignore[override]  # it is writable there
        return self._output.encoding

    def write(self, text: str) -> int:
        return self._output.write_styled(text)

    def flush(self) -> None:
        self._output.flush()

    def isatty(self) -> bool:
        return self._output.isatty()

    def fileno(self) -> int:
        return self._output.fileno()


def styled(output: TextIO) -> Any:
    """An output for text that has no part from strangers, or is already escaped."""
    return _Styled(output) if isinstance(output, PlainOutput) else output


def escape_outputs() -> None:
    """Escape all later output of this process to stdout and stderr.  An output that the caller has
    closed becomes /dev/null, also as a descriptor: the next file to be opened would take its
    number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(descriptor)
    sys.stdout = _plain(sys.stdout, 1, "replace")  # not all encodings have ♛
    sys.stderr = _plain(sys.stderr, 2, "backslashreplace")


def _plain(output: Any, descriptor: int, errors: str) -> TextIO:
    if output is None:
        output = open(descriptor, "w", closefd=False)  # noqa: SIM115  # until the process ends
    if not isinstance(output, io.TextIOWrapper):
        return output  # type: ignore[no-any-return]  # the caller has replaced it
    options: dict[str, Any] = {
        "encoding": output.encoding,
        "errors": errors,
        "line_buffering": output.line_buffering,
        "write_through": output.write_through,
    }
    binary: IO[bytes] = output.detach()
    return PlainOutput(binary, **options)


def plain_console(*, to_stderr: bool = False, **options: Any) -> Console:
    """A rich console on stdout or stderr that shows only its own control codes."""
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        """Escapes what it renders."""

        def render(self, *arguments: Any, **named: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **named):
                if segment.control:
                    yield segment
                else:
                    yield Segment(escaped(segment.text), segment.style)

    output = sys.stderr if to_stderr else sys.stdout
    return PlainConsole(file=styled(output), **options)
