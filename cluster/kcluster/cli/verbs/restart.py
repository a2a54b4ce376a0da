"""`kcluster restart TARGETS`: stop brokers and start them again, all at once.

Owns: the verb: its options, its request, when it is refused.  Never: carries it out
(handle/verbs.py).  Kafka: systemctl restart.
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
    brokers_text,
    check_how,
    choose,
    find_nodes,
    left_alone_lines,
)
from kcluster.cli.control.protocol import ChangeResult, ControlRequest, handles
from kcluster.deaths import DeathKind
from kcluster.operations.states import StateVerb

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession


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
    """Restart those of the brokers that are up."""
    cluster = session.cluster
    found = find_nodes(cluster, request.broker)
    check_how(request.how, tuple(DeathKind))
    sorted_out = choose(cluster, StateVerb.RESTART, found, request.how)
    chosen = sorted_out.nodes

    def operation(say: Say) -> None:
        say(f"{session.name}: {brokers_text(chosen)} to be restarted")
        cluster.restart(chosen, request.how, wait=request.wait)

    left_alone = left_alone_lines(StateVerb.RESTART, sorted_out)
    return session.change(operation, chosen, left_alone=left_alone)
