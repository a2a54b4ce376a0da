"""The door of a running cluster: the HTTP API on a unix socket under the cluster's name.

Owns: the name, the socket, loading the web server with the first request.  Never: answers a
request (web/), runs in the cluster's hub.
Kafka: no counterpart.  Permissions: directory.py.

A start does not wait for the web server: its import takes as long as three brokers.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kcluster.cli.directory import (
    check_name,
    directory_lock,
    is_alive,
    make_runtime_directory,
    socket_path,
)
from kcluster.cli.errors import CommandError

if TYPE_CHECKING:
    from kcluster.web.held import HeldCluster
    from kcluster.web.server import WebServer

BACKLOG: Final = 1024
"""The connections that may wait until the web server is loaded; the kernel refuses further ones."""
PEEK_LIMIT_S: Final = 1.0
"""The silence after which a connection counts as a request, and not as a probe for a live
cluster."""


def require_free(name: str) -> None:
    """CommandError if a cluster of this name is running."""
    path = socket_path(make_runtime_directory(), check_name(name))
    if os.path.lexists(path) and is_alive(path):
        raise CommandError(
            f"a cluster called {name} is already running; "
            "stop it (kcluster down), or give this one another name: --name NAME"
        )


class ClaimedName:
    """A cluster's name, claimed by its socket.  Connections wait until there is a Door."""

    def __init__(self, name: str) -> None:
        self.name = check_name(name)
        self._directory = make_runtime_directory()
        self.path = socket_path(self._directory, name)
        with directory_lock(self._directory):
            require_free(name)
            if os.path.lexists(self.path):
                os.unlink(self.path)
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self.listener.bind(self.path)
                os.chmod(self.path, 0o600)
                self.listener.listen(BACKLOG)
            except OSError as error:
                self.listener.close()
                raise CommandError(f"cannot listen on {self.path}: {error.strerror}") from error

    def release(self) -> None:
        """Remove the socket's file: no verb finds the cluster any more."""
        with directory_lock(self._directory):
            if os.path.lexists(self.path):
                os.unlink(self.path)


class Door:
    """Serves the API for one cluster, whose name is claimed.  `hold`: makes the cluster that the
    server holds; called once the server is loaded."""

    def __init__(self, claimed: ClaimedName, hold: Callable[[], HeldCluster]) -> None:
        self._claimed = claimed
        self._hold = hold
        self._server: WebServer | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._wait_for_request, name="door", daemon=True).start()

    def page_url(self) -> str:
        """The address of the cluster's page, with the token."""
        server = self._loaded()
        server.serve_page(0)
        return server.page_url(self._claimed.name)

    def close(self) -> None:
        """Stop answering."""
        with self._lock:
            self._claimed.listener.close()
            server = self._server
        if server is not None:
            server.stop()

    def _wait_for_request(self) -> None:
        """Accept connections until one has a request, then leave the rest to the server."""
        listener = self._claimed.listener
        while self._server is None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # closed, or taken over by the server
            connection.settimeout(PEEK_LIMIT_S)
            try:
                is_over = not connection.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                is_over = False
            except OSError:
                is_over = True
            if is_over:
                connection.close()
            else:
                connection.settimeout(None)
                self._loaded().adopt(connection)

    def _loaded(self) -> WebServer:
        with self._lock:
            if self._server is None:
                from kcluster.web.server import WebServer

                server = WebServer(can_create=False, local=self._claimed.listener.dup())
                server.clusters.add(self._hold())
                server.start()
                self._server = server
            return self._server
