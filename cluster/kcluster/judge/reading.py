"""The bytes of a history's file: plain or compressed, from a path or from stdin, line by line.

Owns: the opening of files, the limit on a line, marks of encodings.  Never: knows a format
(files.py does), keeps more of a file than the line that is read.  Kafka: no counterpart.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Final, cast

from kcluster.config.files.problems import Problem

STDIN: Final = "-"
STDIN_NAME: Final = "stdin"
MAX_LINE_BYTES: Final = 16 << 20
CUT_OFF: Final = "Input data was truncated"
"""msgspec's error for the beginning of a value."""
GZIP: Final = b"\x1f\x8b"
Report = Callable[[Problem], None]
"""Takes note of a problem in a file."""


def name_of(path: str) -> str:
    """The name of a file in proofs and problems."""
    return STDIN_NAME if path == STDIN else path


def repeated(paths: list[str]) -> Iterator[Problem]:
    """The paths of a file that was given before: its records would be sent and read twice."""
    first: dict[Path, str] = {}
    for path in paths:
        key = Path(path) if path == STDIN else Path(path).resolve()
        other = first.get(key)
        if other is None:
            first[key] = path
        else:
            text = "the file is given twice" if other == path else f"the same file as {other}"
            yield Problem(name_of(path), 0, 0, "", text)


def lines_of(path: str, report: Report) -> Iterator[bytes]:
    """The lines of a file, each with its end, decompressed if the file is of gzip.  A line above
    MAX_LINE_BYTES ends the file, and so does what cannot be read."""
    source = name_of(path)
    try:
        with ExitStack() as stack:
            file = _opened(path, stack)
            number = 1
            line = file.readline(MAX_LINE_BYTES + 1)
            if line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                text = "the file is encoded in UTF-16; a history is UTF-8"
                report(Problem(source, 1, 1, "", text))
                return
            line = line.removeprefix(BOM_UTF8)
            while line:
                if len(line) > MAX_LINE_BYTES:
                    text = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
                    report(Problem(source, number, 1, "", text))
                    return
                yield line
                number += 1
                line = file.readline(MAX_LINE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        report(Problem(source, 0, 0, "", reason or str(error) or "it cannot be read"))


def _opened(path: str, stack: ExitStack) -> BufferedIOBase:
    if path == STDIN:
        plain = cast(BufferedReader, sys.stdin.buffer)
    else:
        plain = stack.enter_context(Path(path).open("rb"))  # noqa: SIM115 (of the stack)
    if plain.peek(len(GZIP)).startswith(GZIP):
        return stack.enter_context(gzip.open(plain))
    return plain
