"""`kcluster events`: what has happened in the running cluster, each event with its reason.

Owns: the verb: its options, its request, printing one event per line.  Never: words an event
(events/render.py).  Kafka: the controller's and the brokers' logs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import Conversation
from kcluster.cli.control.protocol import ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class EventsRequest(ControlRequest, verb="events"):
    """`follow`: stream new events after the past ones."""

    follow: bool = False


@section(Section.CLUSTER)
@click.command("events")
@click.option(
    "-f", "--follow", is_flag=True, help="Continue until Ctrl-C or until the cluster stops."
)
@control_options
def command(follow: bool, name: str | None, as_json: bool) -> None:
    """Show what has happened in the cluster, and why.

    One event per line; with --follow also new events.
    """
    with Conversation(name) as conversation:
        for event in conversation.ask(EventsRequest(follow)):
            show_event(event, as_json)
        if follow:
            sys.stdout.flush()
            try:
                for event in conversation.follow():
                    show_event(event, as_json)
                    sys.stdout.flush()
            except KeyboardInterrupt:
                pass


def show_event(event: dict[str, Any], as_json: bool) -> None:
    """Print one event; the cluster has rendered its line, so that all places show the same text."""
    if as_json:
        print_json({key: value for key, value in event.items() if key != "line"})
    else:
        print(event["line"])


@handles(EventsRequest)
def handle(session: ControlSession, request: EventsRequest) -> list[dict[str, Any]]:
    """All events so far, oldest first."""
    return [session.event_values(entry.note) for entry in session.cluster.events()]
