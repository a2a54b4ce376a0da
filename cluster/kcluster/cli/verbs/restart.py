"""`kcluster restart TARGETS`: stop brokers and start them again, all at once.

Owns: the verb: its options, its request, when it is refused.  Never: carries it out
(handle/cluster.py).  Kafka: systemctl restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import (
    Section,
    control_options,
    how_option,
    make_change,
    section,
    targets_argument,
    wait_option,
)
from kcluster.cli.control.arguments import (
    brokers_of,
    brokers_text,
    check_how,
    find_nodes,
    resume_hint,
    start_hint,
)
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles
from kcluster.deaths import DeathKind

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession
    from kcluster.handle.cluster import Cluster


class RestartRequest(ControlRequest, verb="restart"):
    """`broker`: targets as typed.  `how`: a DeathKind."""

    broker: str | int
    how: str = DeathKind.CLEAN
    wait: bool = True


@section(Section.FAULTS)
@click.command("restart")
@targets_argument
@how_option(tuple(DeathKind), DeathKind.CLEAN)
@wait_option
@control_options
def command(targets: str, how: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Stop brokers, all at once, and start them again when all are down.

    Returns when they are back in their ISRs.  One after the other: kcluster rolling-restart.
    """
    make_change(RestartRequest(targets, how, wait), name, as_json)


@handles(RestartRequest)
def handle(session: ControlSession, request: RestartRequest) -> ChangeResult:
    """Restart the brokers, if all of them are up."""
    cluster = session.cluster
    chosen = find_nodes(cluster, request.broker)
    require_up(cluster, chosen)
    check_how(request.how, tuple(DeathKind))

    def operation(say: Say) -> None:
        say(f"{session.name}: {brokers_text(chosen)} to be restarted")
        cluster.restart(chosen, request.how, wait=request.wait)

    return session.change(operation, chosen)


def require_up(cluster: Cluster, nodes: tuple[int, ...]) -> None:
    """ControlError with the right verb, if one of these brokers is down or paused."""
    for broker in brokers_of(cluster, nodes):
        if broker.state == "down":
            raise ControlError(f"broker {broker.id} is down; {start_hint(broker)}")
        if broker.state == "paused":
            raise ControlError(f"broker {broker.id} is paused; {resume_hint(broker)}")
