"""The web server: its own thread with its own hub, beside the threads of the clusters.

Owns: the listening socket, the places and threads of requests, the end of leases.  Never: runs in
a cluster's hub, patches the standard library, knows a route, reads a request (connection.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore
from gevent.threadpool import ThreadPool

from kcluster.hosts import is_loopback
from kcluster.operations.errors import ClusterError
from kcluster.web.access import AccessControl
from kcluster.web.application import WebApplication
from kcluster.web.connection import LimitedServer
from kcluster.web.held import HeldCluster, HeldClusters
from kcluster.web.limits import WebLimits
from kcluster.web.problems import EXPECTED, overloaded
from kcluster.web.tls import CertificateFiles

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

T = TypeVar("T")
Staying = Callable[[], AbstractContextManager[None]]
"""Makes the context that ends a wait when its client leaves."""

LOOPBACK: Final = "127.0.0.1"
LEASES_CHECKED_S: Final = 0.2
BACKLOG: Final = 128
STOP_LIMIT_S: Final = 0.2
"""The time in which open answers must end."""


class WebServer:
    """Serves the API and the page for its clusters, once `start` was called.

    `port` 0: a free one.  `token`: drawn if None.  `names`: further names in Host.  `runs`: the
    directory below which requests may write runs; None: they may not.  `local`: the unix socket to
    which the server listens instead, guarded by its permissions; after `serve_page` it also listens
    to a port.  `tls`: the files of its certificate; None: plain HTTP, which other machines may use
    only with `allows_plain_http`, because whoever sees their requests has the token.  ClusterError
    if that is not allowed, or if the port is taken.
    """

    def __init__(
        self,
        *,
        can_create: bool,
        host: str = LOOPBACK,
        port: int = 0,
        token: str | None = None,
        names: tuple[str, ...] = (),
        runs: Path | None = None,
        limits: WebLimits = WebLimits(),  # limits are frozen
        local: socket.socket | None = None,
        tls: CertificateFiles | None = None,
        allows_plain_http: bool = False,
    ) -> None:
        self.limits = limits
        self.clusters = HeldClusters(can_create=can_create, runs=runs)
        self.host = host
        self.token = token or secrets.token_urlsafe(24)
        self.is_stopping = False
        is_public = not is_loopback(host)
        if is_public and tls is None and not allows_plain_http:
            raise ClusterError(
                f"--host {host} lets other machines in, and plain HTTP shows them the token: add"
                " --tls-cert FILE, or --plain-http if only this machine reaches the port, as with"
                " docker run -p 127.0.0.1:46000:46000"
            )
        self._access = AccessControl(self.token, names, is_public)
        self._tls = None if tls is None else tls.context()
        self._local = local
        self._bound = None if local is not None else bound_socket(host, port)
        self.port: int = 0 if self._bound is None else self._bound.getsockname()[1]
        """The port that the server listens to; 0: none."""
        self._listeners: list[LimitedServer] = []
        self._page_lock = threading.Lock()
        self._hub: Any = None
        self._stop_wanted: Event | None = None
        self._threads: ThreadPool | None = None
        self._shares = Shares(limits.threads_of_one)
        self.requests = 0
        """The requests that wait for a cluster or are computed now."""
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)
        self._started: Future[None] = Future()

    @property
    def url(self) -> str:
        """The address of the server on this machine."""
        shown = LOOPBACK if self.host in ("0.0.0.0", "") else self.host
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    def page_url(self, id: str) -> str:
        """The address of a cluster's page, with the token; empty if none is served."""
        return f"{self.url}/page/{id}?token={self.token}" if self.port else ""

    def serve_page(self, port: int) -> None:
        """Listen to this port too, unless the server listens to one already; ClusterError if it is
        taken.  To be called from any thread."""
        with self._page_lock:
            if self.port:
                return
            bound = bound_socket(self.host, port)
            bound.listen(BACKLOG)
            self.port = bound.getsockname()[1]
            # In a greenlet, because pywsgi looks up the name of the address.
            self.call_soon(lambda: gevent.spawn(self._listen, bound, self._access))

    @property
    def connections(self) -> int:
        """Open connections."""
        return sum(listener.connections for listener in self._listeners)

    def adopt(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted by other means.  To be called from any thread."""
        self.call_soon(lambda: self._listeners[0].do_handle(_of_gevent(connection), ""))

    def start(self) -> None:
        """Start to serve; returns when connections are accepted."""
        self._thread.start()
        self._started.result()

    def serve_also(self, application: WSGIApplication, host: str) -> int:
        """Serve another application at a free port of this address, and nothing else there; returns
        the port.  To be called from any thread, after `start`; ClusterError if that is not
        possible."""
        bound = bound_socket(host, 0)
        bound.listen(BACKLOG)
        port: int = bound.getsockname()[1]
        self.call_soon(lambda: gevent.spawn(self._listen_with, bound, application))
        return port

    def stop(self) -> None:
        """Stop serving; the clusters run on.  To be called from any thread."""
        self.is_stopping = True
        self.call_soon(self._wake_up)
        self._thread.join()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the server's hub, from any thread."""
        if self._hub is not None and self._hub.loop is not None:
            self._hub.loop.run_callback_threadsafe(function)

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for a request that takes long; a refusal if there is none."""
        if self.requests >= self.limits.requests:
            raise overloaded(f"{self.limits.requests} requests are being answered")
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    def in_thread(self, function: Callable[[], T], share: str, staying: Staying = nullcontext) -> T:
        """Call a function that computes or blocks, in a thread; called in a greenlet of the
        server's hub.  `share`: the cluster whose threads the function may use, so that a busy
        cluster does not occupy the threads of others."""
        assert self._threads is not None
        with self._shares.of(share, staying):
            result: T = self._threads.apply(function)
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
        self._threads = ThreadPool(self.limits.threads, hub=hub)
        if self._local is not None:
            self._listen(self._local, None)
        if self._bound is not None:
            self._bound.listen(BACKLOG)
            self._listen(self._bound, self._access)
        leases = gevent.spawn(self._end_leases)
        self._started.set_result(None)
        self._stop_wanted.wait()
        leases.kill()
        for listener in self._listeners:
            listener.stop(timeout=STOP_LIMIT_S)
        self._hub = None
        hub.destroy(destroy_loop=True)

    def _listen(self, bound: socket.socket, access: AccessControl | None) -> None:
        """Accept connections from this socket, in the hub."""
        if bound.family != socket.AF_UNIX:
            # Accepted sockets inherit this option: an answer in two parts does not wait for the
            # first's ACK.
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._listen_with(bound, WebApplication(self, access, self.limits))

    def _listen_with(self, bound: socket.socket, application: WSGIApplication) -> None:
        tls = None if bound.family == socket.AF_UNIX else self._tls
        listener = LimitedServer(_of_gevent(bound), application, self.limits, tls)
        listener.start()
        self._listeners.append(listener)

    def _end_leases(self) -> None:
        while True:
            gevent.sleep(LEASES_CHECKED_S)
            for held in self.clusters.remove_expired():
                # In a thread of its own, so that neither requests nor a cluster that does not stop
                # keep the leases of others from ending.
                stop = partial(self._stop_expired, held)
                threading.Thread(target=stop, name="stops a cluster", daemon=True).start()

    def _stop_expired(self, held: HeldCluster) -> None:
        try:
            held.stop()
        except ClusterError as error:
            self._listeners[0].complaints.add(
                f"{held.id}, whose lease has expired, runs on: {error}"
            )


class Shares:
    """The threads that are occupied by requests of each share, such as a cluster: `of_each` at
    most.  Used in the server's hub."""

    def __init__(self, of_each: int) -> None:
        self._of_each = of_each
        self._by_name: dict[str, BoundedSemaphore] = {}

    @contextmanager
    def of(self, name: str, staying: Staying) -> Iterator[None]:
        """Wait for a thread of this share, while the client stays."""
        share = self._by_name.setdefault(name, BoundedSemaphore(self._of_each))
        if not share.acquire(blocking=False):
            with staying():
                share.acquire()
        try:
            yield
        finally:
            share.release()
            if share.counter == self._of_each and self._by_name.get(name) is share:
                del self._by_name[name]


def _of_gevent(plain: socket.socket) -> Any:
    """A socket for greenlets with the same file descriptor; the plain one is closed."""
    return gevent.socket.socket(fileno=plain.detach())


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
