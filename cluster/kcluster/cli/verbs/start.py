"""`kcluster start TARGETS`: start brokers that are down, with the id, port and disk that they had.

Owns: the verb's options.  Never: carries it out: it is the action start (actions/).
Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, broker_options, section


@section(Section.FAULTS)
@click.command("start")
@broker_options(
    click.option(
        "--kafka-version",
        metavar="X.Y",
        help="Run as this Kafka release from now on: an upgrade or a downgrade.",
    )
)
def command(
    targets: str, kafka_version: str | None, wait: bool, name: str | None, as_json: bool
) -> None:
    """Start brokers again: 1, or 1,2, or down for all that are down.

    Returns when they serve clients and are back in their ISRs.
    """
    keys, remark = {"brokers": targets}, ""
    if kafka_version is not None:
        keys["kafka_version"] = kafka_version
        remark = f", as Kafka {kafka_version}"
    options = {"kafka_version": "--kafka-version"}
    act({"start": keys}, name, as_json, wait=wait, remark=remark, options=options)
