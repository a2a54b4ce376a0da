"""The control socket, seen from a verb: where it is, whose it is, how to ask over it.

Owns: the runtime directory and its rights, the names of running clusters, the asking side of the
protocol.  Never: knows a verb's meaning (control/verbs.py does), starts anything.
Kafka: none; a cluster of processes is found through their pid files, this one through its socket.

Protocol: newline-delimited JSON over a unix stream socket, one request a connection.
    -> {"verb": "kill", "broker": "1", "how": "kill"}
    <- {"ok": true, "result": …}    or    {"ok": false, "error": "…", "exit_code": 1}
`events` with follow goes on with {"event": {…}} lines until either side closes.

Rights: the directory is `$XDG_RUNTIME_DIR/kcluster`, or `/tmp/kcluster-UID` without one, and must
be a real directory of this user with mode 0700, or nothing is made or asked there; the socket must
be this user's too; the cluster asks the kernel who calls (SO_PEERCRED) and serves its own user.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from typing import Any, Final

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 120.0
"""A verb answers when the cluster has settled; with Kafka's time constants that can be half a
minute."""

MAX_PATH_BYTES: Final = 100
"""Unix socket paths end at 104 (BSD, macOS) or 108 (Linux) bytes, the NUL included."""

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,39}")


class ControlError(Exception):
    """What went wrong, in words for the person who typed the command.

    `exit_code`: 1 the cluster cannot do it as it stands, or there is none; 2 the command is wrong.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


# ------------------------------------------------------------------------------ where and whose


def runtime_directory() -> str:
    """Where this user's control sockets are; not necessarily there yet."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base and os.path.isdir(base):
        path = os.path.join(base, "kcluster")
        longest_name = 40 + len("/.sock")
        if len(os.fsencode(path)) + longest_name <= MAX_PATH_BYTES:
            return path
    return f"/tmp/kcluster-{os.getuid()}"


def make_runtime_directory() -> str:
    """The same, made if need be with rights for its owner only."""
    path = runtime_directory()
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise ControlError(f"cannot make {path}: {error.strerror}") from error
    check_runtime_directory(path)
    return path


def check_runtime_directory(path: str) -> None:
    """Refuse a directory that somebody else could put sockets into."""
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ControlError(f"{path} is not a directory of yours; remove it or have it removed")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise ControlError(f"{path} is open to other users; close it with: chmod 700 {path}")


@contextmanager
def directory_lock(directory: str) -> Iterator[None]:
    """Held for the moment of claiming a name or sweeping away a dead one, never for longer."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(os.path.join(directory, ".lock"), flags, 0o600)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def check_name(name: str) -> str:
    """A cluster's name becomes a file name: letters, digits, `.`, `_` and `-`, 40 at most."""
    if NAME_PATTERN.fullmatch(name) is None:
        raise ControlError(
            f"{name!r} cannot name a cluster: letters, digits, '.', '_' and '-', 40 at most", 2
        )
    return name


def socket_path(directory: str, name: str) -> str:
    return os.path.join(directory, f"{name}.sock")


# ------------------------------------------------------------------------------------- finding


def is_alive(path: str) -> bool:
    """Does a process listen there?"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect(path)
        except OSError as error:
            # A full backlog, or a process too busy to accept: alive, if not well.
            return error.errno in (errno.EAGAIN, errno.ETIMEDOUT) or isinstance(error, TimeoutError)
        return True


def running_clusters() -> list[str]:
    """Names of the clusters that run, sorted; sockets of dead ones are removed."""
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
    """The path of the socket of the cluster called `name`, or of the only one that runs."""
    names = running_clusters()
    directory = runtime_directory()
    if name is not None:
        check_name(name)
        if name in names:
            return socket_path(directory, name)
        running = f"running: {', '.join(names)}" if names else "none runs; start one: kcluster up"
        raise ControlError(f"no cluster called {name} runs here ({running})")
    if not names:
        raise ControlError("no cluster runs here; start one: kcluster up")
    if len(names) > 1:
        raise ControlError(f"several clusters run: {', '.join(names)}; say which: --name NAME", 2)
    return socket_path(directory, names[0])


# -------------------------------------------------------------------------------------- asking


class Conversation:
    """One connection to a cluster: a request, its answer, and lines that may follow."""

    def __init__(self, name: str | None = None) -> None:
        path = find_cluster(name)
        if os.lstat(path).st_uid != os.getuid():
            raise ControlError(f"{path} is not yours")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(CONNECT_TIMEOUT_S)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise ControlError("the cluster has just gone; start one: kcluster up") from error
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, verb: str, **arguments: Any) -> Any:
        """The verb's result; ControlError with the cluster's words when it refuses."""
        self._socket.settimeout(ANSWER_TIMEOUT_S)
        try:
            self._socket.sendall(json.dumps({"verb": verb, **arguments}).encode() + b"\n")
            line = self._lines.readline()
        except TimeoutError as error:
            raise ControlError(
                f"the cluster has not answered for {ANSWER_TIMEOUT_S:.0f} s"
            ) from error
        except OSError as error:
            raise ControlError(f"the cluster went away: {error.strerror}") from error
        if not line.endswith(b"\n"):
            raise ControlError("the cluster stopped before it answered")
        answer = json.loads(line)
        if not answer["ok"]:
            raise ControlError(answer["error"], answer["exit_code"])
        return answer["result"]

    def follow(self) -> Iterator[Any]:
        """Events after `ask("events", follow=True)`, until the cluster stops."""
        self._socket.settimeout(None)
        for line in self._lines:
            yield json.loads(line)["event"]

    def wait_for_end(self) -> bool:
        """True when the other side is gone; False when it is still there after ANSWER_TIMEOUT_S."""
        try:
            return not self._lines.read(1)
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def ask(verb: str, name: str | None = None, **arguments: Any) -> Any:
    """Ask the running cluster (or the one called `name`) and return its result."""
    with Conversation(name) as conversation:
        return conversation.ask(verb, **arguments)
