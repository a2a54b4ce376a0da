"""`kcluster events`: what has happened in the running cluster, each thing with its reason.

Owns: printing them, one a line.  Never: their words (trace/render.py).
"""

from __future__ import annotations

import sys

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import Conversation


@click.command("events", help="Show the events so far, one a line; with --follow also new ones.")
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C or the cluster stops.")
@talks_to_cluster
def command(follow: bool, name: str | None, as_json: bool) -> None:
    with Conversation(name) as conversation:
        for event in conversation.ask("events", follow=follow):
            show(event, as_json)
        if follow:
            sys.stdout.flush()
            try:
                for event in conversation.follow():
                    show(event, as_json)
                    sys.stdout.flush()
            except KeyboardInterrupt:
                pass


def show(event: dict[str, object], as_json: bool) -> None:
    """One event; its text is the cluster's, so that all places show the same words."""
    if as_json:
        print_json({key: value for key, value in event.items() if key != "line"})
    else:
        print(event["line"])
