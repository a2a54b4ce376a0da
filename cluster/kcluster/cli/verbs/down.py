"""`kcluster down`: the running cluster stops, cleanly; returns when it has.

Owns: waiting for the end.  Never: stops anything itself.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import ControlError, Conversation


@click.command("down", help="Stop the running cluster and wait until it is gone.")
@talks_to_cluster
def command(name: str | None, as_json: bool) -> None:
    with Conversation(name) as conversation:
        result = conversation.ask("down")
        if not conversation.wait_for_end():
            raise ControlError(f"cluster {result['name']} has not stopped yet")
    if as_json:
        print_json(result)
    else:
        print(f"cluster {result['name']} has stopped")
