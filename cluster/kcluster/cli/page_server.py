"""The web server of a running `kcluster up`, for its page and its API.

Owns: that there is one, started when it is first asked for.  Never: answers a request (web/).
Kafka: no counterpart.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.cli.control.session import ControlSession

if TYPE_CHECKING:
    from kcluster.web.server import WebServer

_LOCK: Final = threading.Lock()


class PageServer(Struct):
    """The part of a cluster's handle in which its server is kept."""

    web: WebServer


def page_url(session: ControlSession, port: int = 0) -> str:
    """The address of the cluster's page, with the token; starts the server if there is none.
    ClusterError if the port is taken."""
    with _LOCK:
        server = session.cluster.parts.of(PageServer, lambda: PageServer(_start(session, port)))
        return server.web.page_url(session.name)


def close_page(session: ControlSession) -> None:
    """Stop the server, if there is one."""
    with _LOCK:
        server = session.cluster.parts.drop(PageServer)
    if server is not None:
        server.web.stop()


def _start(session: ControlSession, port: int) -> WebServer:
    from kcluster.web.held import HeldCluster
    from kcluster.web.server import WebServer

    server = WebServer(can_create=False, port=port)
    server.clusters.add(HeldCluster(session.name, session.cluster, stop=session.stop))
    server.start()
    return server
