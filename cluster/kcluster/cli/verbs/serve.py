"""`kcluster serve`: many clusters in one process, by HTTP.

Owns: the verb: its options, its ready line, its end.  Never: answers a request (web/).
Kafka: no counterpart.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from queue import SimpleQueue

import click

from kcluster.cli.click_tools import Section, fail, section
from kcluster.cli.errors import CommandError
from kcluster.operations.errors import ClusterError


@section(Section.CLUSTER)
@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=46000,
    show_default=True,
    help="Listen on this port; 0 means a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Listen on this address. 0.0.0.0, for containers, lets other machines in.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name by which requests may reach the server, besides localhost and addresses;"
    " repeatable.",
)
@click.option(
    "--token",
    envvar="KCLUSTER_TOKEN",
    help="The token that requests must carry.  [default: $KCLUSTER_TOKEN, else drawn]",
)
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Requests may write run directories below this one, and nowhere else.",
)
@click.option("--exit-with-stdin", is_flag=True, help="Stop when the standard input ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the ready line as JSON.")
def command(
    port: int,
    host: str,
    names: tuple[str, ...],
    token: str | None,
    runs: Path,
    exit_with_stdin: bool,
    as_json: bool,
) -> None:
    """Create and break clusters by HTTP, from any language.

    The first line has the address and the token. GET /openapi.json describes the requests;
    docs/reference/http-api.md lists them. All clusters stop with the process.
    """
    from kcluster.cli.stop_signals import leaving_within, on_stop_signals
    from kcluster.web.server import LOOPBACK, WebServer

    wanted: SimpleQueue[str] = SimpleQueue()
    on_stop_signals(lambda: wanted.put("signal"))
    if exit_with_stdin:
        threading.Thread(target=_wait_for_end, args=(wanted,), name="stdin", daemon=True).start()
    try:
        server = WebServer(
            can_create=True, host=host, port=port, token=token, names=names, runs=runs.resolve()
        )
    except ClusterError as error:
        fail(CommandError(str(error)), as_json)
    server.start()
    if host not in (LOOPBACK, "localhost"):
        text = f"listening on {host}: whoever reaches this machine and has the token can use it"
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
        os._exit(0)  # what 200 clusters leave in memory need not be collected


def _wait_for_end(wanted: SimpleQueue[str]) -> None:
    # Not by sys.stdin: the interpreter cannot end while a thread has its lock.
    while os.read(0, 4096):
        pass
    wanted.put("stdin")
