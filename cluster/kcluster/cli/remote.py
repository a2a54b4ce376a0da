"""The running cluster, for its verbs: the HTTP API over its unix socket.

Owns: sending one request, reading its answer, the text of a refusal.  Never: knows what a request
means; imports http.client or msgspec, which would add a third to the time that `kcluster kill`
takes to start, or sockets before there is a request to send: `kcluster --help` imports this.
Kafka: no counterpart; the docker command and its socket.

Requests are of HTTP/1.0, so that each answer ends with its connection.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kcluster import __version__
from kcluster.cli.errors import CommandError
from kcluster.json_types import JsonObject

if TYPE_CHECKING:
    import socket

ANSWER_TIMEOUT_S: Final = 120.0
"""The longest silence of the cluster.  A streamed answer has a line at least every ten seconds."""
JSON_TYPE: Final = "application/json"
LINES_TYPE: Final = "application/x-ndjson"
TEXT_TYPE: Final = "text/plain"
_STOPPED: Final = "the cluster stopped before it answered"
_OF_THE_COMMAND: Final = (400, 403, 404, 405, 415, 422)
"""The statuses of requests that are wrong in any state of the cluster."""

Query = Mapping[str, str | int | bool | None]


class RefusedByCluster(CommandError):
    """The error for a request that the cluster refuses.  `problem`: its problem document (RFC
    9457)."""

    def __init__(self, problem: JsonObject, options: Mapping[str, str], hint: str) -> None:
        exit_code = 2 if problem["status"] in _OF_THE_COMMAND else 1
        super().__init__(problem_text(problem, options) + hint, exit_code)
        self.problem = problem


class Remote:
    """The cluster called `name`, or the only running one.  Paths are below `/v1/clusters/NAME`."""

    def __init__(self, name: str | None = None) -> None:
        from kcluster.cli.directory import find_cluster

        self._socket_path = find_cluster(name)
        self.name = os.path.basename(self._socket_path).removesuffix(".sock")

    def get(self, path: str = "", query: Query | None = None, **more: Any) -> Any:
        """The answer to a GET; see `ask`."""
        return self.ask("GET", path, query, **more)

    def post(self, path: str, body: object, query: Query | None = None, **more: Any) -> Any:
        """The answer to a POST; see `ask`."""
        return self.ask("POST", path, query, body=body, **more)

    def ask(
        self,
        method: str,
        path: str = "",
        query: Query | None = None,
        *,
        body: object = None,
        options: Mapping[str, str] | None = None,
        timeout_s: float | None = ANSWER_TIMEOUT_S,
        until_exit: bool = False,
    ) -> Any:
        """The value of an answer; CommandError with the cluster's reason if it refuses.  `options`:
        the command line's words for the paths of the request.  `timeout_s`: None for no limit.
        `until_exit`: whether to return only when the process of the cluster has ended."""
        with self.asked(method, path, query, body, JSON_TYPE, options, timeout_s) as stream:
            text = stream.read()
            if until_exit:
                self._wait_for_exit(stream)
        return json.loads(text)

    @contextmanager
    def asked(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
        accept: str = LINES_TYPE,
        options: Mapping[str, str] | None = None,
        timeout_s: float | None = ANSWER_TIMEOUT_S,
    ) -> Iterator[Answer]:
        """The answer, with its body still unread; otherwise like `ask`."""
        connection = self._connect()
        with connection, self._failures(timeout_s):
            connection.settimeout(timeout_s)
            text = b"" if body is None else json.dumps(body).encode()
            with suppress(BrokenPipeError):  # refused before it was read: the answer has the reason
                connection.sendall(self._head(method, path, query, accept, len(text)) + text)
            with connection.makefile("rb") as file:
                answer = Answer(connection, file)
                if answer.status >= 400:
                    raise RefusedByCluster(
                        json.loads(answer.read()), options or {}, answer.version_hint
                    )
                yield answer

    def _head(self, method: str, path: str, query: Query | None, accept: str, length: int) -> bytes:
        given = {key: value for key, value in (query or {}).items() if value is not None}
        asked = "&".join(f"{key}={quoted(_text(value))}" for key, value in given.items())
        target = f"/v1/clusters/{quoted(self.name)}{'/' if path else ''}{path}"
        lines = (
            f"{method} {target}{'?' if asked else ''}{asked} HTTP/1.0",
            "Host: localhost",
            f"Accept: {accept}",
            f"User-Agent: kcluster/{__version__}",
            f"Content-Type: {JSON_TYPE}",
            f"Content-Length: {length}",
        )
        return "\r\n".join((*lines, "", "")).encode()

    def _connect(self) -> socket.socket:
        import socket
        import struct

        from kcluster.cli.directory import CONNECT_TIMEOUT_S

        path = self._socket_path
        if os.lstat(path).st_uid != os.getuid():
            raise CommandError(f"{path} does not belong to you")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The kernel's timeout: with Python's, connect is refused at once while many others wait.
        limit = struct.pack("ll", int(CONNECT_TIMEOUT_S), 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        try:
            connection.connect(path)
        except BlockingIOError as error:
            connection.close()
            raise CommandError("the cluster is too busy to answer") from error
        except OSError as error:
            connection.close()
            raise CommandError("the cluster has just stopped; start one: kcluster up") from error
        return connection

    def _wait_for_exit(self, answer: Answer) -> None:
        try:
            answer.wait_for_end()
        except TimeoutError:
            raise CommandError(f"cluster {self.name} has not stopped yet") from None

    @contextmanager
    def _failures(self, timeout_s: float | None) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise CommandError(f"the cluster did not answer within {timeout_s:g} s") from error
        except BrokenPipeError:
            raise  # an error of the output, to which the caller prints
        except ConnectionError as error:
            raise CommandError(f"the connection to the cluster broke: {error.strerror}") from error


class Answer:
    """An answer whose head was read."""

    def __init__(self, connection: socket.socket, file: BinaryIO) -> None:
        self._connection = connection
        self._file = file
        words = file.readline().split(None, 2)
        if not words:
            raise CommandError(_STOPPED)
        if not words[0].startswith(b"HTTP/") or len(words) < 2:
            raise CommandError(
                "the cluster runs another version of kcluster, which this one cannot talk to; stop"
                " it with the kcluster that started it"
            )
        self.status = int(words[1])
        self._fields: dict[str, str] = {}
        while (line := file.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            self._fields[name.strip().lower()] = value.strip()

    @property
    def version_hint(self) -> str:
        """A possible cause of a refusal: another version of the cluster.  Empty if the versions are
        equal."""
        theirs = self._fields.get("kcluster-version", __version__)
        if theirs == __version__:
            return ""
        return f" (the cluster runs kcluster {theirs}, this is {__version__})"

    def read(self) -> bytes:
        """The whole body; CommandError if it ends early."""
        length = int(self._fields["content-length"])
        body = self._file.read(length)
        if len(body) < length:
            raise CommandError(_STOPPED)
        return body

    def lines(self) -> Iterator[bytes]:
        """The lines of a stream that are not empty, until it ends, or `hang_up`."""
        for line in self._file:
            if line.strip() and line.endswith(b"\n"):
                yield line

    def hang_up(self) -> None:
        """End `lines`, from any thread."""
        with suppress(OSError):  # the cluster has closed it
            self._connection.shutdown(2)  # SHUT_RDWR

    def wait_for_end(self) -> None:
        """Wait until the connection ends."""
        with suppress(ConnectionError):
            self._file.read(1)


def problem_text(problem: JsonObject, options: Mapping[str, str]) -> str:
    """The problem of a request, in the words of the command line.  `options`: these words by path;
    an empty word omits the path, and `*` omits the paths of an action that a verb has composed."""
    problems = problem.get("problems")
    if not problems:
        return str(problem["detail"])
    return "; ".join(_labelled(each["path"], each["text"], options) for each in problems)


def _labelled(path: str, text: str, options: Mapping[str, str]) -> str:
    label = options.get(path, path)
    if "*" in options and label == path:
        inside = path.partition(".")[2]
        label = inside if "." in inside or "[" in inside else ""
    between = " " if label.startswith("-") else ": "
    return f"{label}{between}{text}" if label else text


def _text(value: str | int | bool | None) -> str:
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


_PLAIN: Final = frozenset(b"-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def quoted(text: str) -> str:
    """Text as part of a URL.  (urllib.parse takes as long to import as the rest of this file.)"""
    data = text.encode(errors="surrogateescape")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data)
