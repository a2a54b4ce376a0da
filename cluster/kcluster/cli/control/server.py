"""The control socket, seen from `kcluster up`: claims a name, answers verbs, streams events.

Owns: the listening socket, one thread per conversation, the followers of events.  Never: knows what
a verb means (it is given a table of functions), runs in the cluster's hub: verbs wait until the
cluster has settled, the cluster must not wait with them.
Kafka: none.  Protocol and rights: control.py.
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
from typing import Any, Final

from kcluster.cli.control.client import (
    ControlError,
    check_name,
    directory_lock,
    is_alive,
    make_runtime_directory,
    socket_path,
)

MAX_CONVERSATIONS: Final = 64
MAX_REQUEST_BYTES: Final = 64 * 1024
REQUEST_TIMEOUT_S: Final = 10.0
FOLLOWER_BACKLOG: Final = 10_000
"""Events that wait for one slow follower; with more it is let go."""

Verb = Callable[[Mapping[str, Any]], Any]
"""Arguments -> a result for JSON, or ControlError."""


class EventFeed:
    """Gives every event to every follower.  `publish` never waits and costs little without any."""

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
    """Listens under a cluster's name until closed.

    `verbs`: by name; `feed`, `render`: what `events` with `follow` streams, and how an event
    becomes JSON (done in the follower's thread, not in the cluster's).
    """

    def __init__(
        self,
        name: str,
        verbs: Mapping[str, Verb],
        feed: EventFeed,
        render: Callable[[Any], Any],
    ) -> None:
        self.name = check_name(name)
        self._verbs, self._feed, self._render = verbs, feed, render
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
                        f"a cluster called {self.name} runs already; "
                        "stop it (kcluster down) or call this one otherwise: --name NAME"
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
        """Take no more conversations and give the name back; those under way end with us."""
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
            pass  # the asker went away; nobody is left to tell
        finally:
            self._conversations.release()

    def _serve(self, connection: socket.socket, line: bytes) -> None:
        queue = None
        try:
            request = parse_request(line)
            verb = self._verbs.get(request["verb"])
            if verb is None:
                raise ControlError(f"{request['verb']!r} is no verb of this cluster", 2)
            # Joined before the events so far are read: none falls between the two.
            queue = self._feed.join() if request.get("follow") else None
            answer = {"ok": True, "result": verb(request)}
        except ControlError as error:
            answer = {"ok": False, "error": str(error), "exit_code": error.exit_code}
        try:
            send_line(connection, answer)
            if request_stays_open(answer):
                wait_for_hang_up(connection)
            if queue is not None and answer["ok"]:
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
            send_line(connection, {"event": self._render(event)})


def parse_request(line: bytes) -> dict[str, Any]:
    """A request's line as an object with a `verb`."""
    try:
        request = json.loads(line)
    except ValueError as error:
        raise ControlError("the request is not JSON", 2) from error
    if not isinstance(request, dict) or not isinstance(request.get("verb"), str):
        raise ControlError("a request is an object with a verb", 2)
    return request


def request_stays_open(answer: Mapping[str, Any]) -> bool:
    """`down` holds its conversation: the asker sees the process end when it is cut off."""
    result = answer.get("result")
    return isinstance(result, dict) and bool(result.get("stopping"))


def is_own_user(connection: socket.socket) -> bool:
    """Is it this user who calls?  Without SO_PEERCRED the directory's rights have to do."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))
    return bool(uid == os.getuid())


def read_line(connection: socket.socket) -> bytes | None:
    """One line within the limits; None when it does not come or is too long."""
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
    """Has the other side closed?  (It sends nothing after its request.)"""
    # poll, not select: with thousands of clients this file descriptor may be above 1024.
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0)) and not connection.recv(1)


def wait_for_hang_up(connection: socket.socket) -> None:
    connection.settimeout(None)
    connection.recv(1)
