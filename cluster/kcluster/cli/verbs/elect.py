"""`kcluster elect TOPIC-PARTITION`: the preferred leader, or with `--to` any in-sync replica.

Owns: the options.  Never: what they do (control/verbs.py).  Kafka: kafka-leader-election.sh.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import ask


@click.command("elect", help="Give orders-0 and the like its preferred leader, or the one of --to.")
@click.argument("partition", metavar="TOPIC-PARTITION")
@click.option("--to", metavar="ID", help="The broker to lead; it must be in the ISR.")
@talks_to_cluster
def command(partition: str, to: str | None, name: str | None, as_json: bool) -> None:
    result = ask("elect", name, partition=partition, to=to)
    if as_json:
        print_json(result)
    else:
        print("\n".join(result["lines"]))
