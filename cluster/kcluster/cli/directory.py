"""The directory of clusters' sockets: its place, its permissions, the running clusters.

Owns: the runtime directory and its permissions, the names of running clusters and their sockets.
Never: talks over a socket (remote.py and web/ do).
Kafka: none; a cluster of processes is found through its pid files, this one through its socket.

Permissions: the directory is `$XDG_RUNTIME_DIR/kcluster`, or `/tmp/kcluster-UID` if that is not
set.  It must be a real directory that belongs to this user, with mode 0700, or no socket in it is
created or used.  The socket must belong to this user too, and has mode 0600.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from typing import Final

from kcluster.cli.errors import CommandError

CONNECT_TIMEOUT_S: Final = 5.0

MAX_PATH_BYTES: Final = 100
"""The limit of a unix socket's path: 104 (BSD, macOS) or 108 (Linux) bytes, with the final NUL."""

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,39}")


# ------------------------------------------------------------------------------------ the directory


def runtime_directory() -> str:
    """The directory of the sockets of this user's clusters; it may not exist yet."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base and os.path.isdir(base):
        path = os.path.join(base, "kcluster")
        longest_name = 40 + len("/.sock")
        if len(os.fsencode(path)) + longest_name <= MAX_PATH_BYTES:
            return path
    return f"/tmp/kcluster-{os.getuid()}"


def make_runtime_directory() -> str:
    """The directory of the sockets, created for its owner only if it does not exist."""
    path = runtime_directory()
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise CommandError(f"cannot create {path}: {error.strerror}") from error
    check_runtime_directory(path)
    return path


def check_runtime_directory(path: str) -> None:
    """Raise CommandError if another user could put a socket into the directory."""
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise CommandError(f"{path} is not a directory that you own; remove it")
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise CommandError(f"{path} is accessible to other users; restrict it: chmod 700 {path}")


@contextmanager
def directory_lock(directory: str) -> Iterator[None]:
    """A lock, held only while a name is claimed or the socket of a dead cluster is removed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(os.path.join(directory, ".lock"), flags, 0o600)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def check_name(name: str) -> str:
    """Check that a name can be a file name: letters, digits, `.`, `_` and `-`, at most 40.  Returns
    the name."""
    if NAME_PATTERN.fullmatch(name) is None:
        raise CommandError(
            f"{name!r} cannot name a cluster: use letters, digits, '.', '_' and '-', at most 40", 2
        )
    return name


def socket_path(directory: str, name: str) -> str:
    return os.path.join(directory, f"{name}.sock")


# --------------------------------------------------------------------------------- running clusters


def is_alive(path: str) -> bool:
    """Whether a process listens on the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect(path)
        except OSError as error:
            # The backlog is full, or the process is too busy to accept: it is alive.
            return error.errno in (errno.EAGAIN, errno.ETIMEDOUT) or isinstance(error, TimeoutError)
        return True


def running_clusters() -> list[str]:
    """The names of the running clusters, sorted.  Sockets of dead clusters are removed."""
    directory = runtime_directory()
    try:
        check_runtime_directory(directory)
    except FileNotFoundError:
        return []
    names = sorted(
        entry.removesuffix(".sock") for entry in os.listdir(directory) if entry.endswith(".sock")
    )
    alive = []
    for name in names:
        path = socket_path(directory, name)
        if is_alive(path):
            alive.append(name)
            continue
        with directory_lock(directory):
            if not is_alive(path) and os.path.lexists(path):
                os.unlink(path)
    return alive


def find_cluster(name: str | None) -> str:
    """The socket of the cluster called `name`, or of the only running cluster if `name` is None."""
    names = running_clusters()
    directory = runtime_directory()
    if name is not None:
        check_name(name)
        if name in names:
            return socket_path(directory, name)
        running = (
            f"running: {', '.join(names)}" if names else "none is running; start one: kcluster up"
        )
        raise CommandError(f"no cluster called {name} is running ({running})")
    if not names:
        raise CommandError("no cluster is running; start one: kcluster up")
    if len(names) > 1:
        raise CommandError(
            f"several clusters are running: {', '.join(names)}; choose one: --name NAME", 2
        )
    return socket_path(directory, names[0])
