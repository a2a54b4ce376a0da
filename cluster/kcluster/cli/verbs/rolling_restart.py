"""`kcluster rolling-restart`: restart brokers one after the other, as an upgrade does.

Owns: the verb: its options, its request.  Never: carries it out (handle/verbs.py).
Kafka: the loop in every operator's runbook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, how_option, make_change, section
from kcluster.cli.completion import complete_targets
from kcluster.cli.control.arguments import check_how, choose, find_nodes, left_alone_lines
from kcluster.cli.control.protocol import ChangeResult, ControlRequest, handles
from kcluster.deaths import DeathKind
from kcluster.operations.states import StateVerb

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
    """Restart those of the brokers that are up, in turn."""
    cluster = session.cluster
    found = find_nodes(cluster, request.broker)
    check_how(request.how, tuple(DeathKind))
    sorted_out = choose(cluster, StateVerb.RESTART, found, request.how)
    chosen = sorted_out.nodes

    def operation(say: Say) -> None:
        for number, broker_id in enumerate(chosen, 1):
            say(f"{session.name}: restarting broker {broker_id} ({number} of {len(chosen)})")
            cluster.rolling_restart(broker_id, request.how)

    left_alone = left_alone_lines(StateVerb.RESTART, sorted_out)
    return session.change(operation, chosen, left_alone=left_alone)
