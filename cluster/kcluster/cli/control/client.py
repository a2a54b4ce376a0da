"""The control socket, seen from a command: one request, its answer, and the events that may follow.

Owns: the asking side of the protocol.  Never: knows what a verb means, starts a cluster; imports
sockets before there is a request to send: `kcluster --help` imports this for every verb.
Kafka: none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from kcluster.cli.control.protocol import ControlError, ControlRequest

ANSWER_TIMEOUT_S: Final = 120.0
"""A verb is answered when the cluster has settled.  With Kafka's time constants that can take half
a minute."""


class Conversation:
    """One connection to a cluster: a request, its answer, and the lines that may follow."""

    def __init__(self, name: str | None = None) -> None:
        import socket

        from kcluster.cli.control.directory import CONNECT_TIMEOUT_S, find_cluster

        path = find_cluster(name)
        if os.lstat(path).st_uid != os.getuid():
            raise ControlError(f"{path} does not belong to you")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(CONNECT_TIMEOUT_S)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise ControlError("the cluster has just stopped; start one: kcluster up") from error
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def ask(
        self,
        request: ControlRequest,
        on_line: Callable[[str], None] | None = None,
        timeout_s: float | None = ANSWER_TIMEOUT_S,
    ) -> Any:
        """The cluster's answer; ControlError with the cluster's reason if it refuses.  `on_line`:
        called with each line that the cluster shows before.  `timeout_s`: without any word from the
        cluster; None for ever."""
        self._socket.settimeout(timeout_s)
        with self._failures(timeout_s):
            self._socket.sendall(request.to_json(**({"stream": True} if on_line else {})))
        answer = self._read(timeout_s)
        while on_line is not None and "line" in answer:
            on_line(answer["line"])
            answer = self._read(timeout_s)
        if not answer["ok"]:
            raise ControlError(answer["error"], answer["exit_code"])
        return answer["result"]

    def _read(self, timeout_s: float | None) -> Any:
        """The next line."""
        with self._failures(timeout_s):
            line = self._lines.readline()
        if not line.endswith(b"\n"):
            raise ControlError("the cluster stopped before it answered")
        return json.loads(line)

    @contextmanager
    def _failures(self, timeout_s: float | None) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise ControlError(f"the cluster did not answer within {timeout_s:g} s") from error
        except OSError as error:
            raise ControlError(f"the connection to the cluster broke: {error.strerror}") from error

    def follow(self) -> Iterator[Any]:
        """The events after a request with `follow`, until the cluster stops, or `hang_up`."""
        self._socket.settimeout(None)
        for line in self._lines:
            if not line.endswith(b"\n"):
                return
            yield json.loads(line)["event"]

    def hang_up(self) -> None:
        """End `follow`, from any thread."""
        with suppress(OSError):  # the cluster has closed it
            self._socket.shutdown(2)  # SHUT_RDWR

    def wait_for_end(self) -> bool:
        """Wait until the cluster closes the connection; False if that takes longer than
        ANSWER_TIMEOUT_S."""
        try:
            return not self._lines.read(1)
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def ask(request: ControlRequest, name: str | None = None) -> Any:
    """Send a request to the cluster called `name`, or to the only running one."""
    with Conversation(name) as conversation:
        return conversation.ask(request)
