"""`kcluster rolling-restart`: restart brokers one after the other, as an upgrade does.

Owns: the verb: its options, its request.  Never: carries it out (handle/cluster.py).
Kafka: the loop in every operator's runbook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, how_option, make_change, section
from kcluster.cli.completion import complete_targets
from kcluster.cli.control.arguments import check_how, find_nodes
from kcluster.cli.control.protocol import ChangeResult, ControlRequest, handles
from kcluster.cli.verbs.restart import require_up
from kcluster.deaths import DeathKind

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession


class RollingRestartRequest(ControlRequest, verb="rolling_restart"):
    """`broker`: targets as typed.  `how`: a DeathKind."""

    broker: str | int = "all"
    how: str = DeathKind.CLEAN


@section(Section.FAULTS)
@click.command("rolling-restart")
@click.argument("targets", default="all", shell_complete=complete_targets)
@how_option(tuple(DeathKind), DeathKind.CLEAN)
@control_options
def command(targets: str, how: str, name: str | None, as_json: bool) -> None:
    """Restart brokers one after the other, by default all.

    Each is restarted when the one before is back in all of its ISRs.
    """
    make_change(RollingRestartRequest(targets, how), name, as_json)


@handles(RollingRestartRequest)
def handle(session: ControlSession, request: RollingRestartRequest) -> ChangeResult:
    """Restart the brokers in turn, if all of them are up."""
    cluster = session.cluster
    chosen = find_nodes(cluster, request.broker)
    require_up(cluster, chosen)
    check_how(request.how, tuple(DeathKind))

    def operation(say: Say) -> None:
        for number, broker_id in enumerate(chosen, 1):
            say(f"{session.name}: restarting broker {broker_id} ({number} of {len(chosen)})")
            cluster.rolling_restart(broker_id, request.how)

    return session.change(operation, chosen)
