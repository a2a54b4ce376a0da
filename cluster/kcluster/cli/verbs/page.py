"""`kcluster page`: the live page of the running cluster.

Owns: the verb: its request.  Never: serves the page (cli/page_server.py, web/).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class PageRequest(ControlRequest, verb="page"):
    """`port`: of the server, if it is not running yet; 0: a free one."""

    port: int = 0


@section(Section.CLUSTER)
@click.command("page")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Serve the page on this port, unless it is served already.  [default: a free one]",
)
@control_options
def command(port: int, name: str | None, as_json: bool) -> None:
    """Print the address of the running cluster's live page, for a browser on this machine.

    The page shows replicas, clients and groups while they change; brokers are killed and links cut
    by a click. The address holds a token: whoever has it can break the cluster.
    """
    answer = ask(PageRequest(port), name)
    if as_json:
        print_json(answer)
    else:
        print(answer["page"])


@handles(PageRequest)
def handle(session: ControlSession, request: PageRequest) -> dict[str, str]:
    """Start the page's server if it does not run; the answer has the address."""
    from kcluster.cli.page_server import page_url

    return {"cluster": session.name, "page": page_url(session, request.port)}
