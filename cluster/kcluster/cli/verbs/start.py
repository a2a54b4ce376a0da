"""`kcluster start ID`: a broker that is down comes back, with its id, port and log.

Owns: the options.  Never: what they do (control/verbs.py).
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import ask


@click.command("start", help="Start broker ID again, and wait until the cluster has settled.")
@click.argument("broker", metavar="ID")
@click.option(
    "--kafka-version",
    metavar="X.Y",
    help="As this release of Kafka from now on: an upgrade, or a step back.",
)
@talks_to_cluster
def command(broker: str, kafka_version: str | None, name: str | None, as_json: bool) -> None:
    result = ask("start", name, broker=broker, kafka_version=kafka_version)
    if as_json:
        print_json(result)
    else:
        print("\n".join(result["lines"]))
