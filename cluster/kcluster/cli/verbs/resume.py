"""`kcluster resume ID`: resume a paused broker, as after a long garbage collection.

Owns: the verb: its request, when it is refused.  Never: carries it out (handle/cluster.py).
Kafka: kill -CONT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, print_change, section
from kcluster.cli.control.arguments import find_broker, start_hint
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class ResumeRequest(ControlRequest, verb="resume"):
    """`broker`: as typed."""

    broker: str | int


@section(Section.FAULTS)
@click.command("resume")
@click.argument("broker", metavar="ID")
@control_options
def command(broker: str, name: str | None, as_json: bool) -> None:
    """Resume broker ID after `kill --how pause`."""
    print_change(ask(ResumeRequest(broker), name), as_json)


@handles(ResumeRequest)
def handle(session: ControlSession, request: ResumeRequest) -> ChangeResult:
    """Resume the broker, if it is paused."""
    broker = find_broker(session.cluster.status(), request.broker)
    if broker.state == "down":
        raise ControlError(f"broker {broker.id} is down, not paused; {start_hint(broker)}")
    if broker.state != "paused":
        raise ControlError(
            f"broker {broker.id} is not paused; pause it: kcluster kill {broker.id} --how pause"
        )
    return session.change(lambda: session.cluster.resume(broker.id), broker.id)
