"""`kcluster status`: brokers, partitions and the faults in force at this moment.

Owns: the verb: its options, its request.  Never: looks into a broker (the cluster's status has it
all), lays it out (cli/status_tables.py).  Kafka: kafka-topics.sh --describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.completion import complete_topics
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ControlRequest, handles
from kcluster.cli.status_tables import notices, tables_of
from kcluster.cli.table import print_tables

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class StatusRequest(ControlRequest, verb="status"):
    """`topic`: only its partitions; None: all, and the client chooses what it shows."""

    topic: str | None = None


@section(Section.CLUSTER)
@click.command("status")
@click.option(
    "--topic",
    shell_complete=complete_topics,
    help="Show only this topic; internal topics (__…) are shown only if named here.",
)
@click.option("--watch", "watched", is_flag=True, help="Show it again whenever it changes.")
@control_options
def command(topic: str | None, watched: bool, name: str | None, as_json: bool) -> None:
    """Show the brokers and partitions of the running cluster.

    Partitions are shown with leader, ISR, offsets and lag; below them cut and slow links, rules and
    paused brokers.
    """
    status: dict[str, Any] = {}

    def read() -> object:
        status.update(ask(StatusRequest(topic), name))
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


def print_status(status: dict[str, Any], topic: str | None) -> None:
    """Print it as tables, with the faults in force below."""
    print(f"cluster {status['name']}  {status['bootstrap']}")
    print_tables(tables_of(status, topic))
    for line in notices(status, topic):
        print(line)


@handles(StatusRequest)
def handle(session: ControlSession, request: StatusRequest) -> dict[str, Any]:
    """The cluster's status as JSON values, with its name, its addresses and the faults in force."""
    from kcluster.cli.control.arguments import check_topic
    from kcluster.events.render import plain
    from kcluster.events.words import effect_text

    cluster = session.cluster
    status = cluster.status()
    values = plain(status)
    for row, partition in zip(values["partitions"], status.partitions, strict=True):
        row["lag"] = {str(broker): lag for broker, lag in sorted(partition.lag.items())}
    if request.topic is not None:
        check_topic(status, request.topic)
        values["partitions"] = [p for p in values["partitions"] if p["topic"] == request.topic]
    values["clients"] = {str(number): name for number, name in status.clients.items()}
    values["rules"] = [
        {
            "name": rule.name,
            "text": effect_text(rule.effect),
            "calls": rule.calls,
            "hits": rule.hits,
        }
        for rule in cluster.rules()
    ]
    return {"name": session.name, "bootstrap": cluster.bootstrap, **values}
