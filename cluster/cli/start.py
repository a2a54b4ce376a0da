"""`kcluster start ID`: a broker that is down comes back, with its id, port and log.

Owns: the options.  Never: what they do (control_verbs.py).
"""

from __future__ import annotations

import click

from cluster.cli.control import ask
from cluster.cli.group import print_json, talks_to_cluster


@click.command("start", help="Start broker ID again, and wait until the cluster has settled.")
@click.argument("broker", metavar="ID")
@talks_to_cluster
def command(broker: str, name: str | None, as_json: bool) -> None:
    result = ask("start", name, broker=broker)
    if as_json:
        print_json(result)
    else:
        print("\n".join(result["lines"]))
