"""`kcluster kill ID`: end a broker's process, or pause it.

Owns: the verb: its options, its request, when it is refused.  Never: carries it out
(handle/cluster.py).  Kafka: kill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, print_change, section
from kcluster.cli.control.arguments import find_broker, resume_hint, start_hint
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles
from kcluster.deaths import PAUSE, WAYS_TO_FAIL, DeathKind, meanings

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class KillRequest(ControlRequest, verb="kill"):
    """`broker`: as typed.  `how`: one of WAYS_TO_FAIL."""

    broker: str | int
    how: str = DeathKind.KILL


@section(Section.FAULTS)
@click.command("kill")
@click.argument("broker", metavar="ID")
@click.option(
    "--how",
    type=click.Choice(WAYS_TO_FAIL),
    default=str(DeathKind.KILL),
    show_default=True,
    help=meanings(*WAYS_TO_FAIL),
)
@control_options
def command(broker: str, how: str, name: str | None, as_json: bool) -> None:
    """Take broker ID down, or pause it.

    Returns when the cluster has settled.
    """
    print_change(ask(KillRequest(broker, how), name), as_json)


@handles(KillRequest)
def handle(session: ControlSession, request: KillRequest) -> ChangeResult:
    """Kill or pause the broker, unless it is down already."""
    cluster = session.cluster
    broker = find_broker(cluster.status(), request.broker)
    if request.how not in WAYS_TO_FAIL:
        raise ControlError(f"how: {request.how!r} is not one of {', '.join(WAYS_TO_FAIL)}", 2)
    if broker.state == "down":
        raise ControlError(f"broker {broker.id} is already down; {start_hint(broker)}")
    if request.how == PAUSE:
        if broker.state == "paused":
            raise ControlError(f"broker {broker.id} is already paused; {resume_hint(broker)}")
        return session.change(lambda: cluster.pause(broker.id), broker.id)
    if request.how == DeathKind.CLEAN and broker.state == "paused":
        raise ControlError(
            f"broker {broker.id} is paused and cannot shut down cleanly; {resume_hint(broker)}, "
            f"or kill it: kcluster kill {broker.id}"
        )
    return session.change(lambda: cluster.kill(broker.id, request.how), broker.id)
