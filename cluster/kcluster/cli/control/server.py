"""The control socket, seen from the running cluster: claims a name, answers requests, streams
events.

Owns: the listening socket, one thread per conversation, the followers of events.  Never: knows what
a verb means (its Service does), runs in the cluster's hub: an answer may wait until the cluster has
settled, and the cluster must not wait for it.
Kafka: none.  Protocol: protocol.py.  Permissions: directory.py.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from queue import Empty, Full, Queue
from typing import Any, Final, NamedTuple, Protocol

from kcluster.cli.control.directory import (
    check_name,
    directory_lock,
    is_alive,
    make_runtime_directory,
    socket_path,
)
from kcluster.cli.control.protocol import ControlError, parse_request

MAX_CONVERSATIONS: Final = 64
MAX_REQUEST_BYTES: Final = 64 * 1024
REQUEST_TIMEOUT_S: Final = 10.0
FOLLOWER_BACKLOG: Final = 10_000
"""Events that may wait for a slow follower; one that falls further behind is disconnected."""


class ControlAnswer(NamedTuple):
    """The result of a request, for JSON.  `stays_open`: the conversation ends with the process,
    which shows the client when it has ended."""

    result: Any
    stays_open: bool = False


class Service(Protocol):
    """Answers the requests."""

    def answer(self, request: Mapping[str, Any], show: Callable[[str], None]) -> ControlAnswer:
        """The answer, or ControlError with the reason for a refusal.  `show(line)` passes on what
        happens before it is there."""

    def event_values(self, event: Any) -> Any:
        """An event of the feed as a value for JSON; called in the follower's thread."""


class EventFeed:
    """Passes every event to every follower.  `publish` never waits, and is cheap without
    followers."""

    def __init__(self) -> None:
        self._queues: tuple[Queue[Any], ...] = ()
        self._lock = threading.Lock()

    def publish(self, event: Any) -> None:
        """Called from the cluster's thread."""
        for queue in self._queues:
            try:
                queue.put_nowait(event)
            except Full:
                self.leave(queue)

    def join(self) -> Queue[Any]:
        queue: Queue[Any] = Queue(FOLLOWER_BACKLOG)
        with self._lock:
            self._queues = (*self._queues, queue)
        return queue

    def leave(self, queue: Queue[Any]) -> None:
        with self._lock:
            self._queues = tuple(other for other in self._queues if other is not queue)

    def has(self, queue: Queue[Any]) -> bool:
        return queue in self._queues


class ControlServer:
    """Listens under a cluster's name until closed.  `feed`: what a request with `follow`
    streams."""

    def __init__(self, name: str, service: Service, feed: EventFeed) -> None:
        self.name = check_name(name)
        self._service = service
        self._feed = feed
        self._directory = make_runtime_directory()
        self.path = socket_path(self._directory, name)
        self._conversations = threading.BoundedSemaphore(MAX_CONVERSATIONS)
        self._closing = False
        self._listener = self._claim()
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def _claim(self) -> socket.socket:
        with directory_lock(self._directory):
            if os.path.lexists(self.path):
                if is_alive(self.path):
                    raise ControlError(
                        f"a cluster called {self.name} is already running; "
                        "stop it (kcluster down), or give this one another name: --name NAME"
                    )
                os.unlink(self.path)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(self.path)
                os.chmod(self.path, 0o600)
                listener.listen(16)
            except OSError as error:
                listener.close()
                raise ControlError(f"cannot listen on {self.path}: {error.strerror}") from error
        return listener

    def close(self) -> None:
        """Accept no more conversations and release the name.  Open conversations end with the
        process."""
        self._closing = True
        with directory_lock(self._directory):
            if os.path.lexists(self.path):
                os.unlink(self.path)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if not is_own_user(connection) or not self._conversations.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(
                target=self._converse, args=(connection,), name="control", daemon=True
            ).start()

    def _converse(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(REQUEST_TIMEOUT_S)
                line = read_line(connection)
                if line is not None:
                    self._serve(connection, line)
        except OSError:
            pass  # the client has disconnected, so no answer is needed
        finally:
            self._conversations.release()

    def _serve(self, connection: socket.socket, line: bytes) -> None:
        queue = None
        try:
            request = parse_request(line)
            # Joined before the past events are read, so that none is missed in between.
            queue = self._feed.join() if request.get("follow") else None
            streams = bool(request.get("stream"))
            show = (lambda line: send_line(connection, {"line": line})) if streams else _ignore
            answer = self._service.answer(request, show)
        except ControlError as error:
            if queue is not None:
                self._feed.leave(queue)
            refusal = {"ok": False, "error": str(error), "exit_code": error.exit_code}
            send_line(connection, refusal)
            return
        try:
            send_line(connection, {"ok": True, "result": answer.result})
            if answer.stays_open:
                wait_for_hang_up(connection)
            if queue is not None:
                self._stream(connection, queue)
        finally:
            if queue is not None:
                self._feed.leave(queue)

    def _stream(self, connection: socket.socket, queue: Queue[Any]) -> None:
        while not self._closing:
            try:
                event = queue.get(timeout=0.5)
            except Empty:
                if has_hung_up(connection) or not self._feed.has(queue):
                    return
                continue
            send_line(connection, {"event": self._service.event_values(event)})


def _ignore(line: str) -> None:
    """The client reads the answer only."""


def is_own_user(connection: socket.socket) -> bool:
    """Whether the caller is this user.  Without SO_PEERCRED the directory's mode is the only
    check."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))
    return bool(uid == os.getuid())


def read_line(connection: socket.socket) -> bytes | None:
    """One line; None if the connection ends first or the line is too long."""
    data = bytearray()
    while not data.endswith(b"\n"):
        chunk = connection.recv(4096)
        if not chunk or len(data) + len(chunk) > MAX_REQUEST_BYTES:
            return None
        data += chunk
    return bytes(data)


def send_line(connection: socket.socket, value: Any) -> None:
    connection.sendall(json.dumps(value, ensure_ascii=False).encode() + b"\n")


def has_hung_up(connection: socket.socket) -> bool:
    """Whether the other side has closed the connection.  (It sends nothing after its request.)"""
    # poll, not select: with thousands of clients this descriptor may be above 1024.
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0)) and not connection.recv(1)


def wait_for_hang_up(connection: socket.socket) -> None:
    connection.settimeout(None)
    connection.recv(1)
