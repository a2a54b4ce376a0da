"""`kcluster status`: brokers and partitions at this moment.

Owns: the verb: its options, its request, the columns.  Never: looks into a broker (the cluster's
status has it all).  Kafka: kafka-topics.sh --describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ControlRequest, handles
from kcluster.cli.table import TextTable, print_tables
from kcluster.protocol.names import GROUP_METADATA_TOPIC, has_internal_prefix

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class StatusRequest(ControlRequest, verb="status"):
    """Everything; the client chooses what it shows."""


@section(Section.CLUSTER)
@click.command("status")
@click.option(
    "--topic", help="Show only this topic; internal topics (__…) are shown only if named here."
)
@control_options
def command(topic: str | None, name: str | None, as_json: bool) -> None:
    """Show the brokers and partitions of the running cluster.

    Partitions are shown with leader, ISR, offsets and lag.
    """
    status = ask(StatusRequest(), name)
    if topic is not None:
        status["partitions"] = [p for p in status["partitions"] if p["topic"] == topic]
    if as_json:
        print_json(status)
        return
    print(f"cluster {status['name']}  {status['bootstrap']}")
    shown = [p for p in status["partitions"] if topic or not has_internal_prefix(p["topic"])]
    tables = [brokers_table(status)]
    if shown:
        tables.append(partitions_table(shown))
    print_tables(tables)
    hidden = len(status["partitions"]) - len(shown)
    if hidden:
        print(f"and {hidden} partitions of internal topics (--topic {GROUP_METADATA_TOPIC})")
    for side in status["sides"] if len(status["sides"]) > 1 else []:
        print(f"cut off from the others: {', '.join(map(str, side))}")


@handles(StatusRequest)
def handle(session: ControlSession, request: StatusRequest) -> dict[str, Any]:
    """The cluster's status as JSON values, with its name and addresses."""
    from kcluster.events.render import plain

    status = session.cluster.status()
    values = plain(status)
    for row, partition in zip(values["partitions"], status.partitions, strict=True):
        row["lag"] = {str(broker): lag for broker, lag in sorted(partition.lag.items())}
    return {"name": session.name, "bootstrap": session.cluster.bootstrap, **values}


def brokers_table(status: dict[str, Any]) -> TextTable:
    """One row per broker: state, how many partitions it leads and is in sync with, and its Kafka
    release, unless all brokers run the newest known one."""
    from kcluster.protocol.releases import latest

    rows = []
    newest = latest().name
    versions = any(broker["kafka_version"] != newest for broker in status["brokers"])
    for broker in status["brokers"]:
        leads = sum(p["leader"] == broker["id"] for p in status["partitions"])
        replicas = sum(broker["id"] in p["replicas"] for p in status["partitions"])
        in_sync = sum(broker["id"] in p["isr"] for p in status["partitions"])
        state = broker["state"]
        if broker["fenced"] and state != "down":
            state += ", fenced"
        rows.append(
            [
                str(broker["id"]),
                f"{broker['host']}:{broker['port']}",
                broker["rack"] or "-",
                state,
                str(leads),
                f"{in_sync}/{replicas}",
                *([broker["kafka_version"]] if versions else []),
            ]
        )
    headers = ("broker", "address", "rack", "state", "leads", "in sync")
    return TextTable((*headers, "kafka") if versions else headers, rows)


def partitions_table(partitions: list[dict[str, Any]]) -> TextTable:
    """One row per partition; a dash where there is no leader to ask."""
    rows = []
    for partition in partitions:
        behind = {broker: lag for broker, lag in partition["lag"].items() if lag}
        rows.append(
            [
                f"{partition['topic']}-{partition['partition']}",
                _or_dash(partition["leader"]),
                str(partition["leader_epoch"]),
                ",".join(map(str, partition["replicas"])),
                ",".join(map(str, partition["isr"])) or "-",
                _or_dash(partition["high_watermark"]),
                _or_dash(partition["log_end_offset"]),
                " ".join(f"{broker}:{lag}" for broker, lag in behind.items())
                or ("0" if partition["leader"] is not None else "-"),
            ]
        )
    headers = ("partition", "leader", "epoch", "replicas", "isr", "high watermark", "end", "lag")
    return TextTable(headers, rows)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)
