"""`kcluster status`: brokers, partitions and the faults in force, now or at a moment of the past.

Owns: the verb's options.  Never: looks into a broker (the cluster's status has it
all), makes a moment (cli/moment_status.py), lays it out (cli/status_tables.py).
Kafka: kafka-topics.sh --describe.
"""

from __future__ import annotations

import sys

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
        found = (
            _of_past(Remote(name), at, topic)
            if directory is None
            else _of_run(directory, at, topic)
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
    """Print it as tables, with the faults in force below."""
    print(f"cluster {status['name']}  {status['bootstrap']}".rstrip())
    if "when" in status:
        print(status["when"])
    print_tables(tables_of(status, topic))
    for line in notices(status, topic):
        print(line)


def _of_past(remote: Remote, at: str, topic: str | None) -> JsonObject:
    """The status at a moment of the past; `moment` has all that is known of it, `when` is a line
    about it."""
    import msgspec

    from kcluster.cli.moment_status import moment_ms, status_values, when_text
    from kcluster.runs.moment import ClusterMoment

    now, began_ms = remote.get(), remote.get("clock")["began_ms"]
    at_ms = moment_ms(at, began_ms, now["at_ms"])
    values = remote.get("at", {"ms": at_ms})
    moment = msgspec.convert(values, ClusterMoment)
    addresses = {
        broker["id"]: (broker["host"], broker["port"], broker["kafka_version"])
        for broker in now["brokers"]
    }
    status = status_values(moment, addresses)
    _only(status, topic)
    return {
        "name": remote.name,
        "bootstrap": now["bootstrap"],
        "when": when_text(moment, began_ms, now["at_ms"]),
        "moment": values,
        **status,
    }


def _of_run(directory: str, at: str, topic: str | None) -> JsonObject:
    """The status at a moment of a run directory, with the same keys."""
    from kcluster.cli.moment_status import (
        addresses_of,
        moment_ms,
        moment_values,
        status_values,
        when_text,
    )
    from kcluster.runs.directory import RunError, read_run
    from kcluster.runs.moment import moment_of

    try:
        record, problems = read_run(directory)
    except RunError as error:
        raise CommandError(str(error), 2) from None
    for problem in problems:
        print(f"kcluster: {problem}; the rest is used", file=sys.stderr)
    began_ms, ended_ms = record.info.began_ms, record.info.ended_ms
    moment = moment_of(record, moment_ms(at, began_ms, ended_ms))
    values = status_values(moment, addresses_of(record))
    _only(values, topic)
    return {
        "name": record.info.name,
        "bootstrap": "",
        "when": when_text(moment, began_ms, ended_ms),
        "moment": moment_values(moment),
        **values,
    }


def _only(values: JsonObject, topic: str | None) -> None:
    """Keep the partitions of this topic, if there is one; CommandError if it did not exist."""
    if topic is None:
        return
    values["partitions"] = [one for one in values["partitions"] if one["topic"] == topic]
    if not values["partitions"]:
        raise CommandError(f"--topic {topic}: there was no such topic", 2)
