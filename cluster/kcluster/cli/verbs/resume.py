"""`kcluster resume ID`: a paused broker runs on, as after a long collection of garbage.

Owns: the options.  Never: what they do (control/verbs.py).
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import ask


@click.command("resume", help="Let broker ID run on after `kill --how pause`.")
@click.argument("broker", metavar="ID")
@talks_to_cluster
def command(broker: str, name: str | None, as_json: bool) -> None:
    result = ask("resume", name, broker=broker)
    if as_json:
        print_json(result)
    else:
        print("\n".join(result["lines"]))
