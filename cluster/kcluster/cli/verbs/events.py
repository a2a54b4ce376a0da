"""`kcluster events`: the past events of the running cluster, each with its reason.

Owns: the verb's options.  Never: words an event (events/render.py).
Kafka: the controller's and the brokers' logs.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from kcluster.cli.click_tools import Section, control_options, section
from kcluster.cli.remote import LINES_TYPE, TEXT_TYPE, Query, Remote
from kcluster.cli.watching import when_nobody_reads
from kcluster.config.files.numbers import whole_number


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

    One event per line. With --follow, new events are shown as they happen.
    """
    if since is None and follow and last is None:
        since = "now"
    number = None if since is None else whole_number(since)
    if number is not None:
        since = str(max(0, number - 1))  # this event, too
    query: Query = {"since": since, "last": last, "kind": ",".join(kinds), "follow": follow}
    accept, options = LINES_TYPE if as_json else TEXT_TYPE, {"since": "--since", "kind": "--kind"}
    with Remote(name).asked("GET", "events", query, accept=accept, options=options) as answer:
        if follow:
            when_nobody_reads(answer.hang_up)
        try:
            for line in answer.lines():
                print(line.decode().rstrip("\n"), flush=follow)
        except KeyboardInterrupt:
            if not follow:
                raise
