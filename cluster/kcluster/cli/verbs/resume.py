"""`kcluster resume TARGETS`: resume paused brokers, as after a long garbage collection.

Owns: the verb: its request, when it is refused.  Never: carries it out (handle/cluster.py).
Kafka: kill -CONT.
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
from kcluster.cli.control.arguments import brokers_of, brokers_text, find_nodes, start_hint
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession


class ResumeRequest(ControlRequest, verb="resume"):
    """`broker`: targets as typed."""

    broker: str | int
    wait: bool = True


@section(Section.FAULTS)
@click.command("resume")
@targets_argument
@wait_option
@control_options
def command(targets: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Resume paused brokers.

    Returns when they serve clients and are back in their ISRs.
    """
    make_change(ResumeRequest(targets, wait), name, as_json)


@handles(ResumeRequest)
def handle(session: ControlSession, request: ResumeRequest) -> ChangeResult:
    """Resume the brokers, if all of them are paused."""
    cluster = session.cluster
    chosen = find_nodes(cluster, request.broker)
    for broker in brokers_of(cluster, chosen):
        if broker.state == "down":
            raise ControlError(f"broker {broker.id} is down, not paused; {start_hint(broker)}")
        if broker.state != "paused":
            raise ControlError(
                f"broker {broker.id} is not paused; pause it: kcluster pause {broker.id}"
            )

    def operation(say: Say) -> None:
        cluster.resume(chosen, wait=False)
        say(f"{session.name}: {brokers_text(chosen)} resumed")
        if request.wait:
            cluster.wait_until_in_sync(chosen)

    return session.change(operation, chosen)
