"""The web server: its own thread with its own hub, beside the threads of the clusters.

Owns: the listening socket, the threads in which handlers wait, the end of leases.  Never: runs in
a cluster's hub, patches the standard library, knows a route.
Kafka: no counterpart.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import gevent
from gevent.event import Event
from gevent.pywsgi import WSGIServer
from gevent.threadpool import ThreadPool

from kcluster.operations.errors import ClusterError
from kcluster.web.application import WebApplication
from kcluster.web.gate import Gate
from kcluster.web.held import HeldClusters
from kcluster.web.problems import EXPECTED

T = TypeVar("T")

LOOPBACK: Final = "127.0.0.1"
MAX_THREADS: Final = 256
"""Requests that wait at once: each occupies a thread."""
LEASES_CHECKED_S: Final = 0.2
STOP_LIMIT_S: Final = 1.0
"""Open answers get this long to end."""


class WebServer:
    """Serves the API and the page for its clusters, once `start` was called.

    `port` 0: a free one.  `token`: drawn if None.  `names`: further names in Host.
    """

    def __init__(
        self,
        *,
        can_create: bool,
        host: str = LOOPBACK,
        port: int = 0,
        token: str | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self.clusters = HeldClusters(can_create=can_create)
        self.host = host
        self.token = token or secrets.token_urlsafe(24)
        self.is_stopping = False
        is_public = host not in (LOOPBACK, "localhost", "::1")
        self._application = WebApplication(self, Gate(self.token, names, is_public))
        self._socket = bound_socket(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._hub: Any = None
        self._stop_wanted: Event | None = None
        self._pool: ThreadPool | None = None
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)
        self._started: Future[None] = Future()

    @property
    def url(self) -> str:
        """Where the server is found from this machine."""
        shown = LOOPBACK if self.host in ("0.0.0.0", "") else self.host
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    def page_url(self, id: str) -> str:
        """The address of a cluster's page, with the token."""
        return f"{self.url}/page/{id}?token={self.token}"

    def start(self) -> None:
        """Start to serve; returns when connections are accepted."""
        self._thread.start()
        self._started.result()

    def stop(self) -> None:
        """Stop to serve; the clusters run on.  From any thread."""
        self.is_stopping = True
        self.call_soon(self._wake_up)
        self._thread.join()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the server's hub, from any thread."""
        if self._hub is not None and self._hub.loop is not None:
            self._hub.loop.run_callback_threadsafe(function)

    def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function that waits, in a thread; called in a greenlet of the server's hub."""
        assert self._pool is not None
        result: T = self._pool.apply(function)
        return result

    def _wake_up(self) -> None:
        if self._stop_wanted is not None:
            self._stop_wanted.set()

    def _serve(self) -> None:
        try:
            self._run()
        finally:
            if not self._started.done():
                self._started.set_exception(ClusterError("the web server did not start"))

    def _run(self) -> None:
        hub = self._hub = gevent.get_hub()
        hub.NOT_ERROR = (*hub.NOT_ERROR, *EXPECTED)
        self._stop_wanted = Event()
        self._pool = ThreadPool(MAX_THREADS, hub=hub)
        server = WSGIServer(self._listening(), self._application, log=None)
        server.start()
        leases = gevent.spawn(self._end_leases)
        self._started.set_result(None)
        self._stop_wanted.wait()
        leases.kill()
        server.stop(timeout=STOP_LIMIT_S)
        self._socket.close()
        self._hub = None
        hub.destroy(destroy_loop=True)

    def _listening(self) -> Any:
        # Accepted sockets inherit it: an answer in two parts does not wait for the first one's ACK.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.listen(128)
        return gevent.socket.socket(fileno=self._socket.detach())

    def _end_leases(self) -> None:
        while True:
            gevent.sleep(LEASES_CHECKED_S)
            for held in self.clusters.remove_expired():
                self.in_thread(held.stop)


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that is bound and does not listen yet; ClusterError if the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ClusterError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return bound
