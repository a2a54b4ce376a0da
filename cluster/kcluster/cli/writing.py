"""Files that verbs write, on a disk that may be full or read-only.

Owns: the reported errors.  Never: opens a file.
Kafka: none.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from kcluster.cli.errors import CommandError


@contextmanager
def writing(path: str) -> Iterator[None]:
    """A context for writing `path`, or files below it; CommandError if that is not possible."""
    if "\0" in path:
        raise CommandError(f"{path!r}: a path has no NUL", 2)
    try:
        yield
    except OSError as error:
        where = error.filename or path  # a full disk is reported without a name
        raise CommandError(f"{where}: cannot be written: {error.strerror}", 2) from error


def require_writable_directory(path: str) -> None:
    """Create the directory if it does not exist; CommandError if no file can be written there."""
    with writing(path):
        os.makedirs(path or ".", exist_ok=True)
        _require_access(path or ".")


def require_writable_file(path: str) -> None:
    """Check that a file can be created or replaced; CommandError if not."""
    with writing(path):
        folder = os.path.dirname(path) or "."
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not os.path.isdir(folder):
            missing = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
            raise OSError(missing, os.strerror(missing), path)
        _require_access(path if os.path.exists(path) else folder)


def _require_access(path: str) -> None:
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission, or a read-only file system", path)
