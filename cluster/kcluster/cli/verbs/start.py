"""`kcluster start TARGETS`: start brokers that are down, with the id, port and disk that they had.

Owns: the verb: its options, its request, when it is refused.  Never: carries it out
(handle/verbs.py).  Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import (
    Section,
    control_options,
    make_change,
    section,
    targets_argument,
    wait_option,
)
from kcluster.cli.control.arguments import brokers_text, choose, find_nodes, left_alone_lines
from kcluster.cli.control.protocol import ChangeResult, ControlRequest, handles
from kcluster.operations.states import StateVerb

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession


class StartRequest(ControlRequest, verb="start"):
    """`broker`: targets as typed.  `kafka_version`: the release to run from now on; None for the
    same."""

    broker: str | int
    kafka_version: str | None = None
    wait: bool = True


@section(Section.FAULTS)
@click.command("start")
@targets_argument
@click.option(
    "--kafka-version",
    metavar="X.Y",
    help="Run as this Kafka release from now on: an upgrade or a downgrade.",
)
@wait_option
@control_options
def command(
    targets: str, kafka_version: str | None, wait: bool, name: str | None, as_json: bool
) -> None:
    """Start brokers again: 1, or 1,2, or down for all that are down.

    Returns when they serve clients and are back in their ISRs.
    """
    make_change(StartRequest(targets, kafka_version, wait), name, as_json)


@handles(StartRequest)
def handle(session: ControlSession, request: StartRequest) -> ChangeResult:
    """Start those of the brokers that are down."""
    cluster = session.cluster
    found = find_nodes(cluster, request.broker, may_be_none=True)
    if not found:
        return session.unchanged(f"{request.broker}: there is no such broker now")
    sorted_out = choose(cluster, StateVerb.START, found)
    chosen, version = sorted_out.nodes, request.kafka_version

    def operation(say: Say) -> None:
        cluster.start(chosen, kafka_version=version, wait=False)
        started = f"{session.name}: {brokers_text(chosen)} started"
        if request.wait:
            say(f"{started}; waiting until all replicas are in sync")
            cluster.wait_until_in_sync(chosen)
        else:
            say(started)

    remark = "" if version is None else f", as Kafka {version}"
    left_alone = left_alone_lines(StateVerb.START, sorted_out)
    return session.change(operation, chosen, left_alone=left_alone, remark=remark)
