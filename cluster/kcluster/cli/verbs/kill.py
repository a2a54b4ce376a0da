"""`kcluster kill ID`: a broker goes, in one of the ways in which brokers go.

Owns: the options.  Never: what they do (control/verbs.py, in the cluster's process).
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import ask


@click.command("kill", help="Take broker ID down, and wait until the cluster has settled.")
@click.argument("broker", metavar="ID")
@click.option(
    "--how",
    type=click.Choice(["kill", "clean", "power", "wipe", "pause"]),
    default="kill",
    show_default=True,
    help="kill: SIGKILL, the log stays. clean: controlled shutdown. power: unflushed records are "
    "lost. wipe: it returns with an empty disk. pause: nothing runs, sockets stay open.",
)
@talks_to_cluster
def command(broker: str, how: str, name: str | None, as_json: bool) -> None:
    result = ask("kill", name, broker=broker, how=how)
    if as_json:
        print_json(result)
    else:
        print("\n".join(result["lines"]))
