"""`kcluster events`: what has happened in the running cluster, each event with its reason.

Owns: the verb: its options, its request, printing one event per line.  Never: words an event
(events/render.py).  Kafka: the controller's and the brokers' logs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import Conversation
from kcluster.cli.control.protocol import ControlError, ControlRequest, handles
from kcluster.cli.watching import when_nobody_reads

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession
    from kcluster.operations.status import NoteEntry

NOW: Final = "now"
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


class EventsRequest(ControlRequest, verb="events"):
    """`follow`: stream new events after the past ones.  `since`: `now`, a time back such as `10s`,
    or a sequence number; None for all.  `last`: only this many of the newest.  `kinds`: only
    these."""

    follow: bool = False
    since: str | None = None
    last: int | None = None
    kinds: list[str] | None = None


@section(Section.CLUSTER)
@click.command("events")
@click.option(
    "-f", "--follow", is_flag=True, help="Show new events until Ctrl-C or until the cluster stops."
)
@click.option("-n", "last", type=click.IntRange(0), metavar="N", help="Only the newest N.")
@click.option(
    "--since",
    metavar="WHEN",
    help="A time back (10s), an event's number, or now.  [default: all; now with --follow]",
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; repeatable.")
@control_options
def command(
    follow: bool,
    last: int | None,
    since: str | None,
    kinds: Sequence[str],
    name: str | None,
    as_json: bool,
) -> None:
    """Show what has happened in the cluster, and why.

    One event per line; with --follow those that happen from now on.
    """
    if since is None and follow and last is None:
        since = NOW
    request = EventsRequest(follow, since, last, list(kinds) or None)
    with Conversation(name) as conversation:
        for event in conversation.ask(request):
            show_event(event, as_json)
        if follow:
            sys.stdout.flush()
            when_nobody_reads(conversation.hang_up)
            try:
                for event in conversation.follow():
                    if not kinds or event["kind"] in kinds:
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
    """The events that were asked for, oldest first; each has its `sequence`."""
    if request.kinds:
        check_kinds(request.kinds)
    entries = session.cluster.events()
    if request.since is not None:
        entries = since(entries, request.since, session.now_ms())
    if request.kinds:
        entries = [entry for entry in entries if entry.kind in request.kinds]
    if request.last is not None:
        entries = entries[len(entries) - min(request.last, len(entries)) :]
    return [{"sequence": entry.sequence, **session.event_values(entry.note)} for entry in entries]


def since(entries: Sequence[NoteEntry], when: str, now_ms: int) -> list[NoteEntry]:
    """The events from `when` on: `now`, a time back from `now_ms`, or a sequence number."""
    if when == NOW:
        return []
    if when.isascii() and when.isdecimal():
        return [entry for entry in entries if entry.sequence >= int(when)]
    found = _TIME.fullmatch(when)
    if found is None:
        raise ControlError(f"--since {when}: neither a time (10s, 500ms), nor a number, nor now", 2)
    from_ms = now_ms - float(found[1]) * _UNIT_MS[found[2]]
    return [entry for entry in entries if entry.note.at_ms >= from_ms]


def check_kinds(kinds: Iterable[str]) -> None:
    """Raise ControlError, with the nearest name, for a kind that no event has."""
    from kcluster.config.files.problems import unknown
    from kcluster.events import KINDS

    for kind in kinds:
        if kind not in KINDS:
            raise ControlError(f"--kind {kind}: {unknown('kind of event', kind, KINDS)}", 2)
