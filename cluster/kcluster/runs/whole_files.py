"""Files and directories that exist as a whole or not at all, also when the disk is full.

Owns: replacing a file, removing a partial one, the permissions.  Never: knows the content.
Kafka: Utils.atomicMoveWithFallback.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

PRIVATE: Final = 0o600
"""The permissions of files with keys and values of records: readable for this user only."""
PRIVATE_DIRECTORY: Final = 0o700
SHARED: Final = 0o666
"""The permissions of other files, as the umask allows."""


@contextmanager
def replacing(file: Path, mode: int = PRIVATE) -> Iterator[IO[bytes]]:
    """Write a file.  Until it is complete, readers get the previous file, which also stays if the
    new one cannot be completed.  Raises OSError with the file's name if it cannot be written."""
    if file.exists() and not file.is_file():  # /dev/stdout
        with open(file, "wb") as out:
            yield out
        return
    file = Path(os.path.realpath(file))
    fresh = file.with_name(f".{file.name}.new")
    is_complete = False
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with open(os.open(fresh, flags, mode), "wb") as out:
            yield out
        os.replace(fresh, file)
        is_complete = True
    except OSError as error:
        if error.filename is None:  # a full disk is reported without a name
            error.filename = str(file)
        raise
    finally:
        if not is_complete:
            fresh.unlink(missing_ok=True)


@contextmanager
def removed_on_failure(directory: Path) -> Iterator[None]:
    """Fill a new directory in the body; if the body fails, the directory is removed."""
    is_complete = False
    try:
        yield
        is_complete = True
    finally:
        if not is_complete:
            shutil.rmtree(directory, ignore_errors=True)


def append_whole(file: Path, data: bytes) -> None:
    """Append to a file: either all of the bytes or none."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
    try:
        before = os.fstat(descriptor).st_size
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError as error:
            os.ftruncate(descriptor, before)
            error.filename = str(file)
            raise
    finally:
        os.close(descriptor)
