"""The HTTP API of `kcluster serve`, over TCP: any request gets an answer below 500, or is closed.

Owns: the step, the server that takes it, what must hold after it: cheap requests are answered, and
nothing was printed but one line per refused request.
Never: makes up a request (requests.py does).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.fuzz.episodes import CPU, Failure, Watch, of_traceback, shorter
from tests.fuzz.requests import TOKEN, made_up_http
from tests.web.api_client import FAST, Api, serving

REQUESTS: Final = 40
ANSWER_S: Final = 1.5
"""How long an answer is waited for; some are to take longer."""
CHEAP_S: Final = 20.0
"""On a busy machine; without load it is a millisecond."""
CPU_S: Final = 5.0
"""What one request may cost this process: it may start a cluster, or play one."""
DEEP: Final = "a/b/c/d/e"
"""The working directory, so that what is written to `../..` stays below a directory of ours."""


class Asked(Struct, tag="asked"):
    """A request, as Latin-1."""

    text: str

    def smaller(self) -> Iterator[Asked]:
        """With a shorter body or head."""
        for size in shorter(len(self.text)):
            yield replace(self, text=self.text[:size])


class Http:
    """The target."""

    name = "http"
    step = Asked

    def draw(self, rng: Random) -> list[Asked]:
        """Requests to all routes."""
        return [Asked(made_up_http(rng)) for _ in range(REQUESTS)]

    def play(self, steps: Sequence[Asked]) -> Failure | None:
        """Ask a server of its own, which has one cluster."""
        printed = io.StringIO()
        watch = Watch()
        with watch, working_directory(), contextlib.redirect_stderr(printed):
            return self._ask(steps, printed)
        return watch.failure

    def _ask(self, steps: Sequence[Asked], printed: io.StringIO) -> Failure | None:
        with serving(token=TOKEN) as (server, api):
            api.ok("POST", "/v1/clusters", {"topology": FAST, "seed": 1})
            for step in steps:
                began_s = time.process_time()
                status = answer_to(server.port, step.text)
                spent_s = time.process_time() - began_s
                if "Traceback" in printed.getvalue():
                    return of_traceback(printed.getvalue())
                if status >= 500 and status != 503:
                    return Failure(f"status {status}", step.text[:500])
                if spent_s > CPU_S:
                    line = step.text.partition(" HTTP")[0][:80]
                    return Failure(CPU, f"{spent_s:.1f} s for {line}")
            return still_answers(api)


@contextlib.contextmanager
def working_directory() -> Iterator[None]:
    """A directory of its own, so deep that `../..` is below one of ours too."""
    with tempfile.TemporaryDirectory(prefix="kc") as parent:
        deep = os.path.join(parent, DEEP)
        os.makedirs(deep)
        with contextlib.chdir(deep):
            yield


def answer_to(port: int, text: str, limit_s: float = ANSWER_S) -> int:
    """The status of the answer; 0 if the connection is closed without one, or takes too long."""
    with socket.create_connection(("127.0.0.1", port), timeout=CHEAP_S) as sock:
        return answer_on(sock, text, limit_s)


def answer_on(sock: socket.socket, text: str, limit_s: float = ANSWER_S) -> int:
    """The same on a connection of any kind."""
    try:
        sock.sendall(text.encode("latin-1"))
        sock.shutdown(socket.SHUT_WR)
        head = b""
        end_s = time.monotonic() + limit_s
        while b"\r\n" not in head:
            sock.settimeout(max(0.01, end_s - time.monotonic()))
            chunk = sock.recv(65_536)
            if not chunk:
                break
            head += chunk
    except OSError:  # also the time limit
        return 0
    found = re.match(rb"HTTP/1\.[01] (\d{3}) ", head)
    return int(found[1]) if found else 0


def still_answers(api: Api) -> Failure | None:
    """Whether cheap requests are answered in time."""
    try:
        answer = Api(api.port, api.token).ask("GET", "/v1/clusters")
    except OSError as error:
        return Failure("no answer", f"GET /v1/clusters: {error}")
    if answer.status != 200:
        return Failure("no answer", f"GET /v1/clusters: {answer.status}")
    return None
