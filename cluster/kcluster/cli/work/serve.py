"""The work of `kcluster serve`.

Owns: the ready line, the end.  Never: answers a request (web/).
Kafka: no counterpart.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from queue import SimpleQueue

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.cli.stop_signals import leaving_within, on_stop_signals
from kcluster.hosts import is_loopback
from kcluster.operations.errors import ClusterError
from kcluster.web.server import WebServer
from kcluster.web.tls import CertificateFiles


def serve_clusters(
    port: int,
    host: str,
    names: tuple[str, ...],
    token: str | None,
    runs: Path,
    tls: tuple[Path, Path | None] | None,
    allows_plain_http: bool,
    exit_with_stdin: bool,
    as_json: bool,
) -> None:
    """Serve until a signal; never returns."""
    wanted: SimpleQueue[str] = SimpleQueue()
    on_stop_signals(lambda: wanted.put("signal"))
    if exit_with_stdin:
        threading.Thread(target=_wait_for_end, args=(wanted,), name="stdin", daemon=True).start()
    try:
        server = WebServer(
            can_create=True,
            host=host,
            port=port,
            token=token,
            names=names,
            runs=runs.resolve(),
            tls=None if tls is None else CertificateFiles(*tls),
            allows_plain_http=allows_plain_http,
        )
    except ClusterError as error:
        fail(CommandError(str(error)), as_json)
    server.start()
    if not is_loopback(host):
        text = f"listening on {host}: whoever reaches this machine and has the token can use it"
        if tls is None:
            text += ", and whoever sees its traffic has the token (--tls-cert encrypts it)"
        print(f"kcluster: {text}", file=sys.stderr)
    if as_json:
        ready = {"ready": True, "url": server.url, "token": server.token, "pid": os.getpid()}
        print(json.dumps(ready), flush=True)
    else:
        print(f"ready: {server.url}  (token {server.token}; Ctrl-C stops)", flush=True)
    wanted.get()
    with leaving_within():
        server.stop()
        stopping = [threading.Thread(target=held.stop) for held in server.clusters.all()]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        sys.stdout.flush()
        os._exit(0)  # the memory of 200 clusters need not be collected


def _wait_for_end(wanted: SimpleQueue[str]) -> None:
    # Not by sys.stdin: the interpreter cannot end while a thread has its lock.
    while os.read(0, 4096):
        pass
    wanted.put("stdin")
