"""`kcluster start ID`: start a broker that is down, with the id, port and disk that it had.

Owns: the verb: its options, its request, when it is refused.  Never: carries it out
(handle/cluster.py).  Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, print_change, section
from kcluster.cli.control.arguments import find_broker, resume_hint
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class StartRequest(ControlRequest, verb="start"):
    """`broker`: as typed.  `kafka_version`: the release to run from now on; None for the same."""

    broker: str | int
    kafka_version: str | None = None


@section(Section.FAULTS)
@click.command("start")
@click.argument("broker", metavar="ID")
@click.option(
    "--kafka-version",
    metavar="X.Y",
    help="Run as this Kafka release from now on: an upgrade or a downgrade.",
)
@control_options
def command(broker: str, kafka_version: str | None, name: str | None, as_json: bool) -> None:
    """Start broker ID again.

    Returns when it serves clients and is back in its ISRs.
    """
    print_change(ask(StartRequest(broker, kafka_version), name), as_json)


@handles(StartRequest)
def handle(session: ControlSession, request: StartRequest) -> ChangeResult:
    """Start the broker, if it is down."""
    cluster = session.cluster
    broker = find_broker(cluster.status(), request.broker)
    if broker.state == "paused":
        raise ControlError(f"broker {broker.id} is paused, not down; {resume_hint(broker)}")
    if broker.state != "down":
        raise ControlError(f"broker {broker.id} is already up")
    version = request.kafka_version
    change = session.change(lambda: cluster.start(broker.id, kafka_version=version), broker.id)
    if version is None:
        return change
    return change._replace(lines=[*change.lines[:-1], f"{change.lines[-1]}, as Kafka {version}"])
