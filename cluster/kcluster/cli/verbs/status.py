"""`kcluster status`: brokers, partitions and the faults in force, now or at a moment of the past.

Owns: the verb's options.  Never: looks into a broker (the cluster's status has it
all), finds a moment (work/past_status.py), lays it out (cli/status_tables.py).
Kafka: kafka-topics.sh --describe.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.completion import complete_topics
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Remote
from kcluster.cli.status_tables import notices, tables_of
from kcluster.cli.table import print_tables
from kcluster.json_types import JsonObject


@section(Section.CLUSTER)
@click.command("status")
@click.option(
    "--topic",
    shell_complete=complete_topics,
    help="Show only this topic; internal topics (__…) are shown only if named here.",
)
@click.option("--watch", "watched", is_flag=True, help="Show it again whenever it changes.")
@click.option(
    "--at",
    metavar="WHEN",
    help="Show a moment of the past: 12s after the beginning, or -5s before now (with --run before"
    " the end).",
)
@click.option(
    "--run", "directory", metavar="DIR", help="With --at: a moment of this run directory."
)
@control_options
def command(
    topic: str | None,
    watched: bool,
    at: str | None,
    directory: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Show the brokers and partitions of the running cluster.

    Partitions are shown with leader, ISR, offsets and lag; below them cut and slow links, rules and
    paused brokers.  With --at, all of it as it was at a moment of the past; --json then also has
    the leader epochs in each log, clients, groups and transactions.
    """
    if at is not None:
        if watched:
            raise CommandError("--watch shows what changes, --at what was: use one of them", 2)
        from kcluster.cli.work.past_status import past_of_cluster, past_of_run

        found = (
            past_of_cluster(Remote(name), at, topic)
            if directory is None
            else past_of_run(directory, at, topic)
        )
        if as_json:
            print_json(found["moment"])
        else:
            print_status(found, topic)
        return
    if directory is not None:
        raise CommandError("--run needs --at: which moment of the run?", 2)
    status: JsonObject = {}

    def read() -> object:
        status.update(Remote(name).get("", {"topic": topic}, options={"topic": "--topic"}))
        return {key: value for key, value in status.items() if key != "at_ms"}

    def show() -> None:
        if as_json:
            print_json(status)
        else:
            print_status(status, topic)

    if watched:
        from kcluster.cli.watching import watch

        watch(read, show)
    else:
        read()
        show()


def print_status(status: JsonObject, topic: str | None) -> None:
    """Print the status as tables, with the faults in force below them."""
    print(f"cluster {status['name']}  {status['bootstrap']}".rstrip())
    if "when" in status:
        print(status["when"])
    print_tables(tables_of(status, topic))
    for line in notices(status, topic):
        print(line)
