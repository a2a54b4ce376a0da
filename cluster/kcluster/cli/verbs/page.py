"""`kcluster page`: the live page of the running cluster.

Owns: the verb's options.  Never: serves the page (web/).
Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, control_options, print_answer, section
from kcluster.cli.remote import Remote


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
    answer = Remote(name).post("page", {"port": port})
    print_answer(answer, [answer["page"]], as_json)
