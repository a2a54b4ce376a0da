"""`kcluster status`: brokers and partitions as they are now.

Owns: which columns there are.  Never: looks into the cluster (it is asked).
Kafka: kafka-topics.sh --describe.
"""

from __future__ import annotations

from typing import Any

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import ask
from kcluster.cli.table import Table, print_tables
from kcluster.protocol.releases import latest


@click.command("status", help="Show the brokers; the partitions with leader, ISR, offsets, lag.")
@click.option("--topic", help="Only this topic; internal ones (__…) are shown only if named here.")
@talks_to_cluster
def command(topic: str | None, name: str | None, as_json: bool) -> None:
    status = ask("status", name)
    if topic is not None:
        status["partitions"] = [p for p in status["partitions"] if p["topic"] == topic]
    if as_json:
        print_json(status)
        return
    print(f"cluster {status['name']}  {status['bootstrap']}")
    shown = [p for p in status["partitions"] if topic or not p["topic"].startswith("__")]
    tables = [brokers_table(status)]
    if shown:
        tables.append(partitions_table(shown))
    print_tables(tables)
    hidden = len(status["partitions"]) - len(shown)
    if hidden:
        print(f"and {hidden} partitions of internal topics (--topic __consumer_offsets)")
    for side in status["sides"] if len(status["sides"]) > 1 else []:
        print(f"cut off from the others: {', '.join(map(str, side))}")


def brokers_table(status: dict[str, Any]) -> Table:
    """Who is up; how many partitions each leads and follows in sync; and as which Kafka, unless
    all are the newest that this program knows."""
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
    return Table((*headers, "kafka") if versions else headers, rows)


def partitions_table(partitions: list[dict[str, Any]]) -> Table:
    """A row a partition; a dash where there is no leader to ask."""
    rows = []
    for found in partitions:
        behind = {broker: lag for broker, lag in found["lag"].items() if lag}
        rows.append(
            [
                f"{found['topic']}-{found['partition']}",
                _or_dash(found["leader"]),
                str(found["leader_epoch"]),
                ",".join(map(str, found["replicas"])),
                ",".join(map(str, found["isr"])) or "-",
                _or_dash(found["high_watermark"]),
                _or_dash(found["log_end_offset"]),
                " ".join(f"{broker}:{lag}" for broker, lag in behind.items())
                or ("0" if found["leader"] is not None else "-"),
            ]
        )
    headers = ("partition", "leader", "epoch", "replicas", "isr", "high watermark", "end", "lag")
    return Table(headers, rows)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)
